"""Activations: functions of one element, with the names and defaults of ``torch``.

Input:  ``gelu(x, approximate="tanh")`` with ``x`` of any rank and float dtype
Output: a tensor of the same shape and dtype

Each is one stage, so that it is fused into whatever makes its argument. ``softmax`` and its kin,
which look at a whole axis, are in ``softmax``.
"""

from __future__ import annotations

import math
from typing import Any

import tensorlang as tl
from tensorlang.ir.definition import Condition
from tensorlang.lang.application import index_form
from tensorlang.lang.mistakes import definition_error
from tensorlang.lang.trace import current
from tensorlang.nn.agreement import axis_position, require_equal

SELU_ALPHA = 1.6732632423543772
SELU_SCALE = 1.0507009873554805


@tl.compute
def relu(x: Any):
    """Return ``max(x, 0)`` by element; NaN stays NaN."""
    return tl.tensor(tl.maximum(x[i], 0) for i in tl.grid(x.shape))


@tl.compute
def relu6(x: Any):
    """Return ``min(max(x, 0), 6)`` by element; NaN stays NaN."""
    return tl.tensor(tl.clip(x[i], 0, 6) for i in tl.grid(x.shape))


@tl.compute
def hardtanh(x: Any, *, min_val: float = -1.0, max_val: float = 1.0):
    """Return ``x`` limited to ``min_val`` .. ``max_val``; NaN stays NaN."""
    return tl.tensor(tl.clip(x[i], min_val, max_val) for i in tl.grid(x.shape))


@tl.compute
def leaky_relu(x: Any, *, negative_slope: float = 0.01):
    """Return ``x`` where it is positive, ``negative_slope * x`` elsewhere."""
    return tl.tensor(tl.where(x[i] > 0, x[i], negative_slope * x[i]) for i in tl.grid(x.shape))


@tl.compute
def prelu(x: Any, w: Any):
    """Return ``x`` where it is positive, ``w * x`` elsewhere.

    ``w`` has no axis or one element (one slope for all), or one element for each channel, the
    second axis of ``x``.
    """
    if not w.ndim:
        return tl.tensor(tl.where(x[i] > 0, x[i], w[()] * x[i]) for i in tl.grid(x.shape))
    if w.ndim != 1 or x.ndim < 1:
        raise definition_error("prelu: w has one axis, the channels of x, or none")
    slopes, place = w.shape[0], min(1, x.ndim - 1)
    channels = x.shape[place] if x.ndim > 1 else 1
    agrees = (index_form(slopes) - 1) * (index_form(slopes) - index_form(channels))
    message = "prelu: w has one element, or one for each channel of x"
    current("prelu").conditions.append(Condition(agrees, message, equality=True))

    def slope(channel: Any) -> Any:
        return tl.where(slopes > 1, w[channel], w[0])

    return tl.tensor(
        tl.where(x[i] > 0, x[i], slope(i[place] if x.ndim > 1 else 0) * x[i])
        for i in tl.grid(x.shape)
    )


@tl.compute
def elu(x: Any, *, alpha: float = 1.0):
    """Return ``x`` where it is positive, ``alpha * (exp(x) - 1)`` elsewhere."""
    return tl.tensor(tl.where(x[i] > 0, x[i], alpha * tl.expm1(x[i])) for i in tl.grid(x.shape))


@tl.compute
def selu(x: Any):
    """Return ``elu`` scaled so that means and variances persist (Klambauer et al., 2017)."""
    return tl.tensor(
        SELU_SCALE * tl.where(x[i] > 0, x[i], SELU_ALPHA * tl.expm1(x[i])) for i in tl.grid(x.shape)
    )


@tl.compute
def celu(x: Any, *, alpha: float = 1.0):
    """Return ``max(0, x) + min(0, alpha * (exp(x / alpha) - 1))``; ``alpha`` is not 0."""
    if alpha == 0:
        raise definition_error("celu: alpha must not be 0")
    return tl.tensor(
        tl.maximum(x[i], 0) + tl.minimum(alpha * tl.expm1(x[i] / alpha), 0)
        for i in tl.grid(x.shape)
    )


@tl.compute
def gelu(x: Any, *, approximate: str = "none"):
    """Return ``x`` times the normal distribution's probability below it.

    ``approximate="tanh"`` is the formula of D. Hendrycks and K. Gimpel, "Gaussian Error Linear
    Units" (2016), off by up to 5e-4.
    """
    if approximate not in ("none", "tanh"):
        raise definition_error(f'gelu: approximate is "none" or "tanh", not {approximate!r}')
    if approximate == "none":
        return tl.tensor(0.5 * x[i] * (1 + tl.erf(x[i] * math.sqrt(0.5))) for i in tl.grid(x.shape))
    factor = math.sqrt(2 / math.pi)
    return tl.tensor(
        0.5 * x[i] * (1 + tl.tanh(factor * (x[i] + 0.044715 * x[i] * x[i] * x[i])))
        for i in tl.grid(x.shape)
    )


