"""Products: matmul, bmm and linear.

Input:  ``linear(x, w, bias)`` with ``x: [..., K]``, ``w: [O, K]``, ``bias: [O]``
Output: ``[..., O]``, each element a sum over K
"""

from __future__ import annotations

from typing import Any

import tensorlang as tl
from tensorlang.lang.mistakes import definition_error
from tensorlang.nn.agreement import require_equal
from tensorlang.nn.broadcasting import Stretch, Stretched, broadcasting


@broadcasting(kept=2)
def matmul(a: Any, b: Any, *, stretch: Stretch = ()):
    """Return the matrix product ``a @ b``, shapes ``[..., M, K]`` and ``[..., K, N]``.

    Vectors (one axis) multiply as ``numpy.matmul`` has it. Leading axes broadcast: those that only
    one operand has are kept, and those of one element are stretched (``stretch`` says which, and is
    found from the shapes).
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
    batch = Stretched("matmul", [a.shape[:-2], b.shape[:-2]], stretch, kept=2)

    def left(i: Any, k: Any) -> Any:
        return a[(*batch.at(0, i), *i[batch.rank : batch.rank + len(rows)], k)]

    def right(i: Any, k: Any) -> Any:
        return b[(*batch.at(1, i), k, *i[batch.rank + len(rows) :])]

    return tl.tensor(
        tl.sum(left(i, k) * right(i, k) for k in depth)
        for i in tl.grid((*batch.shape, *rows, *columns))
    )


@tl.compute
def bmm(a: Any, b: Any):
    """Return the matrix products of a batch: ``[B, M, K]`` and ``[B, K, N]`` to ``[B, M, N]``."""
    if a.ndim != 3 or b.ndim != 3:
        raise definition_error("bmm: a has shape [B, M, K] and b [B, K, N]")
    batch, rows, depth = a.shape
    columns = b.shape[2]
    require_equal(batch, b.shape[0], "bmm: a and b have as many matrices")
    require_equal(depth, b.shape[1], "bmm: the last axis of a and the second of b must be equal")
    return tl.tensor(
        tl.sum(a[n, i, k] * b[n, k, j] for k in depth) for n in batch for i in rows for j in columns
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
