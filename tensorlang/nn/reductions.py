"""Reductions over one axis, several, or all: sum, mean, var, amax, norm and others.

Input:  ``mean(x, axis=(0, -1), keepdim=True)`` with ``x: f32[A, B, C]``
Output: ``f32[1, B, 1]``

``axis`` is an integer, a tuple of them, or None for all axes; ``keepdim`` keeps what is reduced as
axes of one element. f16 and bf16 are accumulated in f32 and rounded once, at the end.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import tensorlang as tl
from tensorlang.dtypes import is_float
from tensorlang.lang.mistakes import definition_error
from tensorlang.nn.agreement import axis_positions, narrowed, widened

Axes = int | tuple[int, ...] | None


class Reduced:
    """The axes that are reduced, and the index of an element from the two parts of it."""

    def __init__(self, x: Any, axis: Axes, keepdim: bool, operator: str) -> None:
        self.axes = axis_positions(axis, x.ndim, operator)
        self.keepdim = keepdim
        self.inner: list[Any] = [x.shape[place] for place in self.axes]
        self.count: Any = math.prod(self.inner, start=1)
        self.full: list[Any] = [1 if p in self.axes else x.shape[p] for p in range(x.ndim)]
        kept = [x.shape[place] for place in range(x.ndim) if place not in self.axes]
        self.outer: list[Any] = self.full if keepdim else kept
        self.rank: int = x.ndim

    def at(self, i: Any, j: Any) -> tuple[Any, ...]:
        """Return the index of the element that point ``j`` contributes to the result at ``i``."""
        reduced, kept = iter(j), iter(i)
        index: list[Any] = []
        for place in range(self.rank):
            if place in self.axes:
                index.append(next(reduced))
                if self.keepdim:
                    next(kept)
            else:
                index.append(next(kept))
        return tuple(index)

    def result_at(self, i: Any) -> tuple[Any, ...]:
        """Return where the result of the element ``i`` of the tensor lies."""
        if self.keepdim:
            return tuple([0 if place in self.axes else i[place] for place in range(self.rank)])
        return tuple([i[place] for place in range(self.rank) if place not in self.axes])


@tl.compute
def sum(x: Any, *, axis: Axes = None, keepdim: bool = False):
    """Return the sum of the elements; of integers and bools as i64 (u64 stays)."""
    over = Reduced(x, axis, keepdim, "sum")
    dtype = accumulated(x.dtype)
    return tl.tensor(
        tl.sum((x[over.at(i, j)] for j in tl.grid(over.inner)), dtype=dtype)
        for i in tl.grid(over.outer)
    )


@tl.compute
def prod(x: Any, *, axis: Axes = None, keepdim: bool = False):
    """Return the product of the elements; of integers and bools as i64 (u64 stays)."""
    over = Reduced(x, axis, keepdim, "prod")
    dtype = accumulated(x.dtype)
    return tl.tensor(
        tl.prod((x[over.at(i, j)] for j in tl.grid(over.inner)), dtype=dtype)
        for i in tl.grid(over.outer)
    )


@tl.compute
def mean(x: Any, *, axis: Axes = None, keepdim: bool = False):
    """Return the mean; NaN of no elements. Integers have a mean in f64."""
    over = Reduced(x, axis, keepdim, "mean")
    total = tl.tensor(
        tl.sum((widened(x[over.at(i, j)]) for j in tl.grid(over.inner)), dtype=accumulated(x.dtype))
        for i in tl.grid(over.outer)
    )
    return tl.tensor(narrowed(total[i] / over.count, x.dtype) for i in tl.grid(over.outer))


@tl.compute
def var(x: Any, *, axis: Axes = None, correction: int = 1, keepdim: bool = False):
    """Return the variance, divided by ``count - correction``.

    It is found from the centred values, so that a large mean does not cancel it. NaN where there
    are no more than ``correction`` elements, all of them equal.
    """
    return _variance(x, axis, correction, keepdim, "var", lambda value: value)


@tl.compute
def std(x: Any, *, axis: Axes = None, correction: int = 1, keepdim: bool = False):
    """Return the standard deviation, the square root of ``var``."""
    return _variance(x, axis, correction, keepdim, "std", tl.sqrt)


def _variance(
    x: Any,
    axis: Axes,
    correction: int,
    keepdim: bool,
    operator: str,
    finish: Callable[[Any], Any],
) -> Any:
    if not is_float(x.dtype):
        raise definition_error(f"{operator}: x is {x.dtype.name}; cast it to a float first")
    over = Reduced(x, axis, keepdim, operator)
    total = tl.tensor(
        tl.sum(widened(x[over.at(i, j)]) for j in tl.grid(over.inner)) for i in tl.grid(over.outer)
    )
    centred = tl.tensor(
        widened(x[i]) - total[over.result_at(i)] / over.count for i in tl.grid(x.shape)
    )
    squares = tl.tensor(
        tl.sum(centred[over.at(i, j)] * centred[over.at(i, j)] for j in tl.grid(over.inner))
        for i in tl.grid(over.outer)
    )
    divisor = tl.maximum(over.count - correction, 0)
    return tl.tensor(narrowed(finish(squares[i] / divisor), x.dtype) for i in tl.grid(over.outer))


@tl.compute
def amax(x: Any, *, axis: Axes = None, keepdim: bool = False):
    """Return the greatest element; NaN if there is one; the dtype's least of no elements."""
    over = Reduced(x, axis, keepdim, "amax")
    return tl.tensor(
        tl.max(x[over.at(i, j)] for j in tl.grid(over.inner)) for i in tl.grid(over.outer)
    )


