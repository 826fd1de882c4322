"""Allocate memory outside the serial loops that use it, once instead of in each iteration.

Input::                             Output::

    for j.o in ...:                     B.copy = global f32[16 * K]
        B.copy = global f32[16 * K]     for j.o in ...:
        ...                                 ...

Storage in registers stays: it costs nothing. So does storage inside a parallel or bound loop, where
each iteration needs its own, and storage that must be zero to begin with.
"""

from __future__ import annotations

from dataclasses import replace

from tensorlang.ir.affine import depends_on
from tensorlang.ir.lowered import Allocate, Buffer, LoweredProgram
from tensorlang.ir.program import BLOCK_AXES, THREAD_AXES, For, Seq, Stmt
from tensorlang.ir.walk import map_children, sequence

_CONCURRENT = ("parallel", *BLOCK_AXES, *THREAD_AXES)


def hoist_storage(program: LoweredProgram) -> LoweredProgram:
    """Return ``program`` with memory allocated as far out as one piece of it serves."""
    body, buffers = _visit(program.body)
    return replace(program, body=_allocated(body, buffers))


def _visit(stmt: Stmt) -> tuple[Stmt, list[Buffer]]:
    """Return ``stmt`` without the buffers that may be allocated further out, and those."""
    match stmt:
        case Allocate():
            body, buffers = _visit(stmt.body)
            if stmt.buffer.scope != "global" or stmt.zeroed:
                return replace(stmt, body=_allocated(body, buffers)), []
            return body, [stmt.buffer, *buffers]
        case For():
            body, buffers = _visit(stmt.body)
            if not buffers:
                return (stmt if body is stmt.body else replace(stmt, body=body)), []
            fixed = [
                buffer
                for buffer in buffers
                if stmt.kind in _CONCURRENT or depends_on(buffer.size, {stmt.variable})
            ]
            outer = [buffer for buffer in buffers if buffer not in fixed]
            return replace(stmt, body=_allocated(body, fixed)), outer
        case Seq():
            return _visit_sequence(stmt)
        case _:
            return map_children(stmt, lambda child: _allocated(*_visit(child))), []


def _visit_sequence(stmt: Seq) -> tuple[Stmt, list[Buffer]]:
    children: list[Stmt] = []
    buffers: list[Buffer] = []
    for child in stmt.stmts:
        new, inner = _visit(child)
        children.append(new)
        buffers.extend(inner)
    return sequence(*children), buffers


def _allocated(stmt: Stmt, buffers: list[Buffer]) -> Stmt:
    for buffer in reversed(buffers):
        stmt = Allocate(buffer, stmt)
    return stmt
