"""Resizing of images and volumes: nearest elements, or linear in each axis.

Input:  ``interpolate(x, scale_factor=2, mode="bilinear")`` with ``x: [B, C, H, W]``
Output: ``[B, C, 2 * H, 2 * W]``

A place of the result lies between elements of ``x`` at a ratio of two integers, so that no float
is rounded before the weights are found.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import tensorlang as tl
from tensorlang.dtypes import is_float
from tensorlang.lang.mistakes import definition_error
from tensorlang.nn.agreement import narrowed, require_positive, widened

LINEAR = {"linear": 1, "bilinear": 2, "trilinear": 3}


@tl.compute
def interpolate(
    x: Any,
    *,
    size: int | tuple[int, ...] | None = None,
    scale_factor: float | tuple[float, ...] | None = None,
    mode: str = "nearest",
    align_corners: bool = False,
):
    """Return ``x: [B, C, ...]`` with its last axes, all but two, in other sizes.

    Parameters
    ----------
    x
        One to three axes after ``[B, C]``; floats, unless ``mode`` is a nearest one.
    size, scale_factor
        One of the two: the extents of the result, or what those of ``x`` are multiplied by (a
        number is taken as the nearest fraction whose denominator is at most 4096).
    mode
        ``"nearest"``: the element at ``floor(i / scale)``; ``"nearest-exact"``: that at the centre
        of ``i``; ``"linear"``, ``"bilinear"``, ``"trilinear"``: the neighbours, weighted by their
        distance, in one, two and three axes.
    align_corners
        Of the linear modes: first and last elements stay in their places.

    Raises
    ------
    DefinitionError
        For modes that do not fit the axes, and when not exactly one of the two sizes is given.

    Examples
    --------
    >>> import numpy as np, tensorlang as tl
    >>> x = np.array([[[0.0, 4.0]]])
    >>> tl.nn.interpolate.reference(x, scale_factor=2, mode="linear")[0, 0]
    array([0., 1., 3., 4.])

    """
    axes = x.ndim - 2
    if axes not in (1, 2, 3):
        raise definition_error("interpolate: x has shape [B, C, ...], with one to three more axes")
    if mode not in ("nearest", "nearest-exact", *LINEAR):
        modes = ", ".join(["nearest", "nearest-exact", *LINEAR])
        raise definition_error(f"interpolate: mode is one of {modes}, not {mode!r}")
    if LINEAR.get(mode, axes) != axes:
        raise definition_error(f"interpolate: mode {mode} does not fit {axes} axes after [B, C]")
    if align_corners and mode not in LINEAR:
        raise definition_error("interpolate: align_corners is for the linear modes")
    resized = _resized(x.shape[2:], size, scale_factor)
    for extent in x.shape[2:]:
        require_positive(extent, "interpolate: x has an empty axis")
    outer = (*x.shape[:2], *[axis.result for axis in resized])
    if mode not in LINEAR:
        exact = mode == "nearest-exact"
        return tl.tensor(
            x[
                (
                    *i[:2],
                    *[
                        axis.nearest(place, exact)
                        for axis, place in zip(resized, i[2:], strict=True)
                    ],
                )
            ]
            for i in tl.grid(outer)
        )
    if not is_float(x.dtype):
        raise definition_error(f"interpolate: x is {x.dtype.name}; cast it to a float first")

    def mixed(i: Any) -> Any:
        sides = [
            axis.neighbours(place, align_corners, x.dtype)
            for axis, place in zip(resized, i[2:], strict=True)
        ]
        total: Any = None
        for corner in itertools.product(*sides):
            value = widened(x[(*i[:2], *[place for place, _ in corner])])
            for _, weight in corner:
                value = value * weight
            total = value if total is None else total + value
        return narrowed(total, x.dtype)

    return tl.tensor(mixed(i) for i in tl.grid(outer))


@dataclass(frozen=True, slots=True)
class _Resized:
    """An axis of ``source`` elements from which ``result`` are made.

    ``result / source`` is ``numerator / denominator``, up to the rounding of ``result``.
    """

    source: Any
    result: Any
    numerator: Any
    denominator: Any

    def nearest(self, place: Any, exact: bool) -> Any:
        """Return the place in ``x`` of the element for a place of the result."""
        p, q = self.numerator, self.denominator
        found = (2 * place + 1) * q // (2 * p) if exact else place * q // p
        return tl.minimum(found, self.source - 1)

    def neighbours(
        self, place: Any, align_corners: bool, dtype: Any
    ) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
        """Return the two elements around a place of the result, each with its weight."""
        if align_corners:
            over: Any = place * (self.source - 1)
            under: Any = tl.maximum(self.result - 1, 1)
        else:
            over = tl.maximum((2 * place + 1) * self.denominator - self.numerator, 0)
            under = 2 * self.numerator
        low = tl.minimum(over // under, self.source - 1)
        high = tl.minimum(low + 1, self.source - 1)
        wide = tl.f32 if dtype.bits < 32 else dtype
        part = tl.cast(over - low * under, wide) / tl.cast(under, wide)
        return (low, 1 - part), (high, part)


def _resized(shape: Any, size: Any, scale_factor: Any) -> list[_Resized]:
    if (size is None) == (scale_factor is None):
        raise definition_error("interpolate: give either size or scale_factor")
    given = scale_factor if size is None else size
    every = _each(given, len(shape))
    kinds = (int,) if size is not None else (int, float)
    if len(every) != len(shape) or any(not isinstance(n, kinds) or n <= 0 for n in every):
        what = "scale_factor" if size is None else "size"
        raise definition_error(
            f"interpolate: {what} is a positive number, or {len(shape)} of them, not {given!r}"
        )
    if size is not None:
        return [
            _Resized(extent, number, number, extent)
            for extent, number in zip(shape, every, strict=True)
        ]
    result: list[_Resized] = []
    for extent, number in zip(shape, every, strict=True):
        ratio = Fraction(number).limit_denominator(4096)
        p, q = ratio.numerator, ratio.denominator
        result.append(_Resized(extent, extent * p // q, p, q))
    return result


def _each(given: Any, count: int) -> Any:
    """Return an attribute for each axis; one number is for all."""
    return (given,) * count if isinstance(given, int | float) else given
