"""Guards on statements: adding those that a step needs, and no others.

Input:  splitting ``i.o in (M + 5) // 6`` again by 8      Output: no new guard, for
``M - 1 - 6*i.o - i.i >= 0``, which is there already, implies the new one.
"""

from __future__ import annotations

from dataclasses import replace

from tensorlang.ir.affine import Affine, FloorDiv, affine, depends_on, substitute, variables_of
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


def tails_of(compute: Compute) -> tuple[Affine, ...]:
    """Return the guard without the predicate of a reduction, which its init does not have.

    A form of the predicate that only keeps the element inside its tensor stays.
    """
    stage = compute.stage
    if not stage.predicate or compute.part == "init":
        return compute.guard
    mapping = dict(zip(stage.variables, compute.binding, strict=True))
    predicate = {substitute(form, mapping) for form in stage.predicate}
    predicate.difference_update(inside_tensor(compute))
    return tuple(form for form in compute.guard if form not in predicate)


def inside_tensor(compute: Compute) -> tuple[Affine, ...]:
    """Return the forms that are >= 0 where the instance writes inside the tensor."""
    pairs = list(zip(compute.stage.axes, compute.binding, strict=False))
    upper = [axis.extent - 1 - form for axis, form in pairs]
    return (*upper, *(form for _, form in pairs))


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
            # An init has no predicate, so what it needs must not follow from that alone.
            reduction = stmt.binding[len(stmt.stage.axes) :]
            inherited = not any(depends_on(index, variables_of(form)) for index in reduction)
            if is_implied(form, tails_of(stmt) if inherited else stmt.guard, around):
                return stmt
            return replace(stmt, guard=(*stmt.guard, form))
        inner = dict(around)
        if isinstance(stmt, For):
            inner[stmt.variable] = stmt.extent
        elif isinstance(stmt, Fused):
            inner.update(zip(stmt.variables, stmt.extents, strict=True))
        return map_children(stmt, lambda child: visit(child, inner))

    return visit(body, extents)


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
