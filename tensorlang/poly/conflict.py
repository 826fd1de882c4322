"""Loops whose iterations run at once touch each other's cells in no way that matters.

Input:  the loops that are parallel, vectorized or bound, and the accesses inside them
Output: nothing, or two iterations of which one writes a cell that the other writes or reads

Storage allocated inside the loop is private to an iteration. Lanes of a vectorized loop run in
lockstep, but are held to the same rule. Most accesses are seen apart by their form alone:
``C[6 * i.o + i.i]`` with ``i.i < 6`` cannot meet for two values of ``i.o``; the rest is asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tensorlang.ir.affine import Affine, Var, affine, linear_coefficient
from tensorlang.ir.interval import bounds
from tensorlang.poly.access import Access, Accesses
from tensorlang.poly.domain import Loop
from tensorlang.poly.isl_text import condition_text, form_text
from tensorlang.poly.witness import (
    Counterexample,
    describe_access,
    named_loops,
    named_sizes,
    sample,
)

CLAIM = "concurrency"


@dataclass(frozen=True, slots=True)
class _Scope:
    """The accesses inside one loop; ``depth`` loop variables lie outside it."""

    loop: Loop
    depth: int
    writes: tuple[Access, ...]
    reads: tuple[Access, ...]


def find_conflict_in(accesses: Accesses, handle: Var | None = None) -> Counterexample | None:
    """Return a conflict between iterations of a concurrent loop, or of the loop ``handle``."""
    for scope in _scopes(accesses, handle):
        for position, write in enumerate(scope.writes):
            for other in (*scope.writes[position:], *scope.reads):
                if other.storage is not write.storage:
                    continue
                if _apart(scope, write, other):
                    continue
                found = _ask(accesses, scope, write, other)
                if found is not None:
                    return found
    return None


def _scopes(accesses: Accesses, handle: Var | None) -> Iterator[_Scope]:
    depths: dict[Loop, int] = {}
    writes: dict[Loop, list[Access]] = {}
    reads: dict[Loop, list[Access]] = {}
    everything = [(access, True) for access in accesses.writes]
    everything += [(access, False) for access in (*accesses.reads, *accesses.copies)]
    for access, is_write in everything:
        if access.storage not in accesses.written:
            continue
        depth = 0
        for loop in access.instance.loops:
            concerned = loop.is_concurrent if handle is None else handle in loop.handles
            # Storage whose prefix holds the loop's variables is allocated inside the loop.
            if concerned and len(access.storage.prefix) <= depth:
                depths[loop] = depth
                (writes if is_write else reads).setdefault(loop, []).append(access)
            depth += len(loop.variables)
    for loop, depth in depths.items():
        yield _Scope(loop, depth, tuple(writes.get(loop, ())), tuple(reads.get(loop, ())))


def _apart(scope: _Scope, one: Access, other: Access) -> bool:
    """Whether the forms of the indices alone keep two different iterations apart."""
    return all(
        any(
            _separates(scope, variable, one, other, left, right)
            for left, right in zip(one.places, other.places, strict=True)
        )
        for variable in scope.loop.variables
    )


def _separates(
    scope: _Scope,
    variable: Var,
    one: Access,
    other: Access,
    left: Affine | None,
    right: Affine | None,
) -> bool:
    """Whether ``left`` = ``right`` forces ``variable`` to be the same in both iterations.

    Both are ``step * variable + rest``; if the rests differ by less than the step, it does.
    """
    if left is None or right is None:
        return False
    step = linear_coefficient(left, variable)
    if not step or linear_coefficient(right, variable) != step:
        return False
    first = _rest_bounds(scope, variable, one, left - affine(variable) * step)
    second = _rest_bounds(scope, variable, other, right - affine(variable) * step)
    if first is None or second is None:
        return False
    spans = first[1] - second[0], second[1] - first[0]
    return all(span.is_constant and span.constant < abs(step) for span in spans)


def _rest_bounds(
    scope: _Scope, variable: Var, access: Access, rest: Affine
) -> tuple[Affine, Affine] | None:
    """Bound ``rest`` over the loop and all loops inside it, so that only outer ones remain."""
    instance = access.instance
    varying = {
        inner: instance.extents[inner]
        for inner in instance.variables[scope.depth :]
        if inner is not variable
    }
    interval = bounds(rest, varying)
    if interval is None:
        return None
    low, high = interval
    # The extents of inner loops may depend on the variable itself.
    if any(linear_coefficient(form, variable) != 0 for form in (low, high)):
        return None
    return low, high


def _ask(accesses: Accesses, scope: _Scope, one: Access, other: Access) -> Counterexample | None:
    """Ask isl for two iterations that differ in the loop and meet in a cell."""
    nest = accesses.nest
    first = _renamed(one, scope.depth, "a")
    second = _renamed(other, scope.depth, "b")
    parts = [nest.constraints(one.instance, first), nest.constraints(other.instance, second)]
    for access, names in ((one, first), (other, second)):
        branch = branch_condition(accesses, access, names)
        if branch is not None:
            parts.append(branch)
    for left, right in zip(one.places, other.places, strict=True):
        if left is not None and right is not None:
            same = form_text(left, first, nest.parameters)
            parts.append(f"{same} = {form_text(right, second, nest.parameters)}")
    differ = " or ".join(
        f"{first[variable]} {sign} {second[variable]}"
        for variable in scope.loop.variables
        for sign in "<>"
    )
    names = [first[variable] for variable in one.instance.variables]
    names += [second[variable] for variable in other.instance.variables[scope.depth :]]
    text = f"[{', '.join(names)}] : {' and '.join(parts)} and ({differ})"
    meeting = nest.parameters.set(text)
    if meeting.is_empty():
        return None
    found = sample(nest, meeting)
    by_name = dict(zip(names, found.coordinates, strict=True))
    values, others = (
        {**found.sizes, **{v: by_name[renaming[v]] for v in access.instance.variables}}
        for access, renaming in ((one, first), (other, second))
    )
    loops = named_loops(one.instance, values)
    shared = set(one.instance.variables[: scope.depth])
    loops.update(
        {
            name: value
            for (name, value), variable in zip(
                named_loops(other.instance, others, "'").items(),
                other.instance.variables,
                strict=True,
            )
            if variable not in shared
        }
    )
    verb = "writes" if other in scope.writes else "reads"
    # Which piece of a fused loop a point lies in is not asked: the two may be in one.
    certain = not scope.loop.is_in_pieces
    return Counterexample(
        CLAIM,
        f"two iterations of {scope.loop.kind} loop {scope.loop.handles[0]} "
        f"{'touch' if certain else 'may touch'} one element "
        f"of {one.storage.tensor.name}",
        named_sizes(found.sizes),
        loops,
        (describe_access(one, values, "writes"), describe_access(other, others, verb)),
        one.instance.compute,
        refuted=found.is_real and certain,
    )


def _renamed(access: Access, depth: int, letter: str) -> Mapping[Var, str]:
    return {
        variable: f"l{n}" if n < depth else f"{letter}{n}"
        for n, variable in enumerate(access.instance.variables)
    }


def branch_condition(accesses: Accesses, access: Access, names: Mapping[Var, str]) -> str | None:
    """Return where the branches lead to an access, over other names of its loops; None: always."""
    if not access.is_conditional:
        return None
    ways: list[str] = []
    for branch in access.branches:
        texts = [
            condition_text(cond, taken, names, accesses.nest.parameters) for cond, taken in branch
        ]
        ways.append(" and ".join(text for text in texts if text is not None) or "true")
    return f"({' or '.join(ways)})"
