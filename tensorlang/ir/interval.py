"""Bounds of index expressions over loops, by interval arithmetic on the linear forms.

Input:  ``16 * jo + ji`` with ``ji < 16``       Output: ``(16 * jo, 16 * jo + 15)``

Variables that are given a range disappear; all others (sizes, outer loops) stay symbolic. For the
boxes of quasi-affine accesses this gives what isl's bounding boxes give, in microseconds.
"""

from __future__ import annotations

from collections.abc import Mapping

from tensorlang.ir.affine import (
    ZERO,
    Affine,
    Atom,
    FloorDiv,
    Min,
    Product,
    SymbolicDiv,
    Var,
    affine,
    atom_variables,
    minimum,
    variables_of,
)

Extents = Mapping[Var, Affine]
"""Variables that run from 0 to an extent - 1."""

Interval = tuple[Affine, Affine]


def bounds(index: Affine, extents: Extents) -> Interval | None:
    """Return bounds of ``index`` while the variables run; None for data-dependent atoms.

    Loops are taken to run at least once. An extent may depend on other variables of ``extents``,
    which are eliminated in turn.
    """
    lower = upper = affine(index.constant)
    for form, coef in _grouped_terms(index):
        interval = _form_bounds(form, extents)
        if interval is None:
            return None
        low, high = interval if coef > 0 else (interval[1], interval[0])
        lower, upper = lower + low * coef, upper + high * coef
    if variables_of(lower).isdisjoint(extents) and variables_of(upper).isdisjoint(extents):
        return lower, upper
    inner_lower, inner_upper = bounds(lower, extents), bounds(upper, extents)
    if inner_lower is None or inner_upper is None:
        return None
    return inner_lower[0], inner_upper[1]


def _grouped_terms(index: Affine) -> list[tuple[Affine | _Remainder | Atom, int]]:
    """Split into terms, with ``x - d * (x // d)`` kept together as the remainder it is."""
    remaining = dict(index.terms)
    result: list[tuple[Affine | _Remainder | Atom, int]] = []
    for atom, coef in index.terms:
        if not isinstance(atom, FloorDiv) or coef % atom.divisor:
            continue
        factor = -coef // atom.divisor
        parts = [(inner, c * factor) for inner, c in atom.operand.terms]
        if factor and all(remaining.get(inner) == c for inner, c in parts):
            for inner, _ in parts:
                del remaining[inner]
            del remaining[atom]
            # factor * ((x + c) mod d) - factor * c
            result.append((_Remainder(atom.operand, atom.divisor), factor))
            if atom.operand.constant:
                result.append((affine(-atom.operand.constant), factor))
    result.extend(remaining.items())
    return result


class _Remainder:
    """``operand mod divisor``, recognised inside a form."""

    __slots__ = ("divisor", "operand")

    def __init__(self, operand: Affine, divisor: int) -> None:
        self.operand = operand
        self.divisor = divisor


def _form_bounds(form: Affine | _Remainder | Atom, extents: Extents) -> Interval | None:
    match form:
        case Affine():
            return form, form
        case _Remainder():
            return _remainder_bounds(form, extents)
        case Var():
            extent = extents.get(form)
            return (affine(form), affine(form)) if extent is None else (ZERO, extent - 1)
        case FloorDiv():
            inner = bounds(form.operand, extents)
            return inner and (inner[0] // form.divisor, inner[1] // form.divisor)
        case Min():
            parts = [bounds(operand, extents) for operand in form.operands]
            known = [part for part in parts if part is not None]
            if len(known) != len(parts):
                return None
            return minimum(*[low for low, _ in known]), minimum(*[high for _, high in known])
        case SymbolicDiv() | Product():
            if set(atom_variables(form)).isdisjoint(extents):
                return affine(form), affine(form)
            return _product_bounds(form, extents) if isinstance(form, Product) else None
        case _:
            return None


def _remainder_bounds(form: _Remainder, extents: Extents) -> Interval | None:
    if variables_of(form.operand).isdisjoint(extents):  # it does not move: its value is its bounds
        value = form.operand - form.operand // form.divisor * form.divisor
        return value, value
    inner = bounds(form.operand, extents)
    if inner is not None:
        low, high = inner[0] // form.divisor, inner[1] // form.divisor
        if low == high and not _has_division(low):  # the range lies within one period
            return inner[0] - low * form.divisor, inner[1] - low * form.divisor
    return ZERO, affine(form.divisor - 1)


def _has_division(form: Affine) -> bool:
    return any(isinstance(atom, FloorDiv) for atom, _ in form.terms)


def _product_bounds(form: Product, extents: Extents) -> Interval | None:
    """Bound a loop variable times sizes, or times what else is plainly not negative."""
    inner = [
        factor for factor in form.factors if not set(atom_variables(factor)).isdisjoint(extents)
    ]
    if len(inner) != 1 or not isinstance(inner[0], Var):
        return None
    rest = affine(1)
    for factor in form.factors:
        if factor is not inner[0]:
            if not _atom_nonnegative(factor):
                return None
            rest = rest * affine(factor)
    return ZERO, rest * (extents[inner[0]] - 1)


def is_nonnegative(index: Affine, extents: Extents | None = None) -> bool:
    """Tell whether ``index`` >= 0 for certain: loops within their extents, every size >= 0.

    False means "not known by interval arithmetic".
    """
    interval = bounds(index, extents or {})
    if interval is None:
        return False
    low = interval[0]
    return _plainly_nonnegative(low) or _plainly_nonnegative(_without_remainders(low))


def _without_remainders(form: Affine) -> Affine:
    """Return a lower bound of ``form`` in which no remainder ``x - d * (x // d)`` is left."""
    result = affine(form.constant)
    for part, coef in _grouped_terms(form):
        if isinstance(part, _Remainder):
            result = result + min(0, coef * (part.divisor - 1))
        elif isinstance(part, Affine):
            result = result + part * coef
        else:
            result = result + affine(part) * coef
    return result


def _plainly_nonnegative(form: Affine) -> bool:
    if form.constant < 0 or any(coef < 0 for _, coef in form.terms):
        form = _without_roundup(form)
    return form.constant >= 0 and all(
        coef > 0 and _atom_nonnegative(atom) for atom, coef in form.terms
    )


def _without_roundup(form: Affine) -> Affine:
    """Use ``d * ((x + d - 1) // d) >= x``, true of every x, to remove rounded-up extents."""
    for atom, coef in form.terms:
        if isinstance(atom, FloorDiv) and coef > 0 and coef % atom.divisor == 0:
            factor = coef // atom.divisor
            return form - affine(atom) * coef + (atom.operand - (atom.divisor - 1)) * factor
    return form


def _atom_nonnegative(atom: object) -> bool:
    match atom:
        case Var():
            return True
        case FloorDiv():
            return _plainly_nonnegative(atom.operand)
        case SymbolicDiv():
            return _plainly_nonnegative(atom.operand)
        case Product():
            return all(_atom_nonnegative(factor) for factor in atom.factors)
        case Min():
            return all(_plainly_nonnegative(operand) for operand in atom.operands)
        case _:
            return False
