"""Convolution of images: conv2d, with images as ``[..., C, H, W]``.

Input:  ``x: [B, C, H, W]``, ``w: [O, C // groups, R, S]``
Output: ``[B, O, OH, OW]`` with ``OH = (H + 2 * padding - dilation * (R - 1) - 1) // stride + 1``
"""

from __future__ import annotations

from typing import Any

import tensorlang as tl
from tensorlang.lang.mistakes import definition_error
from tensorlang.nn.agreement import per_axis
from tensorlang.nn.convolution_nd import channels_of_groups, margins_of, with_bias

Pair = int | tuple[int, int]


@tl.compute
def conv2d(
    x: Any,
    w: Any,
    bias: Any = None,
    *,
    stride: Pair = 1,
    padding: Pair | str = 0,
    dilation: Pair = 1,
    groups: int = 1,
):
    """Return the cross-correlation of images with filters, as ``torch`` computes it.

    ``x: [B, C, H, W]`` or ``[C, H, W]``; ``w: [O, C // groups, R, S]``; ``bias: [O]``. ``stride``,
    ``padding`` (with zeros) and ``dilation`` are integers or pairs (rows, columns); ``padding``
    also ``"valid"`` for none, or ``"same"`` for as many results as elements.
    """
    if x.ndim not in (3, 4) or w.ndim != 4:
        raise definition_error("conv2d: x has shape [B, C, H, W] or [C, H, W], w [O, C, R, S]")
    down, across = per_axis(stride, 2, "stride", "conv2d", 1)
    dy, dx = per_axis(dilation, 2, "dilation", "conv2d", 1)
    channels, height, width = x.shape[-3:]
    outputs, depth, rows, columns = w.shape
    share = channels_of_groups("conv2d", channels, outputs, depth, groups)
    margins = margins_of("conv2d", padding, (rows, columns), (down, across), (dy, dx))
    (top, bottom), (left, right) = margins
    padded = x
    if margins != [(0, 0), (0, 0)]:
        padded = tl.pad(x, {x.ndim - 2: (top, bottom), x.ndim - 1: (left, right)})
    out_height = (height + top + bottom - dy * (rows - 1) - 1) // down + 1
    out_width = (width + left + right - dx * (columns - 1) - 1) // across + 1
    batch = x.shape[:-3]

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
    return with_bias("conv2d", product, bias, outputs, len(batch))