@tl.compute
def silu(x: Any):
    """Return ``x * sigmoid(x)``, also called swish."""
    return tl.tensor(x[i] * tl.sigmoid(x[i]) for i in tl.grid(x.shape))


@tl.compute
def mish(x: Any):
    """Return ``x * tanh(softplus(x))`` (Misra, 2019)."""
    return tl.tensor(x[i] * tl.tanh(_softplus(x[i])) for i in tl.grid(x.shape))


@tl.compute
def softplus(x: Any, *, beta: float = 1.0, threshold: float = 20.0):
    """Return ``log(1 + exp(beta * x)) / beta``, and ``x`` where ``beta * x > threshold``."""
    return tl.tensor(
        tl.where(beta * x[i] > threshold, x[i], tl.log1p(tl.exp(beta * x[i])) / beta)
        for i in tl.grid(x.shape)
    )


@tl.compute
def softsign(x: Any):
    """Return ``x / (1 + |x|)``."""
    return tl.tensor(x[i] / (1 + tl.abs(x[i])) for i in tl.grid(x.shape))


@tl.compute
def sigmoid(x: Any):
    """Return ``1 / (1 + exp(-x))`` by element."""
    return tl.tensor(tl.sigmoid(x[i]) for i in tl.grid(x.shape))


@tl.compute
def logsigmoid(x: Any):
    """Return ``log(sigmoid(x))``, without overflow: ``min(x, 0) - log(1 + exp(-|x|))``."""
    return tl.tensor(
        tl.minimum(x[i], 0) - tl.log1p(tl.exp(-tl.abs(x[i]))) for i in tl.grid(x.shape)
    )


@tl.compute
def hardsigmoid(x: Any):
    """Return ``min(max(x + 3, 0), 6) / 6``."""
    return tl.tensor(tl.clip(x[i] + 3, 0, 6) / 6 for i in tl.grid(x.shape))


@tl.compute
def hardswish(x: Any):
    """Return ``x * min(max(x + 3, 0), 6) / 6``."""
    return tl.tensor(x[i] * tl.clip(x[i] + 3, 0, 6) / 6 for i in tl.grid(x.shape))


@tl.compute
def tanh(x: Any):
    """Return the hyperbolic tangent by element."""
    return tl.tensor(tl.tanh(x[i]) for i in tl.grid(x.shape))


@tl.compute
def tanhshrink(x: Any):
    """Return ``x - tanh(x)``."""
    return tl.tensor(x[i] - tl.tanh(x[i]) for i in tl.grid(x.shape))


@tl.compute
def softshrink(x: Any, *, lambd: float = 0.5):
    """Return ``x`` moved towards 0 by ``lambd``, and 0 where it is within ``lambd`` of 0."""
    return tl.tensor(
        tl.where(x[i] > lambd, x[i] - lambd, tl.where(x[i] < -lambd, x[i] + lambd, x[i] * 0))
        for i in tl.grid(x.shape)
    )


@tl.compute
def hardshrink(x: Any, *, lambd: float = 0.5):
    """Return ``x``, and 0 where it is within ``lambd`` of 0; NaN stays NaN."""
    return tl.tensor(tl.where(tl.abs(x[i]) <= lambd, 0, x[i]) for i in tl.grid(x.shape))


@tl.compute
def threshold(x: Any, *, threshold: float, value: float):
    """Return ``x`` where it is above ``threshold``, ``value`` elsewhere; NaN stays NaN."""
    return tl.tensor(tl.where(x[i] <= threshold, value, x[i]) for i in tl.grid(x.shape))


@tl.compute
def glu(x: Any, *, axis: int = -1):
    """Return the first half along ``axis`` times the sigmoid of the second half."""
    place = axis_position(axis, x.ndim, "glu")
    extent = x.shape[place]
    require_equal(extent % 2, 0, "glu: the axis must have an even number of elements")
    half = extent // 2
    return tl.tensor(
        x[i] * tl.sigmoid(x[i.replace(place, i[place] + half)])
        for i in tl.grid(x.shape.replace(place, half))
    )


def _softplus(value: Any) -> Any:
    """Return ``log(1 + exp(value))`` without overflow."""
    return tl.maximum(value, 0) + tl.log1p(tl.exp(-tl.abs(value)))
