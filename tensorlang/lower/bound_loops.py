"""Turn a guard that all of a loop's body shares into a bound of the loop.

Input::                                             Output::

    for i.o in (M + 5) // 6:                            for i.o in (M + 5) // 6:
        for i.i in 6:                                       for i.i in min(6, M - 6 * i.o):
            Y[6 * i.o + i.i] = ...  # if ... < M                Y[6 * i.o + i.i] = ...

Only serial and parallel loops: a vectorized or unrolled one keeps its constant extent. An iteration
is left out only if no instance in it would run, so the result runs the same instances in the same
order. A guard that fails in the first iterations (``k >= i``) moves the loop's start. A bound may
be negative, which is a loop that never runs.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeAlias

from tensorlang.ir.affine import ZERO, Affine, Var, linear_coefficient, maximum, minimum, substitute
from tensorlang.ir.program import Alloc, Compute, For, Fused, Program, Stmt
from tensorlang.ir.walk import (
    children_of,
    computes_of,
    iterate,
    map_children,
    rewrite,
    substitute_in_stmt,
)
from tensorlang.lower.extremes import greatest
from tensorlang.lower.run_private_tails import zero_filled_guards

_Kept: TypeAlias = frozenset[tuple[int, Affine]]
"""Guards, with the id of their stage, that must stay inside the storage of what is written."""


def bound_loops(program: Program) -> Program:
    """Return ``program`` with guards moved into the extents of serial and parallel loops.

    Loops with ``tail="guard"`` keep their guards; so do the lanes that a packing copy fills with
    zeros.
    """
    return replace(program, body=_visit(program.body, zero_filled_guards(program)))


def _visit(stmt: Stmt, kept: _Kept) -> Stmt:
    if isinstance(stmt, For) and stmt.kind in ("serial", "parallel") and stmt.tail != "guard":
        stmt = _bound(stmt, kept)
    return map_children(stmt, lambda child: _visit(child, kept))


def _bound(loop: For, kept: _Kept) -> For:
    loop = _end_early(loop, kept)
    return _start_late(loop, kept)


def _end_early(loop: For, kept: _Kept) -> For:
    """Leave out the last iterations, in which every instance fails a guard."""
    limits = _shared_limits(loop, kept, -1)
    if not limits:
        return loop
    counts = [_first(limit, loop.variable) // -_slope(limit, loop.variable) + 1 for limit in limits]
    extent = minimum(loop.extent, *counts)
    return replace(loop, extent=extent, body=_without(loop.body, limits))


def _start_late(loop: For, kept: _Kept) -> For:
    """Leave out the first iterations, in which every instance fails a guard."""
    limits = _shared_limits(loop, kept, 1)
    if not limits:
        return loop
    starts = [-(_first(limit, loop.variable) // _slope(limit, loop.variable)) for limit in limits]
    start = maximum(0, *starts)
    body = _without(loop.body, limits)
    body = substitute_in_stmt(body, {loop.variable: loop.variable + start})
    return replace(loop, extent=loop.extent - start, body=body)


def _shared_limits(loop: For, kept: _Kept, sign: int) -> tuple[Affine, ...]:
    """Return forms that move with the loop as ``sign`` says and that every instance needs >= 0."""
    computes = computes_of(loop.body)
    if not any(compute.guard for compute in computes):
        return ()
    inner = _ranges(loop.body)
    own = {stmt.tensor for stmt in iterate(loop.body) if isinstance(stmt, Alloc)}
    shared: dict[Affine, None] | None = None
    for compute in computes:
        # lanes are filled for the iteration whose storage it is: without the iteration, for nobody
        fills = own.isdisjoint(map(compute.redirect, compute.stage.tensors))
        limits = {
            limit: None
            for form in compute.guard
            if not (fills and (id(compute.stage), form) in kept)
            and (limit := greatest(form, inner)) is not None
            and _slope(limit, loop.variable) * sign > 0
        }
        shared = limits if shared is None else {form: None for form in shared if form in limits}
    return tuple(shared or ())


def _slope(limit: Affine, variable: Var) -> int:
    """Return how much ``limit`` moves in a step of the loop; 0 where that is not known."""
    return linear_coefficient(limit, variable) or 0


def _first(limit: Affine, variable: Var) -> Affine:
    return substitute(limit, {variable: ZERO})


def _without(stmt: Stmt, forms: tuple[Affine, ...]) -> Stmt:
    """Return ``stmt`` without the guards that are among ``forms``."""

    def strip(node: Stmt) -> Stmt:
        if not isinstance(node, Compute) or not any(form in forms for form in node.guard):
            return node
        return replace(node, guard=tuple([form for form in node.guard if form not in forms]))

    return rewrite(stmt, strip)


def _ranges(stmt: Stmt) -> dict[Var, Affine]:
    """Return the extents of all loops below ``stmt``."""
    ranges: dict[Var, Affine] = {}
    stack = [stmt]
    while stack:
        node = stack.pop()
        if isinstance(node, For):
            ranges[node.variable] = node.extent
        elif isinstance(node, Fused):
            ranges.update(zip(node.variables, node.extents, strict=True))
        stack.extend(children_of(node))
    return ranges
