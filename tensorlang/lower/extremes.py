"""The least and the greatest value that a form takes while loops run.

Input:  ``N - 1 - 16 * j.o - j.i`` with ``j.i < 16``       Output: least ``N - 16 - 16 * j.o``

Exact where the form is linear in each loop, so that what is left is the form at one iteration, the
one that decides; an interval bound otherwise; None for what depends on data.
"""

from __future__ import annotations

from typing import Literal

from tensorlang.ir.affine import ZERO, Affine, linear_coefficient, substitute, variables_of
from tensorlang.ir.interval import Extents, bounds
from tensorlang.lower.data import depends_on_data


def least(form: Affine, extents: Extents) -> Affine | None:
    """Return a lower bound of ``form`` over the loops of ``extents``, free of their variables."""
    return _extreme(form, extents, -1)


def greatest(form: Affine, extents: Extents) -> Affine | None:
    """Return an upper bound of ``form`` over the loops of ``extents``, free of their variables."""
    return _extreme(form, extents, 1)


def _extreme(form: Affine, extents: Extents, sign: Literal[-1, 1]) -> Affine | None:
    if depends_on_data(form):
        return None
    result = form
    while moving := [variable for variable in variables_of(result) if variable in extents]:
        variable = max(moving, key=lambda var: var.serial)  # any order will do, if it is fixed
        coefficient = linear_coefficient(result, variable)
        if coefficient is None:
            interval = bounds(result, extents)
            return None if interval is None else interval[0 if sign < 0 else 1]
        last = extents[variable] - 1 if coefficient * sign > 0 else ZERO
        result = substitute(result, {variable: last})
    return result
