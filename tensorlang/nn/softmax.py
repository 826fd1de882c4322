"""Softmax along an axis, its logarithm and its mirror.

Input:  ``log_softmax(x, axis=1)`` with ``x`` of any rank and float dtype
Output: a tensor of the same shape and dtype

The greatest element is subtracted first, so that ``exp`` cannot overflow.
"""

from __future__ import annotations

from typing import Any

import tensorlang as tl
from tensorlang.nn.agreement import axis_position


@tl.compute
def softmax(x: Any, *, axis: int = -1):
    """Return ``exp(x)`` divided by its sum along ``axis``, without overflow."""
    place = axis_position(axis, x.ndim, "softmax")
    rest = x.shape.drop(place)
    top = tl.tensor(tl.max(x[i.insert(place, j)] for j in x.shape[place]) for i in tl.grid(rest))
    e = tl.tensor(tl.exp(x[i] - top[i.drop(place)]) for i in tl.grid(x.shape))
    total = tl.tensor(tl.sum(e[i.insert(place, j)] for j in x.shape[place]) for i in tl.grid(rest))
    return tl.tensor(e[i] / total[i.drop(place)] for i in tl.grid(x.shape))


@tl.compute
def softmin(x: Any, *, axis: int = -1):
    """Return the softmax of ``-x`` along ``axis``."""
    place = axis_position(axis, x.ndim, "softmin")
    negated = tl.tensor(-x[i] for i in tl.grid(x.shape))
    return softmax(negated, axis=place)


@tl.compute
def log_softmax(x: Any, *, axis: int = -1):
    """Return the logarithm of the softmax along ``axis``: ``x - top - log(sum(exp(x - top)))``."""
    place = axis_position(axis, x.ndim, "log_softmax")
    rest = x.shape.drop(place)
    top = tl.tensor(tl.max(x[i.insert(place, j)] for j in x.shape[place]) for i in tl.grid(rest))
    total = tl.tensor(
        tl.sum(tl.exp(x[i.insert(place, j)] - top[i]) for j in x.shape[place])
        for i in tl.grid(rest)
    )
    return tl.tensor(
        x[i] - top[i.drop(place)] - tl.log(total[i.drop(place)]) for i in tl.grid(x.shape)
    )
