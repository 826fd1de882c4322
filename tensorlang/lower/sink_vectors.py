"""Bring vectorized loops to the inside, where their lanes become vectors.

Input::                                 Output::

    vectorized for j in 8:                  vectorized for j in 8:
        C[j] = 0                                C[j] = 0
        for k in K:                         for k in K:
            C[j] = C[j] + A[k] * B[8*k+j]       vectorized for j in 8:
                                                    C[j] = C[j] + A[k] * B[8*k + j]

The lanes are independent of each other (it was proved), so the loop may be distributed over
statements and exchanged with the loops inside it. A loop whose extent depends on the lane runs as
far as the longest lane, the others masked; storage inside the loop gets a copy for each lane.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

from tensorlang.ir.affine import Affine, Var, affine, depends_on
from tensorlang.ir.expr import Expr
from tensorlang.ir.interval import bounds
from tensorlang.ir.lowered import Allocate, Buffer, FlatLoad, LoweredProgram, Store
from tensorlang.ir.program import For, If, Seq, Stmt
from tensorlang.ir.walk import iterate, map_children, rewrite_expr, sequence

_Place: TypeAlias = Callable[[Affine], Affine]


def sink_vectors(program: LoweredProgram) -> LoweredProgram:
    """Return ``program`` whose vectorized loops hold stores and conditions only."""
    return replace(program, body=_visit(program.body))


def _visit(stmt: Stmt) -> Stmt:
    if not isinstance(stmt, For) or stmt.kind != "vectorized" or _is_plain(stmt.body):
        return map_children(stmt, _visit)
    if any(isinstance(inner, For) and inner.kind == "vectorized" for inner in iterate(stmt.body)):
        return _visit(replace(stmt, kind="unrolled"))  # the innermost one makes the vectors
    return _Lanes(stmt).sink(stmt.body, ())


def _is_plain(stmt: Stmt) -> bool:
    return not any(isinstance(inner, For | Allocate) for inner in iterate(stmt))


@dataclass(slots=True)
class _Lanes:
    """A vectorized loop on its way inward."""

    loop: For

    @property
    def variable(self) -> Var:
        return self.loop.variable

    def sink(self, stmt: Stmt, mask: tuple[Affine, ...]) -> Stmt:
        """Return ``stmt`` run for all lanes that satisfy ``mask``."""
        if _is_plain(stmt):
            return replace(self.loop, body=If(mask, stmt) if mask else stmt)
        match stmt:
            case Seq():
                return sequence(*[self.sink(child, mask) for child in stmt.stmts])
            case For():
                return self._through_loop(stmt, mask)
            case If():
                return self._through_condition(stmt, mask)
            case Allocate():
                return self._through_storage(stmt, mask)
            case _:
                raise TypeError(f"{type(stmt).__name__} is not a statement of a lowered program")

    def _through_loop(self, loop: For, mask: tuple[Affine, ...]) -> Stmt:
        kind = "serial" if loop.kind == "parallel" else loop.kind
        if not depends_on(loop.extent, {self.variable}):
            return replace(loop, kind=kind, body=self.sink(loop.body, mask))
        interval = bounds(loop.extent, {self.variable: self.loop.extent})
        assert interval is not None, "extents of loops never depend on data"
        runs = loop.extent - 1 - loop.variable
        body = self.sink(loop.body, (*mask, runs))
        return replace(loop, kind=kind, extent=interval[1], body=body)

    def _through_condition(self, stmt: If, mask: tuple[Affine, ...]) -> Stmt:
        if not any(depends_on(form, {self.variable}) for form in stmt.condition):
            otherwise = None if stmt.otherwise is None else self.sink(stmt.otherwise, mask)
            return If(stmt.condition, self.sink(stmt.then, mask), otherwise)
        then = self.sink(stmt.then, (*mask, *stmt.condition))
        if stmt.otherwise is None:
            return then
        # The lanes that fail: those whose first failing form is the first, the second, ...
        rest: list[Stmt] = []
        for n, form in enumerate(stmt.condition):
            failing = (*mask, *stmt.condition[:n], -form - 1)
            rest.append(self.sink(stmt.otherwise, failing))
        return sequence(then, *rest)

    def _through_storage(self, stmt: Allocate, mask: tuple[Affine, ...]) -> Stmt:
        lanes = self.loop.extent
        old = stmt.buffer
        new = replace(old, size=old.size * lanes)

        def place(offset: Affine) -> Affine:
            return offset * lanes + affine(self.variable)

        body = _with_buffer(stmt.body, old, new, place)
        return replace(stmt, buffer=new, body=self.sink(body, mask))


def _with_buffer(stmt: Stmt, old: Buffer, new: Buffer, place: _Place) -> Stmt:
    def visit_expr(node: Expr) -> Expr:
        if isinstance(node, FlatLoad) and node.buffer is old:
            return FlatLoad(new, place(node.offset), node.checks)
        return node

    if isinstance(stmt, Store):
        targets = [(new, place(o)) if buffer is old else (buffer, o) for buffer, o in stmt.targets]
        values = tuple([rewrite_expr(v, visit_expr) for v in stmt.values])
        return replace(stmt, targets=tuple(targets), values=values)
    return map_children(stmt, lambda child: _with_buffer(child, old, new, place))
