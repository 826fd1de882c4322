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
from tensorlang.ir.walk import map_indices, rewrite, rewrite_expr
from tensorlang.lower.data import map_values

_Transform: TypeAlias = Callable[[Buffer, Affine], tuple[Buffer, Affine]]


def replace_buffers(stmt: Stmt, buffers: Mapping[Buffer, Buffer]) -> Stmt:
    """Return ``stmt`` with buffers replaced, in accesses and allocations."""
    return map_accesses(stmt, lambda buffer, offset: (buffers.get(buffer, buffer), offset))


def replace_buffers_in_index(index: Affine, buffers: Mapping[Buffer, Buffer]) -> Affine:
    """Return ``index`` with buffers replaced from which it takes values."""
    return _mapped_index(index, lambda buffer, offset: (buffers.get(buffer, buffer), offset))


def map_accesses(stmt: Stmt, transform: _Transform) -> Stmt:
    """Return ``stmt`` with ``transform`` applied to the place of every load and store."""

    def visit(node: Stmt) -> Stmt:
        match node:
            case Store():
                targets = tuple(
                    [transform(b, _mapped_index(offset, transform)) for b, offset in node.targets]
                )
                values = tuple([_mapped_expr(value, transform) for value in node.values])
                return Store(targets, values)
            case PrefetchLine():
                buffer, offset = transform(node.buffer, node.offset)
                return replace(node, buffer=buffer, offset=offset)
            case Allocate():
                buffer, _ = transform(node.buffer, Affine(0))
                return node if buffer is node.buffer else replace(node, buffer=buffer)
            case If():
                condition = tuple([_mapped_index(form, transform) for form in node.condition])
                return replace(node, condition=condition)
            case _:
                return node

    return rewrite(stmt, visit)


def _mapped_expr(expr: Expr, transform: _Transform) -> Expr:
    """Return ``expr`` with its loads moved, those inside index expressions too."""

    def load(node: Expr) -> Expr:
        if not isinstance(node, FlatLoad):
            return node
        buffer, offset = transform(node.buffer, node.offset)
        if buffer is node.buffer and offset is node.offset:
            return node
        return FlatLoad(buffer, offset, node.checks)

    inner = map_indices(expr, lambda index: _mapped_index(index, transform))
    return rewrite_expr(inner, load)


def _mapped_index(index: Affine, transform: _Transform) -> Affine:
    return map_values(index, lambda value: _mapped_expr(value, transform))
