"""Split a loop in two where its inner tiles stop being full (``tail="peel"``).

Input::                                          Output::

    for i.o in (M + 5) // 6:                         for i.o in M // 6:
        for i.i in 6:  # tail=peel                       for i.i in 6:
            Y[6 * i.o + i.i] = ...  # if ... < M             Y[6 * i.o + i.i] = ...
                                                     for i.o in (M + 5) // 6 - M // 6:
                                                         for i.i in 6:
                                                             Y[6 * (i.o + M // 6) + i.i] = ...
                                                                 # if 6 * (i.o + M // 6) + i.i < M

The main loop tests nothing, at the price of its body's code twice. The guard of the rest is left to
the later passes, which bound a serial inner loop by it.
"""

from __future__ import annotations

from dataclasses import replace

from tensorlang.ir.affine import (
    ZERO,
    Affine,
    Var,
    linear_coefficient,
    maximum,
    minimum,
    substitute,
    variables_of,
)
from tensorlang.ir.program import Compute, For, Fused, Program, Run, Stmt
from tensorlang.ir.walk import children_of, map_children, rewrite, sequence, substitute_in_stmt
from tensorlang.lower.extremes import least
from tensorlang.lower.known import Known, known_of


def peel_tails(program: Program) -> Program:
    """Return ``program`` with the loops around ``tail="peel"`` loops split into main and rest."""
    return replace(program, body=_visit(program.body, known_of(program)))


def _visit(stmt: Stmt, known: Known) -> Stmt:
    inside = known.inside(stmt)
    stmt = map_children(stmt, lambda child: _visit(child, inside))
    if isinstance(stmt, For) and stmt.kind in ("serial", "parallel"):
        return _peeled(stmt, known)
    return stmt


def _peeled(loop: For, known: Known) -> Stmt:
    """Split ``loop`` if guards of peeled loops inside it hold for its first iterations."""
    inner = _loops_below(loop.body)
    peeled = {node.variable for node in inner if isinstance(node, For) and node.tail == "peel"}
    if not peeled:
        return loop
    ranges = {variable: extent for node in inner for variable, extent in _ranges_of(node)}
    limits: dict[Affine, Affine] = {}
    guards = [form for compute in _computes_below(loop.body) for form in compute.guard]
    for form in dict.fromkeys(guards):
        lowest = None if variables_of(form).isdisjoint(peeled) else least(form, ranges)
        coefficient = None if lowest is None else linear_coefficient(lowest, loop.variable)
        if lowest is not None and coefficient is not None and coefficient < 0:
            limits[form] = _full_tiles(lowest, loop.variable, coefficient)
    if not limits:
        return loop
    main = _clipped(minimum(*limits.values()), loop.extent, known)
    done = peeled & {variable for form in limits for variable in variables_of(form)}
    body = _without_tails(loop.body, done)
    shifted = substitute_in_stmt(body, {loop.variable: loop.variable + main})
    rest = refreshed(replace(loop, extent=loop.extent - main, body=shifted))

    def strip(node: Stmt) -> Stmt:
        if not isinstance(node, Compute):
            return node
        return replace(node, guard=tuple([form for form in node.guard if form not in limits]))

    return sequence(replace(loop, extent=main, body=rewrite(body, strip)), rest)


def _without_tails(stmt: Stmt, variables: set[Var]) -> Stmt:
    """Return ``stmt`` with the tails of these loops done, lest a loop further out peel them too."""

    def visit(node: Stmt) -> Stmt:
        if isinstance(node, For) and node.variable in variables:
            return replace(node, tail="auto")
        return node

    return rewrite(stmt, visit)


def _full_tiles(lowest: Affine, variable: Var, coefficient: int) -> Affine:
    """Return how many first values of ``variable`` keep the form's least value >= 0."""
    return substitute(lowest, {variable: ZERO}) // -coefficient + 1


def _clipped(count: Affine, extent: Affine, known: Known) -> Affine:
    if not known.proves(extent - count):
        count = minimum(count, extent)
    return count if known.proves(count) else maximum(count, 0)


def _loops_below(stmt: Stmt) -> list[For | Fused]:
    found = [stmt] if isinstance(stmt, For | Fused) else []
    for child in children_of(stmt):
        found.extend(_loops_below(child))
    return found


def _ranges_of(loop: For | Fused) -> list[tuple[Var, Affine]]:
    if isinstance(loop, For):
        return [(loop.variable, loop.extent)]
    return list(zip(loop.variables, loop.extents, strict=True))


def _computes_below(stmt: Stmt) -> list[Compute]:
    if isinstance(stmt, Compute):
        return [stmt]
    return [compute for child in children_of(stmt) for compute in _computes_below(child)]


def refreshed(stmt: Stmt) -> Stmt:
    """Return ``stmt`` with fresh variables for all loops in it, so that handles stay unique."""
    match stmt:
        case For():
            variable = Var(stmt.variable.name)
            body = substitute_in_stmt(
                _with_chunk(stmt.body, stmt.variable, variable), {stmt.variable: variable}
            )
            return replace(stmt, variable=variable, body=refreshed(body))
        case Fused():
            fresh = {variable: Var(variable.name) for variable in stmt.variables}
            run = stmt.run and Run(stmt.run.chunk, Var(stmt.run.offset.name), stmt.run.size)
            shares = stmt.run is not None and stmt.handle is stmt.run.offset
            handle = run.offset if run is not None and shares else Var(stmt.handle.name)
            body = refreshed(substitute_in_stmt(stmt.body, fresh))
            variables = tuple(fresh.values())
            return replace(stmt, handle=handle, variables=variables, run=run, body=body)
        case _:
            return map_children(stmt, refreshed)


def _with_chunk(stmt: Stmt, old: Var, new: Var) -> Stmt:
    if isinstance(stmt, Fused) and stmt.run is not None and stmt.run.chunk is old:
        return replace(stmt, run=replace(stmt.run, chunk=new))
    return stmt
