"""Scaled dot-product attention, as one operator that every schedule can see through.

Input:  ``attention(q, k, v)`` with ``q: [..., L, E]``, ``k: [..., S, E]``, ``v: [..., S, D]``
Output: ``[..., L, D]``: for each query the values, weighted by the softmax of its scores
"""

from __future__ import annotations

import math
from typing import Any

import tensorlang as tl
from tensorlang.dtypes import bool_, is_float
from tensorlang.lang.mistakes import definition_error
from tensorlang.nn.agreement import narrowed, require_equal, widened

_LOG2_E = 1 / math.log(2)


@tl.compute
def attention(
    q: Any, k: Any, v: Any, mask: Any = None, *, scale: float | None = None, causal: bool = False
):
    """Return ``softmax(scale * q @ k.T + mask) @ v``.

    Parameters
    ----------
    q, k, v
        ``[..., L, E]``, ``[..., S, E]`` and ``[..., S, D]``, with the same leading axes.
    mask
        Over the last axes of ``[..., L, S]``: bools (true: take part) or floats, which are added to
        the scores. A query for which nothing takes part gets zeros.
    scale
        What scores are multiplied by, ``1 / sqrt(E)`` unless given.
    causal
        Query i sees the keys up to i only.

    Raises
    ------
    DefinitionError, ValueError
        For ranks that do not fit; at the call, for extents that do not agree.

    Examples
    --------
    >>> import numpy as np, tensorlang as tl
    >>> q = k = v = np.eye(2)
    >>> tl.nn.attention.reference(q, k, v, causal=True)[0]
    array([1., 0.])

    """
    if q.ndim < 2 or k.ndim != q.ndim or v.ndim != q.ndim:
        raise definition_error(
            "attention: q, k and v have shapes [..., L, E], [..., S, E], [..., S, D]"
        )
    for axis in range(q.ndim - 2):
        for other in (k, v):
            message = "attention: the leading axes of q, k and v must be equal"
            require_equal(q.shape[axis], other.shape[axis], message)
    require_equal(q.shape[-1], k.shape[-1], "attention: q and k have the same last axis")
    require_equal(k.shape[-2], v.shape[-2], "attention: k and v have the same number of rows")
    *lead, queries, depth = q.shape
    keys, width = k.shape[-2], v.shape[-1]
    _check_mask(mask, (*lead, queries, keys))
    square = (*lead, queries, keys)
    wide = tl.f32 if q.dtype.bits < 32 else q.dtype
    factor = tl.rsqrt(tl.cast(depth, wide)) if scale is None else scale
    factor = factor * _LOG2_E  # 2 ** x takes fewer operations than exp(x)
    scores = tl.tensor(
        tl.sum(widened(q[(*i[:-1], c)]) * widened(k[(*i[:-2], i[-1], c)]) for c in depth) * factor
        for i in tl.grid(square)
    )
    if mask is not None or causal:
        products = scores
        scores = tl.tensor(_masked(products[i], mask, causal, i) for i in tl.grid(square))
    rows = (*lead, queries)
    top = tl.tensor(tl.max(scores[(*i, j)] for j in keys) for i in tl.grid(rows))
    if mask is not None:  # a row of which nothing takes part: minus infinity from itself is NaN
        highest = top
        top = tl.tensor(tl.where(highest[i] == -tl.inf, 0, highest[i]) for i in tl.grid(rows))
    e = tl.tensor(tl.exp2(scores[i] - top[i[:-1]]) for i in tl.grid(square))
    added = tl.tensor(tl.sum(e[(*i, j)] for j in keys) for i in tl.grid(rows))
    # where no key takes part
    total = tl.tensor(tl.where(added[i] == 0, 1, added[i]) for i in tl.grid(rows))
    mixed = tl.tensor(
        tl.sum(e[(*i[:-1], j)] * widened(v[(*i[:-2], j, i[-1])]) for j in keys)
        for i in tl.grid((*rows, width))
    )
    return tl.tensor(narrowed(mixed[i] / total[i[:-1]], q.dtype) for i in tl.grid(mixed.shape))


def _masked(value: Any, mask: Any, causal: bool, i: Any) -> Any:
    """Return a score; minus infinity where its key takes no part."""
    if mask is not None:
        given = mask[i[len(i) - mask.ndim :]]
        dropped = mask.dtype is bool_
        value = tl.where(given, value, -tl.inf) if dropped else value + widened(given) * _LOG2_E
    return tl.where(i[-1] <= i[-2], value, -tl.inf) if causal else value


def _check_mask(mask: Any, shape: tuple[Any, ...]) -> None:
    if mask is None:
        return
    if mask.ndim > len(shape) or not (mask.dtype is bool_ or is_float(mask.dtype)):
        raise definition_error(
            "attention: mask holds bools or floats over the last axes of [..., L, S]"
        )
    for found, wanted in zip(mask.shape, shape[len(shape) - mask.ndim :], strict=True):
        require_equal(found, wanted, "attention: the axes of mask are the last of [..., L, S]")
