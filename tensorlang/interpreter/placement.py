"""Where each node of an expression is computed, so that each runs at most once, and only if taken.

Input:  ``where(c, exp(x), 0) + x``
Output: x and c and the sum in the statement itself, ``exp(x)`` in the first branch of the select

A node needed in any case belongs to the statement. One that only a single branch needs belongs to
that branch. One that several branches need, but not every run, becomes a *thunk*: an inner
function that computes it at its first call.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tensorlang.ir.expr import Expr, Select, children, index_values, iterate

Scope = tuple[int, int]
"""A select (its id) and the branch, 1 or 2; or a thunk's node and 0; ``STATEMENT`` for neither."""

STATEMENT: Scope = (0, 0)
_MOST_NESTED_BRANCHES = 12


@dataclass(frozen=True, slots=True)
class Placement:
    """The nodes of each scope, operands first, and which nodes are thunks (scopes of their own)."""

    nodes: dict[Scope, list[Expr]]
    thunks: tuple[Expr, ...]


def thunk_scope(node: Expr) -> Scope:
    """Return the scope of what a thunk computes."""
    return id(node), 0


def branch_scope(select: Select, branch: int) -> Scope:
    """Return the scope of a branch: 1 for ``then``, 2 for ``otherwise``."""
    return id(select), branch


def place(roots: tuple[Expr, ...]) -> Placement:
    """Decide where the nodes below ``roots`` are computed."""
    order = list(iterate(*roots))
    scopes = _scopes(roots, order)
    nodes: dict[Scope, list[Expr]] = {}
    thunks: list[Expr] = []
    for node in order:
        scope = scopes[id(node)]
        nodes.setdefault(scope, []).append(node)
        if scope == thunk_scope(node):
            thunks.append(node)
    return Placement(nodes, tuple(thunks))


def _scopes(roots: tuple[Expr, ...], order: list[Expr]) -> dict[int, Scope]:
    scopes: dict[int, Scope] = dict.fromkeys(_strict(roots), STATEMENT)
    depth: dict[Scope, int] = {STATEMENT: 0}
    users: dict[int, set[Scope]] = {}
    for node in reversed(order):  # users before operands
        if id(node) not in scopes:
            wanted = users[id(node)]
            scope = next(iter(wanted))
            alone = len(wanted) == 1 and depth[scope] <= _MOST_NESTED_BRANCHES
            scopes[id(node)] = scope if alone else thunk_scope(node)
        scope = scopes[id(node)]
        level = depth.setdefault(scope, 0)
        for operand, branch in _operands(node):
            used_in = scope
            if branch:
                used_in = (id(node), branch)
                depth[used_in] = level + 1
            users.setdefault(id(operand), set()).add(used_in)
    return scopes


def _operands(node: Expr) -> Iterator[tuple[Expr, int]]:
    """Yield the operands of ``node``, each with the branch in which it stands (0: in none)."""
    if isinstance(node, Select):
        yield node.condition, 0
        yield node.then, 1
        yield node.otherwise, 2
    else:
        for operand in children(node) + index_values(node):
            yield operand, 0


def moved_loads(roots: tuple[Expr, ...]) -> frozenset[int]:
    """Return the loads (their ids) whose value is a root's and is used for nothing else."""
    passed_on: set[int] = set()
    stack = list(roots)
    while stack:
        node = stack.pop()
        if id(node) not in passed_on:
            passed_on.add(id(node))
            if isinstance(node, Select):
                stack += (node.then, node.otherwise)
    used: set[int] = set()
    for node in iterate(*roots):
        for operand, branch in _operands(node):
            if not branch or id(node) not in passed_on:
                used.add(id(operand))
    return frozenset(passed_on - used)


def _strict(roots: tuple[Expr, ...]) -> set[int]:
    """Return the nodes that are computed whatever the conditions are."""
    found: set[int] = set()
    stack = list(roots)
    while stack:
        node = stack.pop()
        if id(node) not in found:
            found.add(id(node))
            stack.extend(operand for operand, branch in _operands(node) if not branch)
    return found
