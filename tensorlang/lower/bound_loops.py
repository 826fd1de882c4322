"""Turn a guard that all of a loop's body shares into a bound of the loop.

Input::                                             Output::

    for i.o in (M + 5) // 6:                            for i.o in (M + 5) // 6:
        for i.i in 6:                                       for i.i in min(6, M - 6 * i.o):
            Y[6 * i.o + i.i] = ...  # if ... < M                Y[6 * i.o + i.i] = ...

Only serial and parallel loops: a vectorized or unrolled one keeps its constant extent. An iteration
is left out only if no instance in it would run, so the result runs the same instances in the same
order. A bound may be negative, which is a loop that never runs.
"""

from __future__ import annotations

from dataclasses import replace

from tensorlang.ir.affine import ZERO, Affine, Var, linear_coefficient, minimum, substitute
from tensorlang.ir.program import Compute, For, Fused, Program, Stmt
from tensorlang.ir.walk import children_of, computes_of, map_children, rewrite
from tensorlang.lower.extremes import greatest
from tensorlang.lower.private import zero_filled_guards


def bound_loops(program: Program) -> Program:
    """Return ``program`` with guards moved into the extents of serial and parallel loops.

    Loops with ``tail="guard"`` keep their guards; so do the lanes that a packing copy fills with
    zeros.
    """
    return replace(program, body=_visit(program.body, zero_filled_guards(program)))


def _visit(stmt: Stmt, kept: frozenset[tuple[int, Affine]]) -> Stmt:
    if isinstance(stmt, For) and stmt.kind in ("serial", "parallel") and stmt.tail != "guard":
        stmt = _bound(stmt, kept)
    return map_children(stmt, lambda child: _visit(child, kept))


def _bound(loop: For, kept: frozenset[tuple[int, Affine]]) -> For:
    computes = computes_of(loop.body)
    if not any(compute.guard for compute in computes):
        return loop
    inner = _ranges(loop.body)
    shared: dict[Affine, None] | None = None
    for compute in computes:
        limits = {
            limit: None
            for form in compute.guard
            if (id(compute.stage), form) not in kept
            and (limit := _limit(form, loop.variable, inner)) is not None
        }
        shared = limits if shared is None else {form: None for form in shared if form in limits}
    if not shared:
        return loop
    extent = minimum(loop.extent, *[_trip_count(limit, loop.variable) for limit in shared])

    def strip(node: Stmt) -> Stmt:
        if not isinstance(node, Compute) or not any(form in shared for form in node.guard):
            return node
        return replace(node, guard=tuple([form for form in node.guard if form not in shared]))

    return replace(loop, extent=extent, body=rewrite(loop.body, strip))


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


def _limit(form: Affine, variable: Var, inner: dict[Var, Affine]) -> Affine | None:
    """Return the greatest value of ``form`` over the inner loops, if it falls with ``variable``."""
    limit = greatest(form, inner)
    if limit is None:
        return None
    coefficient = linear_coefficient(limit, variable)
    return limit if coefficient is not None and coefficient < 0 else None


def _trip_count(limit: Affine, variable: Var) -> Affine:
    """Return how many values of ``variable`` from 0 on keep ``limit`` >= 0."""
    coefficient = linear_coefficient(limit, variable)
    assert coefficient is not None
    return substitute(limit, {variable: ZERO}) // -coefficient + 1
