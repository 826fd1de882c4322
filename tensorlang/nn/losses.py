"""Losses: squared and absolute differences, entropies of classes and of probabilities.

Input:  ``cross_entropy(x, target)`` with ``x: [N, C, ...]`` and ``target: i64[N, ...]``
Output: the mean as a number; with ``reduction="none"`` one loss for each element of the target

``reduction`` is ``"mean"``, ``"sum"`` or ``"none"``. f16 and bf16 are accumulated in f32.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorlang as tl
from tensorlang.dtypes import is_integer
from tensorlang.lang.mistakes import definition_error
from tensorlang.nn.agreement import narrowed, product_of, require_equal, widened
from tensorlang.nn.softmax import log_softmax


@tl.compute
def mse_loss(x: Any, target: Any, *, reduction: str = "mean"):
    """Return the squared differences of two tensors of one shape, reduced."""
    return _by_element("mse_loss", x, target, reduction, lambda a, b: (a - b) * (a - b))


@tl.compute
def l1_loss(x: Any, target: Any, *, reduction: str = "mean"):
    """Return the absolute differences of two tensors of one shape, reduced."""
    return _by_element("l1_loss", x, target, reduction, lambda a, b: tl.abs(a - b))


@tl.compute
def smooth_l1_loss(x: Any, target: Any, *, reduction: str = "mean", beta: float = 1.0):
    """Return ``d * d / (2 * beta)`` where ``d = |x - target| < beta``, else ``d - beta / 2``."""
    if beta < 0:
        raise definition_error(f"smooth_l1_loss: beta must not be negative: {beta}")
    if beta == 0:
        return l1_loss(x, target, reduction=reduction)

    def loss(a: Any, b: Any) -> Any:
        distance = tl.abs(a - b)
        return tl.where(distance < beta, distance * distance * (0.5 / beta), distance - 0.5 * beta)

    return _by_element("smooth_l1_loss", x, target, reduction, loss)


@tl.compute
def huber_loss(x: Any, target: Any, *, reduction: str = "mean", delta: float = 1.0):
    """Return ``d * d / 2`` where ``d = |x - target|`` is at most ``delta``, linear beyond."""
    if delta <= 0:
        raise definition_error(f"huber_loss: delta must be positive: {delta}")

    def loss(a: Any, b: Any) -> Any:
        distance = tl.abs(a - b)
        return tl.where(
            distance <= delta, 0.5 * distance * distance, delta * (distance - 0.5 * delta)
        )

    return _by_element("huber_loss", x, target, reduction, loss)


@tl.compute
def binary_cross_entropy(x: Any, target: Any, *, reduction: str = "mean"):
    """Return ``-target * log(x) - (1 - target) * log(1 - x)`` of probabilities ``x``, reduced.

    Logarithms are at least -100, so that a certain mistake has a finite loss.
    """

    def loss(a: Any, b: Any) -> Any:
        return -(b * tl.maximum(tl.log(a), -100) + (1 - b) * tl.maximum(tl.log1p(-a), -100))

    return _by_element("binary_cross_entropy", x, target, reduction, loss)


@tl.compute
def binary_cross_entropy_with_logits(x: Any, target: Any, *, reduction: str = "mean"):
    """Return the binary cross entropy of ``sigmoid(x)``, without overflow, reduced."""

    def loss(a: Any, b: Any) -> Any:
        return tl.maximum(a, 0) - a * b + tl.log1p(tl.exp(-tl.abs(a)))

    return _by_element("binary_cross_entropy_with_logits", x, target, reduction, loss)


@tl.compute
def kl_div(x: Any, target: Any, *, reduction: str = "mean", log_target: bool = False):
    """Return ``target * (log(target) - x)`` for log-probabilities ``x``, reduced.

    With ``log_target`` the target holds log-probabilities too. ``"batchmean"`` divides the sum by
    the first extent, which is the divergence of distributions; ``"mean"`` by all elements.
    """

    def loss(a: Any, b: Any) -> Any:
        if log_target:
            return tl.exp(b) * (b - a)
        return tl.where(b > 0, b * (tl.log(b) - a), tl.where(b == 0, 0, b * a))

    if reduction != "batchmean":
        return _by_element("kl_div", x, target, reduction, loss)
    total = _by_element("kl_div", x, target, "sum", loss)
    rows = x.shape[0] if x.ndim else 1
    return tl.tensor(total[()] / rows for _ in tl.grid(()))


@tl.compute
def nll_loss(
    x: Any, target: Any, w: Any = None, *, ignore_index: int = -100, reduction: str = "mean"
):
    """Return minus the log-probability that ``x`` has for the class of ``target``, reduced.

    ``x`` is ``[N, C, ...]`` or ``[C]``, ``target`` integers ``[N, ...]`` or a number, ``w: [C]``
    the weight of each class, by which the mean is weighted. Where the target is ``ignore_index``
    the loss is 0 and does not count. At the call, IndexError for another target outside of
    0 .. C - 1.
    """
    _check_classes("nll_loss", x, target, w)
    return _class_losses(x, target, w, ignore_index, reduction, "nll_loss")


@tl.compute
def cross_entropy(
    x: Any,
    target: Any,
    w: Any = None,
    *,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
):
    """Return the cross entropy of ``softmax(x)`` over the classes, reduced.

    ``target`` holds classes (integers, see ``nll_loss``), or a probability for each class, in the
    shape of ``x``. ``label_smoothing`` moves that part of the probability to all classes alike.
    """
    if not x.ndim:
        raise definition_error("cross_entropy: x has shape [N, C, ...] or [C]")
    axis = _class_axis(x)
    if not 0 <= label_smoothing <= 1:
        raise definition_error("cross_entropy: label_smoothing lies between 0 and 1")
    wide = tl.tensor(widened(x[i]) for i in tl.grid(x.shape))
    logs = log_softmax(wide, axis=axis)
    classes = x.shape[axis]
    if not is_integer(target.dtype):
        if target.ndim != x.ndim:
            raise definition_error("cross_entropy: probabilities have the shape of x")
        for a, b in zip(x.shape, target.shape, strict=True):
            require_equal(a, b, "cross_entropy: probabilities have the shape of x")

        def probability(i: Any) -> Any:
            given = widened(target[i])
            if label_smoothing:
                given = given * (1 - label_smoothing) + label_smoothing / classes
            return given if w is None else given * widened(w[i[axis]])

        losses = tl.tensor(
            tl.sum(-logs[i.insert(axis, c)] * probability(i.insert(axis, c)) for c in classes)
            for i in tl.grid(x.shape.drop(axis))
        )
        return _mean_over(losses, x.shape[:axis], x.shape[axis + 1 :], reduction, x.dtype)
    _check_classes("cross_entropy", x, target, w)
    result = _class_losses(
        logs, target, w, ignore_index, reduction, "cross_entropy", label_smoothing
    )
    return tl.tensor(narrowed(result[i], x.dtype) for i in tl.grid(result.shape))


def _class_axis(x: Any) -> int:
    return min(1, x.ndim - 1)


def _check_classes(operator: str, x: Any, target: Any, w: Any) -> None:
    if not x.ndim or target.ndim != x.ndim - 1 or not is_integer(target.dtype):
        raise definition_error(
            f"{operator}: x has shape [N, C, ...] or [C], and the target holds integers in the "
            "same shape without C"
        )
    axis = _class_axis(x)
    for a, b in zip(x.shape.drop(axis), target.shape, strict=True):
        require_equal(a, b, f"{operator}: the target has the shape of x without the classes")
    if w is not None:
        if w.ndim != 1:
            raise definition_error(f"{operator}: w has one axis, the classes")
        require_equal(w.shape[0], x.shape[axis], f"{operator}: w has one element for each class")


def _class_losses(
    logs: Any,
    target: Any,
    w: Any,
    ignore_index: int,
    reduction: str,
    operator: str,
    smoothing: float = 0.0,
) -> Any:
    """Return the losses of log-probabilities for classes, reduced."""
    _check_reduction(operator, reduction)
    axis = _class_axis(logs)
    classes = logs.shape[axis]
    wide = logs.dtype if logs.dtype.bits >= 32 else tl.f32

    def weight(i: Any) -> Any:
        if w is None:
            return tl.cast(target[i] != ignore_index, wide)
        return tl.where(target[i] != ignore_index, widened(w[target[i]]), 0)

    def loss(i: Any) -> Any:
        at = i.insert(axis, target[i])
        value = -widened(logs[at])
        value = value if w is None else value * widened(w[target[i]])
        if smoothing:
            value = value * (1 - smoothing) + smooth[i] * (smoothing / classes)
        return tl.where(target[i] != ignore_index, value, 0)

    smooth: Any = None
    if smoothing:
        smooth = tl.tensor(
            tl.sum(
                -widened(logs[i.insert(axis, c)]) * (1 if w is None else widened(w[c]))
                for c in classes
            )
            for i in tl.grid(target.shape)
        )
    losses = tl.tensor(loss(i) for i in tl.grid(target.shape))
    if reduction == "none":
        return _rounded(losses, logs.dtype)
    total = tl.tensor(tl.sum(losses[j] for j in tl.grid(target.shape)) for _ in tl.grid(()))
    if reduction == "sum":
        return _rounded(total, logs.dtype)
    weights = tl.tensor(tl.sum(weight(j) for j in tl.grid(target.shape)) for _ in tl.grid(()))
    return tl.tensor(narrowed(total[()] / weights[()], logs.dtype) for _ in tl.grid(()))


def _mean_over(losses: Any, lead: Any, rest: Any, reduction: str, dtype: Any) -> Any:
    """Return losses reduced; the mean is over all of them."""
    _check_reduction("cross_entropy", reduction)
    if reduction == "none":
        return _rounded(losses, dtype)
    total = tl.tensor(tl.sum(losses[j] for j in tl.grid(losses.shape)) for _ in tl.grid(()))
    if reduction == "sum":
        return _rounded(total, dtype)
    count = product_of((*lead, *rest))
    return tl.tensor(narrowed(total[()] / count, dtype) for _ in tl.grid(()))


def _by_element(
    operator: str, x: Any, target: Any, reduction: str, loss: Callable[[Any, Any], Any]
) -> Any:
    """Return ``loss(x, target)`` by element, reduced."""
    _check_reduction(operator, reduction)
    if x.ndim != target.ndim:
        raise definition_error(f"{operator}: x and the target have the same shape")
    for a, b in zip(x.shape, target.shape, strict=True):
        require_equal(a, b, f"{operator}: x and the target have the same shape")
    if reduction == "none":
        return tl.tensor(
            narrowed(loss(widened(x[i]), widened(target[i])), x.dtype) for i in tl.grid(x.shape)
        )
    total = tl.tensor(
        tl.sum(loss(widened(x[j]), widened(target[j])) for j in tl.grid(x.shape))
        for _ in tl.grid(())
    )
    count = 1 if reduction == "sum" else product_of(x.shape)
    return tl.tensor(
        narrowed(total[()] if reduction == "sum" else total[()] / count, x.dtype)
        for _ in tl.grid(())
    )


def _rounded(tensor: Any, dtype: Any) -> Any:
    if tensor.dtype is dtype:
        return tensor
    return tl.tensor(narrowed(tensor[i], dtype) for i in tl.grid(tensor.shape))


def _check_reduction(operator: str, reduction: str) -> None:
    if reduction not in ("mean", "sum", "none"):
        raise definition_error(
            f'{operator}: reduction is "mean", "sum" or "none", not {reduction!r}'
        )
