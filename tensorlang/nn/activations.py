"""Activations: relu, sigmoid, tanh by element, softmax along an axis.

Input:  a tensor of any rank     Output: one of the same shape and dtype
"""

from __future__ import annotations

from typing import Any

import tensorlang as tl
from tensorlang.nn.agreement import axis_position


@tl.compute
def relu(x: Any):
    """Return ``max(x, 0)`` by element; NaN stays NaN."""
    return tl.tensor(tl.maximum(x[i], 0) for i in tl.grid(x.shape))


@tl.compute
def sigmoid(x: Any):
    """Return ``1 / (1 + exp(-x))`` by element."""
    return tl.tensor(tl.sigmoid(x[i]) for i in tl.grid(x.shape))


@tl.compute
def tanh(x: Any):
    """Return the hyperbolic tangent by element."""
    return tl.tensor(tl.tanh(x[i]) for i in tl.grid(x.shape))


@tl.compute
def softmax(x: Any, *, axis: int = -1):
    """Return ``exp(x)`` divided by its sum along ``axis``, without overflow."""
    place = axis_position(axis, x.ndim, "softmax")
    rest = x.shape.drop(place)
    top = tl.tensor(tl.max(x[i.insert(place, j)] for j in x.shape[place]) for i in tl.grid(rest))
    e = tl.tensor(tl.exp(x[i] - top[i.drop(place)]) for i in tl.grid(x.shape))
    total = tl.tensor(tl.sum(e[i.insert(place, j)] for j in x.shape[place]) for i in tl.grid(rest))
    return tl.tensor(e[i] / total[i.drop(place)] for i in tl.grid(x.shape))
