"""Write out unrolled loops.

Input::                         Output::

    unrolled for i in 2:            C[0] = A[0]
        C[i] = A[i]                 C[1] = A[1]

Storage inside the loop is private to an iteration, so each copy gets a buffer of its own. Where a
loop has been copied, here or by an earlier pass (versions of a tile), the copies get variables of
their own.
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
from tensorlang.ir.program import Barrier, For, If, Seq, Stmt
from tensorlang.ir.walk import rewrite_expr, sequence


def unroll(program: LoweredProgram) -> LoweredProgram:
    """Return ``program`` without unrolled loops; CompileError if one has no constant extent."""
    return replace(program, body=_Unroller().visit(program.body, {}, {}))


class _Unroller:
    """Copies statements; knows the variables and buffers that the result has already."""

    def __init__(self) -> None:
        self.seen: set[Var | Buffer] = set()

    def visit(
        self, stmt: Stmt, values: Mapping[Var, Affine], buffers: Mapping[Buffer, Buffer]
    ) -> Stmt:
        """Return ``stmt`` with loops around it at ``values``, and buffers replaced."""
        match stmt:
            case For(kind="unrolled"):
                if not stmt.extent.is_constant:
                    raise CompileError(
                        f"the loop {stmt.variable} cannot be unrolled: its extent {stmt.extent} is "
                        "not known when compiling; split it by a constant and unroll the inner loop"
                    )
                copies = [
                    self.visit(stmt.body, {**values, stmt.variable: affine(n)}, buffers)
                    for n in range(stmt.extent.constant)
                ]
                return sequence(*copies)
            case For():
                return self.visit_loop(stmt, values, buffers)
            case Seq():
                return sequence(*[self.visit(child, values, buffers) for child in stmt.stmts])
            case If():
                condition = tuple([substitute(form, values) for form in stmt.condition])
                then = self.visit(stmt.then, values, buffers)
                if stmt.otherwise is None:
                    return If(condition, then)
                return If(condition, then, self.visit(stmt.otherwise, values, buffers))
            case Allocate():
                return self.visit_storage(stmt, values, buffers)
            case Barrier():
                return Barrier()
            case Store():
                return _store_at(stmt, values, buffers) if values or buffers else stmt
            case _:
                raise TypeError(f"{type(stmt).__name__} is not a statement of a lowered program")

    def visit_loop(
        self, loop: For, values: Mapping[Var, Affine], buffers: Mapping[Buffer, Buffer]
    ) -> For:
        variable = loop.variable
        if variable in self.seen:
            variable = Var(variable.name)
            values = {**values, loop.variable: affine(variable)}
        self.seen.add(variable)
        extent = substitute(loop.extent, values)
        body = self.visit(loop.body, values, buffers)
        return replace(loop, variable=variable, extent=extent, body=body)

    def visit_storage(
        self, stmt: Allocate, values: Mapping[Var, Affine], buffers: Mapping[Buffer, Buffer]
    ) -> Allocate:
        buffer = stmt.buffer
        size = substitute(buffer.size, values)
        if buffer in self.seen or size != buffer.size:
            buffer = replace(buffer, size=size)
            buffers = {**buffers, stmt.buffer: buffer}
        self.seen.add(buffer)
        return Allocate(buffer, self.visit(stmt.body, values, buffers), stmt.zeroed)


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
