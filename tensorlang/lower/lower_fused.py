"""Turn a loop over several variables into one over their positions.

Input::                                       Output::

    parallel for f = (i, j) in (M, N):            parallel for f in M * N:
        C[i, j] = ...                                 C[f // N, f - N * (f // N)] = ...

The canonical sums cancel: the address ``N * i + j`` becomes ``f``. A serial loop that is not split
becomes the nest that it stands for, which has no divisions. A run of a fused loop has a last piece
that may be shorter: a bound of a serial run, a guard of a vectorized, unrolled or bound one.
"""

from __future__ import annotations

from dataclasses import replace

from tensorlang.ir.affine import ONE, Affine, Var, affine, minimum
from tensorlang.ir.program import EMPTY, THREAD_AXES, Compute, For, Fused, If, Program, Stmt
from tensorlang.ir.walk import map_children, rewrite, substitute_in_stmt


def lower_fused(program: Program) -> Program:
    """Return ``program`` without ``Fused`` loops."""
    return replace(program, body=_visit(program.body))


def _visit(stmt: Stmt) -> Stmt:
    stmt = map_children(stmt, _visit)
    if not isinstance(stmt, Fused):
        return stmt
    if any(extent.is_constant and extent.constant <= 0 for extent in stmt.extents):
        return EMPTY
    if stmt.run is not None:
        return _lower_run(stmt)
    return _lower_nest(stmt) if stmt.kind == "serial" else _lower_whole(stmt)


def _lower_nest(loop: Fused) -> Stmt:
    nest = loop.body
    for variable, extent in reversed(list(zip(loop.variables, loop.extents, strict=True))):
        nest = For(variable, extent, "serial", nest, loop.tail, loop.hints)
    return nest


def _lower_whole(loop: Fused) -> Stmt:
    body = substitute_in_stmt(loop.body, _values_at(affine(loop.handle), loop))
    return For(loop.handle, _count(loop), loop.kind, body, loop.tail, loop.hints)


def _lower_run(loop: Fused) -> Stmt:
    run = loop.run
    assert run is not None
    position = affine(run.chunk) * run.size + run.offset
    body = substitute_in_stmt(loop.body, _values_at(position, loop))
    left = _count(loop) - affine(run.chunk) * run.size
    whole = affine(run.size)
    if loop.kind in THREAD_AXES:
        count = _count(loop)
        even = count.is_constant and count.constant % run.size == 0
        body = body if even else _guarded(body, left - 1 - run.offset)
        return For(run.offset, whole, loop.kind, body, loop.tail, loop.hints)
    if loop.kind not in ("vectorized", "unrolled"):
        extent = minimum(whole, left)
        return For(run.offset, extent, loop.kind, body, loop.tail, loop.hints)
    guarded = _guarded(body, left - 1 - run.offset)
    full, rest = (
        For(run.offset, whole, loop.kind, part, loop.tail, loop.hints) for part in (body, guarded)
    )
    if loop.tail in ("guard", "mask"):
        return rest
    return If((left - run.size,), full, rest)


def _count(loop: Fused) -> Affine:
    count = ONE
    for extent in loop.extents:
        count = count * extent
    return count


def _values_at(position: Affine, loop: Fused) -> dict[Var, Affine]:
    """Return the loop's variables at a position, the last one fastest."""
    values: dict[Var, Affine] = {}
    for variable, extent in reversed(list(zip(loop.variables, loop.extents, strict=True))[1:]):
        quotient = position // extent
        values[variable] = position - extent * quotient
        position = quotient
    values[loop.variables[0]] = position
    return values


def _guarded(stmt: Stmt, form: Affine) -> Stmt:
    def visit(node: Stmt) -> Stmt:
        return replace(node, guard=(*node.guard, form)) if isinstance(node, Compute) else node

    return rewrite(stmt, visit)
