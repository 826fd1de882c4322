"""Tidy the lowered program: decided conditions, loops of one or no iteration, empty statements.

Input::                             Output::

    for i in 1:                         C[0] = A[0]
        if 5 - i >= 0:
            C[i] = A[i]
"""

from __future__ import annotations

from dataclasses import replace

from tensorlang.ir.affine import ZERO
from tensorlang.ir.lowered import Allocate, LoweredProgram, PrefetchLine, Store
from tensorlang.ir.program import BLOCK_AXES, EMPTY, THREAD_AXES, Barrier, For, If, Seq, Stmt
from tensorlang.ir.walk import sequence, substitute_in_stmt
from tensorlang.lower.known import Known, facts_of
from tensorlang.lower.simplify_guards import undecided


def fold(program: LoweredProgram) -> LoweredProgram:
    """Return ``program`` without statements that do nothing and conditions that are decided."""
    known = Known({}, facts_of(program.conditions))
    return replace(program, body=_visit(program.body, known))


def _visit(stmt: Stmt, known: Known) -> Stmt:
    match stmt:
        case For():
            return _visit_loop(stmt, known)
        case Seq():
            return sequence(*[_visit(child, known) for child in stmt.stmts])
        case If():
            return _visit_condition(stmt, known)
        case Allocate():
            body = _visit(stmt.body, known)
            return EMPTY if _is_empty(body) else replace(stmt, body=body)
        case Store() | Barrier() | PrefetchLine():
            return stmt
        case _:
            raise TypeError(f"{type(stmt).__name__} is not a statement of a lowered program")


def _visit_loop(loop: For, known: Known) -> Stmt:
    is_bound = loop.kind in (*BLOCK_AXES, *THREAD_AXES)
    if loop.extent.is_constant and loop.extent.constant <= (0 if is_bound else 1):
        if loop.extent.constant < 1:
            return EMPTY
        return _visit(substitute_in_stmt(loop.body, {loop.variable: ZERO}), known)
    body = _visit(loop.body, known.inside(loop))
    if _is_empty(body):
        return EMPTY
    return loop if body is loop.body else replace(loop, body=body)


def _visit_condition(stmt: If, known: Known) -> Stmt:
    condition = undecided(stmt.condition, known)
    if condition is None:
        return EMPTY if stmt.otherwise is None else _visit(stmt.otherwise, known)
    then = _visit(stmt.then, known.assuming(condition))
    if not condition:
        return then
    otherwise = None if stmt.otherwise is None else _visit(stmt.otherwise, known)
    if otherwise is None or _is_empty(otherwise):
        if _is_empty(then):
            return EMPTY
        if isinstance(then, If) and then.otherwise is None:
            return If(condition + then.condition, then.then)
        return If(condition, then)
    return If(condition, then, otherwise)


def _is_empty(stmt: Stmt) -> bool:
    return isinstance(stmt, Seq) and not stmt.stmts
