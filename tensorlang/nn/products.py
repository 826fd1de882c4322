"""Products: matmul and linear, for any number of leading axes.

Input:  ``x: [..., K]``, ``w: [O, K]``, ``bias: [O]``
Output: ``[..., O]``, each element a sum over K
"""

from __future__ import annotations

from typing import Any

import tensorlang as tl
from tensorlang.lang.mistakes import definition_error
from tensorlang.nn.agreement import require_equal


@tl.compute
def matmul(a: Any, b: Any):
    """Return the matrix product ``a @ b``, shapes ``[..., M, K]`` and ``[..., K, N]``.

    Vectors (one axis) multiply as ``numpy.matmul`` has it. Leading axes are shared, counted from
    the last; those that only one operand has are kept.
    """
    if not a.ndim or not b.ndim:
        raise definition_error("matmul: an operand without axes; multiply by it with *")
    depth = a.shape[-1]
    require_equal(
        depth,
        b.shape[-2] if b.ndim > 1 else b.shape[0],
        "matmul: the last axis of a and the one before the last of b must be equal",
    )
    rows, columns = a.shape[-2:-1], b.shape[-1:] if b.ndim > 1 else ()
    batch_a, batch_b = a.shape[:-2], b.shape[:-2]
    for left, right in zip(reversed(batch_a), reversed(batch_b), strict=False):
        require_equal(left, right, "matmul: the leading axes of a and b must be equal")
    batch = batch_a if len(batch_a) >= len(batch_b) else batch_b
    skip_a, skip_b = len(batch) - len(batch_a), len(batch) - len(batch_b)

    def left(i: Any, k: Any) -> Any:
        return a[(*i[skip_a : len(batch)], *i[len(batch) : len(batch) + len(rows)], k)]

    def right(i: Any, k: Any) -> Any:
        return b[(*i[skip_b : len(batch)], k, *i[len(batch) + len(rows) :])]

    return tl.tensor(
        tl.sum(left(i, k) * right(i, k) for k in depth) for i in tl.grid((*batch, *rows, *columns))
    )


@tl.compute
def linear(x: Any, w: Any, bias: Any = None):
    """Return ``x @ w.T + bias``: ``x: [..., K]``, ``w: [O, K]``, ``bias: [O]``."""
    if not x.ndim or w.ndim != 2:
        raise definition_error("linear: x has shape [..., K] and w [O, K]")
    outputs, depth = w.shape
    require_equal(x.shape[-1], depth, "linear: the last axes of x and w must be equal")
    product = tl.tensor(
        tl.sum(x[(*i[:-1], k)] * w[i[-1], k] for k in depth)
        for i in tl.grid((*x.shape[:-1], outputs))
    )
    if bias is None:
        return product
    if bias.ndim != 1:
        raise definition_error("linear: the bias has one axis, the outputs")
    require_equal(bias.shape[0], outputs, "linear: bias has one element for each output")
    return tl.tensor(product[i] + bias[i[-1]] for i in tl.grid(product.shape))
