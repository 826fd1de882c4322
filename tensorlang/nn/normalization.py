"""Normalization: layer_norm over the last axis.

Input:  ``x: [..., N]``, ``w: [N]``, ``b: [N]``      Output: ``[..., N]``
"""

from __future__ import annotations

from typing import Any

import tensorlang as tl
from tensorlang.lang.mistakes import definition_error
from tensorlang.nn.agreement import require_equal


@tl.compute
def layer_norm(x: Any, w: Any = None, b: Any = None, *, eps: float = 1e-5):
    """Return ``(x - mean) / sqrt(variance + eps) * w + b`` over the last axis.

    The variance is that of the population (divided by N), found from the centred values, so that
    a large mean does not cancel it.
    """
    if not x.ndim:
        raise definition_error("layer_norm: x has no axis to normalize over")
    rows, count = x.shape[:-1], x.shape[-1]
    for name, parameter in (("w", w), ("b", b)):
        if parameter is not None:
            if parameter.ndim != 1:
                raise definition_error(f"layer_norm: {name} has one axis, the last of x")
            require_equal(
                parameter.shape[0], count, f"layer_norm: {name} and the last axis of x must agree"
            )
    total = tl.tensor(tl.sum(x[(*i, k)] for k in count) for i in tl.grid(rows))
    centred = tl.tensor(x[i] - total[i.drop(-1)] / count for i in tl.grid(x.shape))
    squares = tl.tensor(
        tl.sum(centred[(*i, k)] * centred[(*i, k)] for k in count) for i in tl.grid(rows)
    )
    scale = tl.tensor(1 / tl.sqrt(squares[i] / count + eps) for i in tl.grid(rows))

    def scaled(i: Any) -> Any:
        value = centred[i] * scale[i.drop(-1)]
        value = value if w is None else value * w[i[-1]]
        return value if b is None else value + b[i[-1]]

    return tl.tensor(scaled(i) for i in tl.grid(x.shape))
