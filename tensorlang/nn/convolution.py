"""Convolution of images: conv2d, with images as ``[..., C, H, W]``.

Input:  ``x: [B, C, H, W]``, ``w: [O, C // groups, R, S]``
Output: ``[B, O, OH, OW]`` with ``OH = (H + 2 * padding - dilation * (R - 1) - 1) // stride + 1``
"""

from __future__ import annotations

from typing import Any

import tensorlang as tl
from tensorlang.lang.mistakes import definition_error
from tensorlang.nn.agreement import per_axis, require_equal

Pair = int | tuple[int, int]


@tl.compute
def conv2d(
    x: Any,
    w: Any,
    bias: Any = None,
    *,
    stride: Pair = 1,
    padding: Pair = 0,
    dilation: Pair = 1,
    groups: int = 1,
):
    """Return the cross-correlation of images with filters, as ``torch`` computes it.

    ``x: [B, C, H, W]`` or ``[C, H, W]``; ``w: [O, C // groups, R, S]``; ``bias: [O]``. ``stride``,
    ``padding`` (with zeros) and ``dilation`` are integers or pairs (rows, columns).
    """
    if x.ndim not in (3, 4) or w.ndim != 4:
        raise definition_error("conv2d: x has shape [B, C, H, W] or [C, H, W], w [O, C, R, S]")
    (down, across), (top, left) = (
        per_axis(stride, 2, "stride", "conv2d", 1),
        per_axis(padding, 2, "padding", "conv2d", 0),
    )
    dy, dx = per_axis(dilation, 2, "dilation", "conv2d", 1)
    channels, height, width = x.shape[-3:]
    outputs, depth, rows, columns = w.shape
    if groups < 1:
        raise definition_error(f"conv2d: groups must be at least 1, not {groups}")
    require_equal(channels, depth * groups, "conv2d: x has groups times the channels of w")
    padded = _padded(x, top, left, 0)
    out_height = (height + 2 * top - dy * (rows - 1) - 1) // down + 1
    out_width = (width + 2 * left - dx * (columns - 1) - 1) // across + 1
    batch = x.shape[:-3]
    require_equal(outputs % groups, 0, "conv2d: groups must divide the outputs of w")
    share = outputs if groups == 1 else outputs // groups

    def first_channel(output: Any) -> Any:
        return 0 if groups == 1 else output // share * depth

    product = tl.tensor(
        tl.sum(
            padded[
                (
                    *i[:-3],
                    first_channel(i[-3]) + c,
                    i[-2] * down + r * dy,
                    i[-1] * across + s * dx,
                )
            ]
            * w[i[-3], c, r, s]
            for c in depth
            for r in rows
            for s in columns
        )
        for i in tl.grid((*batch, outputs, out_height, out_width))
    )
    if bias is None:
        return product
    if bias.ndim != 1:
        raise definition_error("conv2d: the bias has one axis, the outputs")
    require_equal(bias.shape[0], outputs, "conv2d: bias has one element for each output")
    return tl.tensor(product[i] + bias[i[-3]] for i in tl.grid(product.shape))


def _padded(x: Any, top: int, left: int, value: Any) -> Any:
    if not top and not left:
        return x
    return tl.pad(x, {x.ndim - 2: (top, top), x.ndim - 1: (left, left)}, value=value)
