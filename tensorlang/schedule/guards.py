"""Guards on statements: adding those that a step needs, and no others.

Input:  splitting ``i.o in (M + 5) // 6`` again by 8      Output: no new guard, for
``M - 1 - 6*i.o - i.i >= 0``, which is there already, implies the new one.
"""

from __future__ import annotations

from dataclasses import replace

from tensorlang.ir.affine import Affine, FloorDiv, affine, substitute
from tensorlang.ir.interval import Extents, is_nonnegative
from tensorlang.ir.program import Compute, For, Fused, Seq, Stmt
from tensorlang.ir.walk import map_children


def normalized(form: Affine) -> Affine:
    """Return an equivalent of ``form >= 0`` without a rounding division where that is possible.

    ``floor(y / d) + r >= 0`` holds exactly where ``y + d * r >= 0``.
    """
    divisions = [(a, c) for a, c in form.terms if isinstance(a, FloorDiv)]
    if len(divisions) != 1 or divisions[0][1] != 1:
        return form
    atom = divisions[0][0]
    assert isinstance(atom, FloorDiv)
    rest = form - affine(atom)
    return atom.operand + rest * atom.divisor


def is_implied(form: Affine, guard: tuple[Affine, ...], extents: Extents) -> bool:
    """Tell whether ``form >= 0`` follows from the loops' extents and one form of ``guard``."""
    if is_nonnegative(form, extents):
        return True
    return any(is_nonnegative(form - known, extents) for known in guard)


def add_guard(body: Stmt, form: Affine, extents: Extents) -> Stmt:
    """Return ``body`` with ``form >= 0`` required of every statement that does not imply it."""
    form = normalized(form)

    def visit(stmt: Stmt, around: Extents) -> Stmt:
        if isinstance(stmt, Compute):
            if is_implied(form, _lasting_guard(stmt), around):
                return stmt
            return replace(stmt, guard=(*stmt.guard, form))
        inner = dict(around)
        if isinstance(stmt, For):
            inner[stmt.variable] = stmt.extent
        elif isinstance(stmt, Fused):
            inner.update(zip(stmt.variables, stmt.extents, strict=True))
        return map_children(stmt, lambda child: visit(child, inner))

    return visit(body, extents)


def _lasting_guard(compute: Compute) -> tuple[Affine, ...]:
    """Return the guards that hold for the init of a reduction too: all but its predicate."""
    predicate = compute.stage.predicate
    if not predicate:
        return compute.guard
    mapping = dict(zip(compute.stage.variables, compute.binding, strict=True))
    lost = {substitute(form, mapping) for form in predicate}
    return tuple(form for form in compute.guard if form not in lost)


def without_known(body: Stmt, extents: Extents) -> Stmt:
    """Return ``body`` without guards that the loops' extents imply."""

    def visit(stmt: Stmt, around: Extents) -> Stmt:
        if isinstance(stmt, Compute):
            kept = tuple(form for form in stmt.guard if not is_nonnegative(form, around))
            return stmt if len(kept) == len(stmt.guard) else replace(stmt, guard=kept)
        if isinstance(stmt, Seq):
            return map_children(stmt, lambda child: visit(child, around))
        inner = dict(around)
        if isinstance(stmt, For):
            inner[stmt.variable] = stmt.extent
        elif isinstance(stmt, Fused):
            inner.update(zip(stmt.variables, stmt.extents, strict=True))
        return map_children(stmt, lambda child: visit(child, inner))

    return visit(body, extents)
