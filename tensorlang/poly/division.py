"""Bounds of forms with divisions by a size, as reshapes have them.

Input:  ``M - 1 - i // N`` with ``0 <= i < M * N``         Output: it is >= 0

isl knows no division by a symbolic size, and interval arithmetic leaves it alone. Two facts are
enough for a reshape: ``x - N * (x // N)`` lies in ``0 .. N - 1``, and ``x // N`` grows with ``x``.
"""

from __future__ import annotations

from collections.abc import Iterator

from tensorlang.ir.affine import Affine, Product, SymbolicDiv, affine
from tensorlang.ir.interval import Extents, bounds, is_nonnegative


def is_nonnegative_with_divisions(form: Affine, extents: Extents) -> bool:
    """Tell whether ``form`` >= 0 for certain while the variables run; False: not known."""
    for division in dict.fromkeys(_divisions(form)):
        if not _is_positive(division.divisor, extents):
            return False
        lowered = _without(form, division, extents)
        if lowered is None:
            return False
        form = lowered
    return is_nonnegative(form, extents)


def _divisions(form: Affine) -> Iterator[SymbolicDiv]:
    for atom, _ in form.terms:
        for factor in atom.factors if isinstance(atom, Product) else (atom,):
            if isinstance(factor, SymbolicDiv):
                yield factor


def _is_positive(divisor: Affine, extents: Extents) -> bool:
    """Whether a size is at least 1, because a loop that depends on it runs at all."""
    if is_nonnegative(divisor - 1):
        return True
    if len(divisor.terms) != 1 or divisor.constant or divisor.terms[0][1] != 1:
        return False
    size = divisor.terms[0][0]
    for extent in extents.values():
        if len(extent.terms) == 1 and extent.constant <= 0 and extent.terms[0][1] > 0:
            atom = extent.terms[0][0]
            if size in (atom.factors if isinstance(atom, Product) else (atom,)):
                return True
    return False


def _without(form: Affine, division: SymbolicDiv, extents: Extents) -> Affine | None:
    """Return a lower bound of ``form`` that does not contain ``division``."""
    operand, divisor, quotient = division.operand, division.divisor, affine(division)
    # divisor * quotient = operand - remainder, and the remainder lies in 0 .. divisor - 1.
    multiple = divisor * quotient
    if len(multiple.terms) == 1:
        coefficient = form.coefficient(multiple.terms[0][0])
        form = form + (operand - multiple) * coefficient
        if coefficient > 0:
            form = form - (divisor - 1) * coefficient
    coefficient = form.coefficient(division)
    form = form - quotient * coefficient
    if division in _divisions(form):
        return None
    if coefficient > 0:
        return form if is_nonnegative(operand, extents) else None
    if coefficient < 0:
        most = _greatest_quotient(operand, divisor, extents)
        return None if most is None else form + most * coefficient
    return form


def _greatest_quotient(operand: Affine, divisor: Affine, extents: Extents) -> Affine | None:
    """Return the greatest value of ``operand // divisor``, a multiple of the divisor apart."""
    interval = bounds(operand, extents)
    if interval is None:
        return None
    greatest = interval[1] // divisor
    for atom, coef in greatest.terms:
        if not isinstance(atom, SymbolicDiv):
            continue
        if coef != 1 or not atom.operand.is_constant:
            return None
        # A constant divided by a size: below zero it is at most -1, else at most the constant.
        rest = atom.operand.constant
        greatest = greatest - affine(atom) + (-1 if rest < 0 else rest)
    return greatest
