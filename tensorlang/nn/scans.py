"""Running sums and products along an axis.

Input:  ``cumsum(x, axis=-1)`` with ``x = [1, 2, 3]``
Output: ``[1, 3, 6]``
"""

from __future__ import annotations

import operator as python
from typing import Any

import tensorlang as tl
from tensorlang.nn.agreement import axis_position
from tensorlang.nn.reductions import accumulated


@tl.compute
def cumsum(x: Any, *, axis: int):
    """Return running sums along ``axis``; of integers and bools as i64 (u64 stays)."""
    place = axis_position(axis, x.ndim, "cumsum")
    dtype = accumulated(x.dtype)
    running = tl.tensor(
        tl.scan(
            python.add,
            0,
            (_as(x[i.insert(place, j)], dtype) for j in x.shape[place]),
        )
        for i in tl.grid(x.shape.drop(place))
    )
    return _moved(running, x.shape, place)


@tl.compute
def cumprod(x: Any, *, axis: int):
    """Return running products along ``axis``; of integers and bools as i64 (u64 stays)."""
    place = axis_position(axis, x.ndim, "cumprod")
    dtype = accumulated(x.dtype)
    running = tl.tensor(
        tl.scan(
            python.mul,
            1,
            (_as(x[i.insert(place, j)], dtype) for j in x.shape[place]),
        )
        for i in tl.grid(x.shape.drop(place))
    )
    return _moved(running, x.shape, place)


def _as(value: Any, dtype: Any) -> Any:
    return value if dtype is None else tl.cast(value, dtype)


def _moved(running: Any, shape: Any, place: int) -> Any:
    """Return a tensor whose last axis becomes axis ``place``."""
    if place == len(shape) - 1:
        return running
    return tl.tensor(running[(*i.drop(place), i[place])] for i in tl.grid(shape))
