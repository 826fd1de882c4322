"""Replace flat buffers in a lowered program.

Input:  ``S[64*i] = T[i]``, ``{S: S2}``      Output: ``S2[64*i] = T[i]``

A buffer's accesses can also be moved: the second function maps each address.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeAlias

from tensorlang.ir.affine import Affine
from tensorlang.ir.expr import Expr
from tensorlang.ir.lowered import Allocate, Buffer, FlatLoad, PrefetchLine, Store
from tensorlang.ir.program import If, Stmt
from tensorlang.ir.walk import Done, rewrite, rewrite_expr, with_indices
from tensorlang.lower.data import map_values

Transform: TypeAlias = Callable[[Buffer, Affine], tuple[Buffer, Affine]]


def replace_buffers(stmt: Stmt, buffers: Mapping[Buffer, Buffer]) -> Stmt:
    """Return ``stmt`` with buffers replaced, in accesses and allocations."""
    return map_accesses(stmt, lambda buffer, offset: (buffers.get(buffer, buffer), offset))


def map_accesses(stmt: Stmt, transform: Transform) -> Stmt:
    """Return ``stmt`` with ``transform`` applied to the place of every load and store."""
    moved = MovedAccesses(transform)

    def visit(node: Stmt) -> Stmt:
        match node:
            case Store():
                targets = tuple([transform(b, moved.index(offset)) for b, offset in node.targets])
                values = tuple([moved.expr(value) for value in node.values])
                return replace(node, targets=targets, values=values)
            case PrefetchLine():
                buffer, offset = transform(node.buffer, moved.index(node.offset))
                return replace(node, buffer=buffer, offset=offset)
            case Allocate():
                buffer, _ = transform(node.buffer, Affine(0))
                return node if buffer is node.buffer else replace(node, buffer=buffer)
            case If():
                return replace(node, condition=tuple(map(moved.index, node.condition)))
            case _:
                return node

    return rewrite(stmt, visit)


class MovedAccesses:
    """Expressions with their loads moved, those inside index expressions too, each once."""

    def __init__(self, transform: Transform) -> None:
        self._transform = transform
        self._done: Done = {}

    def expr(self, expr: Expr) -> Expr:
        """Return a value expression with its loads moved."""
        return rewrite_expr(expr, self._node, self._done)

    def index(self, index: Affine) -> Affine:
        """Return an index expression with the loads moved from which it takes values."""
        return map_values(index, self.expr)

    def _node(self, node: Expr) -> Expr:
        node = with_indices(node, self.index)
        if not isinstance(node, FlatLoad):
            return node
        buffer, offset = self._transform(node.buffer, node.offset)
        if buffer is node.buffer and offset is node.offset:
            return node
        return FlatLoad(buffer, offset, node.checks)
