"""Move conditions as far out as they reach.

Input::                                             Output::

    unrolled for i.i in 6:                              unrolled for i.i in 6:
        vectorized for j.i in 16:                           if 6 * i.o + i.i < M:
            if 6 * i.o + i.i < M and j < N:                     vectorized for j.i in 16:
                C[...] = ...                                        if j < N:
                                                                        C[...] = ...

A condition leaves every loop that it does not depend on, provided that all stores in the loop are
under it. One that depends on a vector's lane stays inside, where it is a mask. An ``If`` with an
``else`` (a versioned tile) stays where it is.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeAlias

from tensorlang.ir.affine import Affine, depends_on
from tensorlang.ir.lowered import Allocate, LoweredProgram, PrefetchLine, Store
from tensorlang.ir.program import For, If, Seq, Stmt
from tensorlang.ir.walk import map_children
from tensorlang.lower.data import depends_on_data

_Forms: TypeAlias = tuple[Affine, ...]


def place_conditions(program: LoweredProgram) -> LoweredProgram:
    """Return ``program`` with each condition around as much as it governs."""
    body, shared = _visit(program.body)
    return replace(program, body=_under(shared or (), body))


def _visit(stmt: Stmt) -> tuple[Stmt, _Forms | None]:
    """Return ``stmt`` without the forms that all of its stores share, and those forms.

    None stands for "all forms": nothing runs in ``stmt``.
    """
    match stmt:
        case Store():
            return stmt, ()
        case PrefetchLine():
            return stmt, None  # worth its while only where something else runs
        case If(otherwise=None):
            then, shared = _visit(stmt.then)
            if shared is None:
                return then, None
            fixed = tuple([form for form in stmt.condition if depends_on_data(form)])
            forms = tuple(dict.fromkeys((*stmt.condition, *shared)))
            return _under(fixed, then), tuple([form for form in forms if form not in fixed])
        case If():
            (then, otherwise), _ = _visit_all((stmt.then, stmt.otherwise), keep=True)
            return If(stmt.condition, then, otherwise), ()
        case Seq():
            children, shared = _visit_all(stmt.stmts)
            return Seq(children), shared
        case For():
            body, shared = _visit(stmt.body)
            if not shared:
                return (stmt if body is stmt.body else replace(stmt, body=body)), shared
            inner = tuple([form for form in shared if depends_on(form, {stmt.variable})])
            outer = tuple([form for form in shared if form not in inner])
            return replace(stmt, body=_under(inner, body)), outer
        case Allocate():
            body, shared = _visit(stmt.body)
            return replace(stmt, body=body), shared
        case _:
            return map_children(stmt, lambda child: _visit(child)[0]), ()


def _visit_all(
    stmts: tuple[Stmt | None, ...], keep: bool = False
) -> tuple[tuple[Stmt, ...], _Forms | None]:
    """Visit siblings; what they do not share (with ``keep``: all of it) stays around each."""
    visited = [_visit(child) for child in stmts if child is not None]
    shared: _Forms | None = None
    for _, forms in visited:
        if forms is not None:
            shared = forms if shared is None else tuple([f for f in shared if f in forms])
    common = () if keep else shared or ()
    children = [
        _under(tuple([form for form in forms or () if form not in common]), child)
        for child, forms in visited
    ]
    return tuple(children), shared


def _under(condition: _Forms, stmt: Stmt) -> Stmt:
    return If(condition, stmt) if condition else stmt
