"""Normalization: over trailing axes, over channels of a batch, over groups of channels.

Input:  ``layer_norm(x, w, b)`` with ``x: [..., N]``, ``w: [N]``, ``b: [N]``
Output: a tensor of the shape and dtype of ``x``

Variances are those of the population, found from the centred values, so that a large mean does not
cancel them. f16 and bf16 are computed in f32 and rounded once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorlang as tl
from tensorlang.dtypes import is_float
from tensorlang.lang.mistakes import definition_error
from tensorlang.nn.agreement import narrowed, product_of, require_equal, widened


@tl.compute
def layer_norm(x: Any, w: Any = None, b: Any = None, *, eps: float = 1e-5):
    """Return ``(x - mean) / sqrt(variance + eps) * w + b`` over the last axes.

    These are as many axes as ``w`` and ``b`` have, and one without them.
    """
    lead = _lead("layer_norm", x, w, b)
    rows, inner = x.shape[:lead], x.shape[lead:]
    count = product_of(inner)
    total = tl.tensor(tl.sum(widened(x[(*i, *k)]) for k in tl.grid(inner)) for i in tl.grid(rows))
    centred = tl.tensor(widened(x[i]) - total[i[:lead]] / count for i in tl.grid(x.shape))
    squares = tl.tensor(
        tl.sum(centred[(*i, *k)] * centred[(*i, *k)] for k in tl.grid(inner)) for i in tl.grid(rows)
    )
    scale = tl.tensor(1 / tl.sqrt(squares[i] / count + eps) for i in tl.grid(rows))

    def scaled(i: Any) -> Any:
        value = centred[i] * scale[i[:lead]]
        value = value if w is None else value * widened(w[i[lead:]])
        value = value if b is None else value + widened(b[i[lead:]])
        return narrowed(value, x.dtype)

    return tl.tensor(scaled(i) for i in tl.grid(x.shape))


@tl.compute
def rms_norm(x: Any, w: Any = None, *, eps: float | None = None):
    """Return ``x / sqrt(mean(x * x) + eps) * w`` over the last axes (Zhang and Sennrich, 2019).

    These are as many axes as ``w`` has, and one without it. ``eps`` is the dtype's precision
    unless given.
    """
    lead = _lead("rms_norm", x, w)
    rows, inner = x.shape[:lead], x.shape[lead:]
    count = product_of(inner)
    least = _precision(x.dtype) if eps is None else eps
    squares = tl.tensor(
        tl.sum(widened(x[(*i, *k)]) * widened(x[(*i, *k)]) for k in tl.grid(inner))
        for i in tl.grid(rows)
    )
    scale = tl.tensor(1 / tl.sqrt(squares[i] / count + least) for i in tl.grid(rows))

    def scaled(i: Any) -> Any:
        value = widened(x[i]) * scale[i[:lead]]
        return narrowed(value if w is None else value * widened(w[i[lead:]]), x.dtype)

    return tl.tensor(scaled(i) for i in tl.grid(x.shape))


@tl.compute
def batch_norm(
    x: Any,
    mean: Any = None,
    var: Any = None,
    w: Any = None,
    b: Any = None,
    *,
    training: bool = False,
    eps: float = 1e-5,
):
    """Return ``(x - mean) / sqrt(var + eps) * w + b`` for each channel, the second axis of ``x``.

    ``mean`` and ``var``, the running statistics, are given unless ``training``, in which case they
    are those of the batch; an operator has no state, so none is updated.
    """
    channels = _channels("batch_norm", x, mean=mean, var=var, w=w, b=b)
    if not training and (mean is None or var is None):
        raise definition_error("batch_norm: mean and var are needed unless training=True")
    scaled = _affine(w, b)
    if not training:
        scale = tl.tensor(1 / tl.sqrt(widened(var[c]) + eps) for c in channels)
        return tl.tensor(
            narrowed(scaled((widened(x[i]) - widened(mean[i[1]])) * scale[i[1]], i[1]), x.dtype)
            for i in tl.grid(x.shape)
        )
    inner = x.shape.drop(1)
    count = product_of(inner)
    total = tl.tensor(tl.sum(widened(x[k.insert(1, c)]) for k in tl.grid(inner)) for c in channels)
    centred = tl.tensor(widened(x[i]) - total[i[1]] / count for i in tl.grid(x.shape))
    squares = tl.tensor(
        tl.sum(centred[k.insert(1, c)] * centred[k.insert(1, c)] for k in tl.grid(inner))
        for c in channels
    )
    scale = tl.tensor(1 / tl.sqrt(squares[c] / count + eps) for c in channels)
    return tl.tensor(
        narrowed(scaled(centred[i] * scale[i[1]], i[1]), x.dtype) for i in tl.grid(x.shape)
    )


@tl.compute
def instance_norm(x: Any, w: Any = None, b: Any = None, *, eps: float = 1e-5):
    """Return ``x`` normalized over all axes after the channels: ``x: [B, C, ...]``.

    ``w`` and ``b`` have one element for each channel.
    """
    _channels("instance_norm", x, w=w, b=b)
    rows, inner = x.shape[:2], x.shape[2:]
    count = product_of(inner)
    scaled = _affine(w, b)
    total = tl.tensor(tl.sum(widened(x[(*i, *k)]) for k in tl.grid(inner)) for i in tl.grid(rows))
    centred = tl.tensor(widened(x[i]) - total[i[:2]] / count for i in tl.grid(x.shape))
    squares = tl.tensor(
        tl.sum(centred[(*i, *k)] * centred[(*i, *k)] for k in tl.grid(inner)) for i in tl.grid(rows)
    )
    scale = tl.tensor(1 / tl.sqrt(squares[i] / count + eps) for i in tl.grid(rows))
    return tl.tensor(
        narrowed(scaled(centred[i] * scale[i[:2]], i[1]), x.dtype) for i in tl.grid(x.shape)
    )


@tl.compute
def group_norm(x: Any, w: Any = None, b: Any = None, *, num_groups: int, eps: float = 1e-5):
    """Return ``x: [B, C, ...]`` normalized over groups of neighbouring channels (Wu and He, 2018).

    ``w`` and ``b`` have one element for each channel; ``num_groups`` divides the channels.
    """
    channels = _channels("group_norm", x, w=w, b=b)
    if num_groups < 1:
        raise definition_error(f"group_norm: num_groups must be at least 1, not {num_groups}")
    require_equal(channels % num_groups, 0, "group_norm: num_groups must divide the channels")
    share = channels // num_groups
    inner = x.shape[2:]
    count = product_of(inner) * share
    scaled = _affine(w, b)
    split = (x.shape[0], num_groups, share, *inner)
    groups = tl.tensor(widened(x[(i[0], i[1] * share + i[2], *i[3:])]) for i in tl.grid(split))
    total = tl.tensor(
        tl.sum(groups[(n, g, *k)] for k in tl.grid((share, *inner)))
        for n in x.shape[0]
        for g in tl.range(num_groups)
    )
    centred = tl.tensor(groups[i] - total[i[:2]] / count for i in tl.grid(split))
    squares = tl.tensor(
        tl.sum(centred[(n, g, *k)] * centred[(n, g, *k)] for k in tl.grid((share, *inner)))
        for n in x.shape[0]
        for g in tl.range(num_groups)
    )
    scale = tl.tensor(
        1 / tl.sqrt(squares[n, g] / count + eps) for n in x.shape[0] for g in tl.range(num_groups)
    )

    def place(i: Any) -> tuple[Any, ...]:
        return (i[0], i[1] // share, i[1] % share, *i[2:])

    return tl.tensor(
        narrowed(scaled(centred[place(i)] * scale[place(i)[:2]], i[1]), x.dtype)
        for i in tl.grid(x.shape)
    )


def _affine(w: Any, b: Any) -> Callable[[Any, Any], Any]:
    """Return the function that applies weight and bias of a channel to a value."""

    def scaled(value: Any, channel: Any) -> Any:
        value = value if w is None else value * widened(w[channel])
        return value if b is None else value + widened(b[channel])

    return scaled


def _channels(operator: str, x: Any, **parameters: Any) -> Any:
    """Return the number of channels, which all parameters that are given must have."""
    _check_float(operator, x)
    if x.ndim < 2:
        raise definition_error(f"{operator}: x has shape [B, C, ...]")
    for name, parameter in parameters.items():
        if parameter is None:
            continue
        if parameter.ndim != 1:
            raise definition_error(f"{operator}: {name} has one axis, the channels of x")
        message = f"{operator}: {name} has one element for each channel of x"
        require_equal(parameter.shape[0], x.shape[1], message)
    return x.shape[1]


def _lead(operator: str, x: Any, w: Any, b: Any = None) -> int:
    """Return how many axes come before those that are normalized over."""
    _check_float(operator, x)
    ranks = {parameter.ndim for parameter in (w, b) if parameter is not None} or {1}
    inner = max(ranks)
    if x.ndim < inner or not inner:
        raise definition_error(f"{operator}: x has no axis to normalize over")
    if len(ranks) > 1:
        raise definition_error(f"{operator}: w and b must have the same axes, the last of x")
    for name, parameter in (("w", w), ("b", b)):
        if parameter is not None:
            axes = "axis" if inner == 1 else f"{inner} axes"
            for found, wanted in zip(parameter.shape, x.shape[-inner:], strict=True):
                message = f"{operator}: {name} and the last {axes} of x must agree"
                require_equal(found, wanted, message)
    return x.ndim - inner


def _check_float(operator: str, x: Any) -> None:
    if not is_float(x.dtype):
        raise definition_error(f"{operator}: x is {x.dtype.name}; cast it to a float first")


def _precision(dtype: Any) -> float:
    """Return the distance from 1 to the next number that ``dtype`` has."""
    digits = {tl.f16: 10, tl.bf16: 7, tl.f32: 23, tl.f64: 52}
    return 2.0 ** -digits[dtype]
