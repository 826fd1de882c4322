"""Convolution along one axis and in volumes: conv1d and conv3d; conv2d is in ``convolution``.

Input:  ``x: [B, C, L]``, ``w: [O, C // groups, R]``, ``bias: [O]``
Output: ``[B, O, OL]`` with ``OL = (L + 2 * padding - dilation * (R - 1) - 1) // stride + 1``
"""

from __future__ import annotations

from typing import Any

import tensorlang as tl
from tensorlang.lang.mistakes import definition_error
from tensorlang.nn.agreement import per_axis, require_equal

Sizes = int | tuple[int, ...]


@tl.compute
def conv1d(
    x: Any,
    w: Any,
    bias: Any = None,
    *,
    stride: Sizes = 1,
    padding: Sizes | str = 0,
    dilation: Sizes = 1,
    groups: int = 1,
):
    """Return the cross-correlation of signals with filters, as ``torch`` computes it.

    ``x: [B, C, L]`` or ``[C, L]``; ``w: [O, C // groups, R]``; ``bias: [O]``. ``padding`` (with
    zeros) is an integer, ``"valid"`` for none, or ``"same"`` for as many results as elements.
    """
    return convolve("conv1d", x, w, bias, 1, stride, padding, dilation, groups)


@tl.compute
def conv3d(
    x: Any,
    w: Any,
    bias: Any = None,
    *,
    stride: Sizes = 1,
    padding: Sizes | str = 0,
    dilation: Sizes = 1,
    groups: int = 1,
):
    """Return the cross-correlation of volumes with filters, as ``torch`` computes it.

    ``x: [B, C, D, H, W]`` or ``[C, D, H, W]``; ``w: [O, C // groups, Q, R, S]``; ``bias: [O]``.
    Attributes are integers or triples; ``padding`` also ``"valid"`` or ``"same"``.
    """
    return convolve("conv3d", x, w, bias, 3, stride, padding, dilation, groups)


def convolve(
    operator: str,
    x: Any,
    w: Any,
    bias: Any,
    count: int,
    stride: Sizes,
    padding: Sizes | str,
    dilation: Sizes,
    groups: int,
) -> Any:
    """Return the cross-correlation over the last ``count`` axes; ``operator`` is for messages."""
    if x.ndim not in (count + 1, count + 2) or w.ndim != count + 2:
        raise definition_error(
            f"{operator}: x has shape [B, C, ...] or [C, ...] and w [O, C, ...], with {count} more "
            f"{'axis' if count == 1 else 'axes'}"
        )
    steps = per_axis(stride, count, "stride", operator, 1)
    apart = per_axis(dilation, count, "dilation", operator, 1)
    *batch, channels = x.shape[:-count]
    outputs, depth = w.shape[:2]
    windows = w.shape[2:]
    share = channels_of_groups(operator, channels, outputs, depth, groups)
    margins = margins_of(operator, padding, windows, steps, apart)
    padded = x
    if any(margin != (0, 0) for margin in margins):
        first = x.ndim - count
        padded = tl.pad(x, {first + axis: margin for axis, margin in enumerate(margins)})
    results = [
        (size + before + after - gap * (window - 1) - 1) // step + 1
        for size, (before, after), gap, window, step in zip(
            x.shape[-count:], margins, apart, windows, steps, strict=True
        )
    ]

    def source(i: Any, c: Any, j: Any) -> tuple[Any, ...]:
        lead, output, places = i[: len(batch)], i[len(batch)], i[len(batch) + 1 :]
        first = 0 if groups == 1 else output // share * depth
        inside = [
            place * step + point * gap
            for place, step, point, gap in zip(places, steps, j, apart, strict=True)
        ]
        return (*lead, first + c, *inside)

    product = tl.tensor(
        tl.sum(
            padded[source(i, j[0], j[1:])] * w[(i[len(batch)], *j)]
            for j in tl.grid((depth, *windows))
        )
        for i in tl.grid((*batch, outputs, *results))
    )
    return with_bias(operator, product, bias, outputs, len(batch))


def channels_of_groups(operator: str, channels: Any, outputs: Any, depth: Any, groups: int) -> Any:
    """Return how many outputs a group has, and require that the channels agree."""
    if groups < 1:
        raise definition_error(f"{operator}: groups must be at least 1, not {groups}")
    require_equal(channels, depth * groups, f"{operator}: x has groups times the channels of w")
    require_equal(outputs % groups, 0, f"{operator}: groups must divide the outputs of w")
    return outputs if groups == 1 else outputs // groups


def margins_of(
    operator: str,
    padding: Any,
    windows: Any,
    steps: tuple[int, ...],
    apart: tuple[int, ...],
) -> list[tuple[Any, Any]]:
    """Return how many zeros come before and after each axis."""
    count = len(steps)
    if padding == "valid":
        return [(0, 0)] * count
    if padding != "same":
        return [(n, n) for n in per_axis(padding, count, "padding", operator, 0)]
    if any(step != 1 for step in steps):
        raise definition_error(f'{operator}: padding="same" needs a stride of 1')
    totals = [gap * (window - 1) for gap, window in zip(apart, windows, strict=True)]
    return [(total // 2, total - total // 2) for total in totals]


def with_bias(operator: str, product: Any, bias: Any, outputs: Any, axis: int) -> Any:
    """Return a tensor with the bias of each output, which are axis ``axis``, added."""
    if bias is None:
        return product
    if bias.ndim != 1:
        raise definition_error(f"{operator}: the bias has one axis, the outputs")
    require_equal(bias.shape[0], outputs, f"{operator}: bias has one element for each output")
    return tl.tensor(product[i] + bias[i[axis]] for i in tl.grid(product.shape))
