"""Write out unrolled loops.

Input::                         Output::

    unrolled for i in 2:            C[0] = A[0]
        C[i] = A[i]                 C[1] = A[1]

Storage inside the loop is private to an iteration, so each copy gets a buffer of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tensorlang.errors import CompileError
from tensorlang.ir.affine import Affine, Var, affine, substitute
from tensorlang.ir.expr import Expr, IndexValue
from tensorlang.ir.lowered import (
    Allocate,
    BoundsCheck,
    Buffer,
    FlatLoad,
    LoweredProgram,
    Store,
)
from tensorlang.ir.program import For, If, Seq, Stmt
from tensorlang.ir.walk import rewrite_expr, sequence


def unroll(program: LoweredProgram) -> LoweredProgram:
    """Return ``program`` without unrolled loops; CompileError if one has no constant extent."""
    return replace(program, body=_visit(program.body, {}, {}))


def _visit(stmt: Stmt, values: Mapping[Var, Affine], buffers: Mapping[Buffer, Buffer]) -> Stmt:
    """Return ``stmt`` with the unrolled loops around it at ``values``."""
    match stmt:
        case For(kind="unrolled"):
            if not stmt.extent.is_constant:
                raise CompileError(
                    f"the loop {stmt.variable} cannot be unrolled: its extent {stmt.extent} is not "
                    "known when compiling; split it by a constant and unroll the inner loop"
                )
            return sequence(
                *[
                    _visit(stmt.body, {**values, stmt.variable: affine(n)}, buffers)
                    for n in range(stmt.extent.constant)
                ]
            )
        case For():
            body = _visit(stmt.body, values, buffers)
            extent = substitute(stmt.extent, values)
            if body is stmt.body and extent is stmt.extent:
                return stmt
            return replace(stmt, extent=extent, body=body)
        case Seq():
            return sequence(*[_visit(child, values, buffers) for child in stmt.stmts])
        case If():
            condition = tuple([substitute(form, values) for form in stmt.condition])
            then = _visit(stmt.then, values, buffers)
            if stmt.otherwise is None:
                return If(condition, then)
            return If(condition, then, _visit(stmt.otherwise, values, buffers))
        case Allocate():
            if not values:
                return replace(stmt, body=_visit(stmt.body, values, buffers))
            buffer = replace(stmt.buffer, size=substitute(stmt.buffer.size, values))
            body = _visit(stmt.body, values, {**buffers, stmt.buffer: buffer})
            return replace(stmt, buffer=buffer, body=body)
        case Store():
            return _store_at(stmt, values, buffers) if values else stmt
        case _:
            raise TypeError(f"{type(stmt).__name__} is not a statement of a lowered program")


def _store_at(
    store: Store, values: Mapping[Var, Affine], buffers: Mapping[Buffer, Buffer]
) -> Store:
    def visit(node: Expr) -> Expr:
        match node:
            case FlatLoad():
                checks = tuple(
                    [
                        BoundsCheck(
                            substitute(check.index, values),
                            substitute(check.extent, values),
                            check.site,
                        )
                        for check in node.checks
                    ]
                )
                buffer = buffers.get(node.buffer, node.buffer)
                return FlatLoad(buffer, substitute(node.offset, values), checks)
            case IndexValue():
                return IndexValue(substitute(node.index, values), node.dtype)
            case _:
                return node

    targets = [
        (buffers.get(buffer, buffer), substitute(offset, values))
        for buffer, offset in store.targets
    ]
    return Store(tuple(targets), tuple([rewrite_expr(value, visit) for value in store.values]))
