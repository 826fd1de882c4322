"""The outermost statements of a program, below the storage that lives throughout."""

from __future__ import annotations

from dataclasses import replace

from tensorlang.ir.program import Alloc, Seq, Stmt


def enclosing_storage(body: Stmt) -> tuple[Alloc, ...]:
    """Return the storage that lives throughout, outermost first."""
    found: list[Alloc] = []
    while isinstance(body, Alloc):
        found.append(body)
        body = body.body
    return tuple(found)


def root_statements(body: Stmt) -> tuple[Stmt, ...]:
    """Return the statements in order; a single one stands alone."""
    while isinstance(body, Alloc):
        body = body.body
    return body.stmts if isinstance(body, Seq) else (body,)


def with_root_statements(body: Stmt, stmts: Stmt) -> Stmt:
    """Return ``body`` with the statements below the outermost storage replaced."""
    if isinstance(body, Alloc):
        return replace(body, body=with_root_statements(body.body, stmts))
    return stmts
