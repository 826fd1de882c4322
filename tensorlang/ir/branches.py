"""Under which conditions each node of an expression is evaluated, ``where`` being lazy.

Input:  ``where(i > 0, where(x > 1, X[i - 1] + e, e), e)``
Output: X[i - 1] where ``i > 0 and x > 1``; e always: both branches lead to it

Expressions share nodes, so the paths to a node may be exponentially many. The nodes are visited
once each, users first; of two ways that differ in one condition only, one without it is made, and
where many ways remain, only what they have in common is kept. So a way may hold at more points than
the node is evaluated at, never at fewer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tensorlang.ir.expr import Expr, Select, children, index_values, iterate

Branch = tuple[tuple[Expr, bool], ...]
"""Conditions, each with the branch that was taken: whether it holds."""

Says = Callable[[Expr, bool], bool]
"""Whether anything can be concluded from a condition that holds, or fails."""

_MOST = 32
_Way = Mapping[int, tuple[Expr, bool]]


def ways_to_nodes(roots: tuple[Expr, ...], says: Says) -> dict[int, tuple[Branch, ...]]:
    """Return, by the identity of each node below ``roots``, the ways that lead to it.

    ``((),)`` stands for a node that is evaluated whatever the conditions are. Conditions that do
    not ``say`` anything are left out.
    """
    nodes = list(iterate(*roots))
    ways: dict[int, list[_Way]] = {id(node): [] for node in nodes}
    for root in roots:
        _add(ways[id(root)], {})
    for node in reversed(nodes):
        here = ways[id(node)] = _few(ways[id(node)])
        for operand, condition, taken in _uses(node):
            target = ways[id(operand)]
            restricts = condition is not None and says(condition, taken)
            for way in here:
                if condition is None or not restricts:
                    _add(target, way)
                elif way.get(id(condition), (condition, taken))[1] is taken:
                    _add(target, {**way, id(condition): (condition, taken)})
    return {number: tuple([tuple(way.values()) for way in found]) for number, found in ways.items()}


def _uses(node: Expr) -> list[tuple[Expr, Expr | None, bool]]:
    """Return the operands of ``node``, each with the condition and branch it stands in."""
    if isinstance(node, Select):
        return [
            (node.condition, None, True),
            (node.then, node.condition, True),
            (node.otherwise, node.condition, False),
        ]
    return [(operand, None, True) for operand in children(node) + index_values(node)]


def _add(ways: list[_Way], new: _Way) -> None:
    """Add a way, merged with those that differ in a single condition; drop what others cover."""
    waiting = [new]
    while waiting:
        new = waiting.pop()
        if any(_covers(way, new) for way in ways):
            continue
        ways[:] = [way for way in ways if not _covers(new, way)]
        merged = next((m for way in ways if (m := _merged(way, new)) is not None), None)
        if merged is None:
            ways.append(new)
        else:
            waiting += [new, merged]  # the merged one first: it may cover the other


def _covers(way: _Way, other: _Way) -> bool:
    """Whether ``way`` holds wherever ``other`` does."""
    return len(way) <= len(other) and all(
        number in other and other[number][1] is taken for number, (_, taken) in way.items()
    )


def _merged(way: _Way, other: _Way) -> _Way | None:
    """Return the way without the one condition that holds in one and fails in the other.

    The rest of one must cover the rest of the other; the merged way is the longer rest.
    """
    longer, shorter = (way, other) if len(way) >= len(other) else (other, way)
    opposite = [
        number
        for number, (_, taken) in shorter.items()
        if number not in longer or longer[number][1] is not taken
    ]
    if len(opposite) != 1 or opposite[0] not in longer:
        return None
    return {number: part for number, part in longer.items() if number != opposite[0]}


def _few(ways: list[_Way]) -> list[_Way]:
    if len(ways) <= _MOST:
        return ways
    first, *others = ways
    return [
        {
            number: part
            for number, part in first.items()
            if all(number in way and way[number][1] is part[1] for way in others)
        }
    ]