@tl.compute
def amin(x: Any, *, axis: Axes = None, keepdim: bool = False):
    """Return the least element; NaN if there is one; the dtype's greatest of no elements."""
    over = Reduced(x, axis, keepdim, "amin")
    return tl.tensor(
        tl.min(x[over.at(i, j)] for j in tl.grid(over.inner)) for i in tl.grid(over.outer)
    )


@tl.compute
def all(x: Any, *, axis: Axes = None, keepdim: bool = False):
    """Tell whether every element is true (numbers: not 0); true of no elements."""
    over = Reduced(x, axis, keepdim, "all")
    return tl.tensor(
        tl.all(x[over.at(i, j)] for j in tl.grid(over.inner)) for i in tl.grid(over.outer)
    )


@tl.compute
def any(x: Any, *, axis: Axes = None, keepdim: bool = False):
    """Tell whether some element is true (numbers: not 0); false of no elements."""
    over = Reduced(x, axis, keepdim, "any")
    return tl.tensor(
        tl.any(x[over.at(i, j)] for j in tl.grid(over.inner)) for i in tl.grid(over.outer)
    )


@tl.compute
def argmax(x: Any, *, axis: int | None = None, keepdim: bool = False):
    """Return where the greatest element is along ``axis``, in the flat tensor if that is None."""
    over = Reduced(x, axis, keepdim, "argmax")
    return tl.tensor(
        tl.argmax(x[over.at(i, j)] for j in tl.grid(over.inner)) for i in tl.grid(over.outer)
    )


@tl.compute
def argmin(x: Any, *, axis: int | None = None, keepdim: bool = False):
    """Return where the least element is along ``axis``, in the flat tensor if that is None."""
    over = Reduced(x, axis, keepdim, "argmin")
    return tl.tensor(
        tl.argmin(x[over.at(i, j)] for j in tl.grid(over.inner)) for i in tl.grid(over.outer)
    )


@tl.compute
def logsumexp(x: Any, *, axis: Axes = None, keepdim: bool = False):
    """Return ``log(sum(exp(x)))`` without overflow; minus infinity of no elements."""
    over = Reduced(x, axis, keepdim, "logsumexp")
    top = tl.tensor(
        tl.max(widened(x[over.at(i, j)]) for j in tl.grid(over.inner)) for i in tl.grid(over.outer)
    )
    # an infinite top would make inf - inf; exp needs no help then
    shift = tl.tensor(tl.where(tl.isinf(top[i]), 0, top[i]) for i in tl.grid(over.outer))
    total = tl.tensor(
        tl.sum(tl.exp(widened(x[over.at(i, j)]) - shift[i]) for j in tl.grid(over.inner))
        for i in tl.grid(over.outer)
    )
    return tl.tensor(narrowed(tl.log(total[i]) + shift[i], x.dtype) for i in tl.grid(over.outer))


@tl.compute
def norm(x: Any, *, p: float = 2.0, axis: Axes = None, keepdim: bool = False):
    """Return the p-norm of the elements, ``sum(|x| ** p) ** (1 / p)``.

    ``p`` is any number: infinity is the greatest absolute value, minus infinity the least, 0 counts
    the elements that are not 0.
    """
    if not is_float(x.dtype):
        raise definition_error(f"norm: x is {x.dtype.name}; cast it to a float first")
    over = Reduced(x, axis, keepdim, "norm")
    reduce, before, after = _norm_parts(float(p))
    total = tl.tensor(
        reduce(before(widened(x[over.at(i, j)])) for j in tl.grid(over.inner))
        for i in tl.grid(over.outer)
    )
    return tl.tensor(narrowed(after(total[i]), x.dtype) for i in tl.grid(over.outer))


def _norm_parts(
    p: float,
) -> tuple[Callable[[Any], Any], Callable[[Any], Any], Callable[[Any], Any]]:
    """Return what reduces, what is done with each element, and what with the result."""
    if math.isinf(p):
        return (tl.max if p > 0 else tl.min), tl.abs, lambda total: total
    if p == 0:
        return tl.sum, lambda value: tl.cast(value != 0, value.dtype), lambda total: total
    if p == 1:
        return tl.sum, tl.abs, lambda total: total
    if p == 2:
        return tl.sum, lambda value: value * value, tl.sqrt
    return (
        tl.sum,
        lambda value: tl.pow(tl.abs(value), p),
        lambda total: tl.pow(total, 1 / p),
    )


def accumulated(dtype: Any) -> Any:
    """Return the dtype in which elements are added; None keeps that of the elements."""
    if is_float(dtype):
        return None
    return tl.u64 if dtype is tl.u64 else tl.i64
