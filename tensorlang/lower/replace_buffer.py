"""Replace flat buffers in a lowered program.

Input:  ``S[64*i] = T[i]``, ``{S: S2}``      Output: ``S2[64*i] = T[i]``

A buffer's accesses can also be moved: the second function maps each address.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from tensorlang.ir.affine import Affine
from tensorlang.ir.expr import Expr
from tensorlang.ir.lowered import Allocate, Buffer, FlatLoad, Store
from tensorlang.ir.program import Stmt
from tensorlang.ir.walk import rewrite, rewrite_expr


def replace_buffers(stmt: Stmt, buffers: Mapping[Buffer, Buffer]) -> Stmt:
    """Return ``stmt`` with buffers replaced, in accesses and allocations."""
    return map_accesses(stmt, lambda buffer, offset: (buffers.get(buffer, buffer), offset))


def map_accesses(stmt: Stmt, transform: Callable[[Buffer, Affine], tuple[Buffer, Affine]]) -> Stmt:
    """Return ``stmt`` with ``transform`` applied to the place of every load and store."""

    def load(node: Expr) -> Expr:
        if not isinstance(node, FlatLoad):
            return node
        buffer, offset = transform(node.buffer, node.offset)
        if buffer is node.buffer and offset is node.offset:
            return node
        return FlatLoad(buffer, offset, node.checks)

    def visit(node: Stmt) -> Stmt:
        match node:
            case Store():
                targets = tuple([transform(buffer, offset) for buffer, offset in node.targets])
                return Store(targets, tuple([rewrite_expr(value, load) for value in node.values]))
            case Allocate():
                buffer, _ = transform(node.buffer, Affine(0))
                return node if buffer is node.buffer else replace(node, buffer=buffer)
            case _:
                return node

    return rewrite(stmt, visit)
