"""Run perfectly nested parallel loops as one, and parallel loops further inside serially.

Input::                     Output::

    parallel for i in M:        parallel for i.j = (i, j) in (M, N):
        parallel for j in N:        ...
            ...

One loop over all pairs gives the threads more, and more even, pieces of work.
"""

from __future__ import annotations

from dataclasses import replace

from tensorlang.ir.affine import Affine, Var, depends_on
from tensorlang.ir.program import For, Fused, Program, Stmt
from tensorlang.ir.walk import loop_variables, map_children


def merge_parallel(program: Program) -> Program:
    """Return ``program`` in which no parallel loop stands inside another."""
    return replace(program, body=_visit(program.body, False))


def _visit(stmt: Stmt, inside: bool) -> Stmt:
    if not isinstance(stmt, For | Fused) or stmt.kind != "parallel":
        return map_children(stmt, lambda child: _visit(child, inside))
    loop = replace(stmt, kind="serial") if inside else _merged(stmt)
    return map_children(loop, lambda child: _visit(child, True))


def _merged(loop: For | Fused) -> For | Fused:
    inner = loop.body
    while (
        isinstance(inner, For | Fused)
        and inner.kind == "parallel"
        and loop.tail == inner.tail
        and not _is_piece(loop)
        and not _is_piece(inner)
        and not any(depends_on(extent, set(loop_variables(loop))) for extent in _extents(inner))
    ):
        variables = loop_variables(loop) + loop_variables(inner)
        extents = _extents(loop) + _extents(inner)
        handle = Var(".".join(map(str, variables)))
        loop = Fused(handle, variables, extents, "parallel", inner.body, None, loop.tail)
        inner = loop.body
    return loop


def _extents(loop: For | Fused) -> tuple[Affine, ...]:
    return (loop.extent,) if isinstance(loop, For) else loop.extents


def _is_piece(loop: For | Fused) -> bool:
    """Whether the loop is a run of a fused loop, or the loop over positions around one."""
    inner = loop.body
    mine = isinstance(loop, Fused) and loop.run is not None
    return mine or (isinstance(inner, Fused) and inner.run is not None)
