"""Remove the guards that always hold, and the instances whose guard never does.

Input (with M % 6 == 0 assumed)::

    for i.o in (M + 5) // 6:
        for i.i in 6:
            Y[6 * i.o + i.i] = ...  # if 6 * i.o + i.i < M

Output: the same without the guard. Interval arithmetic decides; what it cannot see stays.
"""

from __future__ import annotations

from dataclasses import replace

from tensorlang.ir.affine import Affine
from tensorlang.ir.program import EMPTY, Compute, If, Program, Stmt
from tensorlang.ir.walk import map_children
from tensorlang.lower.known import Known, known_of


def simplify_guards(program: Program) -> Program:
    """Return ``program`` without the guards that interval arithmetic decides."""
    return replace(program, body=_visit(program.body, known_of(program)))


def _visit(stmt: Stmt, known: Known) -> Stmt:
    match stmt:
        case Compute():
            guard = undecided(stmt.guard, known)
            if guard is None:
                return EMPTY
            return stmt if guard == stmt.guard else replace(stmt, guard=guard)
        case If():
            condition = undecided(stmt.condition, known)
            if condition is None:
                return EMPTY if stmt.otherwise is None else _visit(stmt.otherwise, known)
            then = _visit(stmt.then, known.assuming(condition))
            if not condition:
                return then
            otherwise = None if stmt.otherwise is None else _visit(stmt.otherwise, known)
            return If(condition, then, otherwise)
        case _:
            inside = known.inside(stmt)
            return map_children(stmt, lambda child: _visit(child, inside))


def undecided(forms: tuple[Affine, ...], known: Known) -> tuple[Affine, ...] | None:
    """Return the forms that are not known to be >= 0; None if one is known to be negative."""
    kept: list[Affine] = []
    for form in forms:
        holds = known.decide(form)
        if holds is True:
            continue
        if holds is False:
            return None
        same = next((n for n, other in enumerate(kept) if other.terms == form.terms), None)
        if same is None:
            kept.append(form)
        elif form.constant < kept[same].constant:
            kept[same] = form
    return tuple(kept)
