"""Transposed convolution: what a convolution does to gradients, also used to enlarge images.

Input:  ``x: [B, C, H, W]``, ``w: [C, O // groups, R, S]``, ``bias: [O]``
Output: ``[B, O, OH, OW]``, where
        ``OH = (H - 1) * stride - 2 * padding + dilation * (R - 1) + output_padding + 1``

Each element of the result gathers those of ``x`` that reach it, so that no scatter is needed: in
an axis, place p gets ``x[q] * w[r]`` for ``q * stride + r * dilation == p + padding``.
"""

from __future__ import annotations

from typing import Any

import tensorlang as tl
from tensorlang.lang.mistakes import definition_error
from tensorlang.nn.agreement import per_axis, require_equal
from tensorlang.nn.convolution_nd import with_bias

Sizes = int | tuple[int, ...]


@tl.compute
def conv_transpose1d(
    x: Any,
    w: Any,
    bias: Any = None,
    *,
    stride: Sizes = 1,
    padding: Sizes = 0,
    output_padding: Sizes = 0,
    groups: int = 1,
    dilation: Sizes = 1,
):
    """Return the transposed convolution of ``x: [B, C, L]`` or ``[C, L]``.

    ``w: [C, O // groups, R]``; ``bias: [O]``.
    """
    places = (stride, padding, output_padding, dilation)
    return _transposed("conv_transpose1d", x, w, bias, 1, places, groups)


@tl.compute
def conv_transpose2d(
    x: Any,
    w: Any,
    bias: Any = None,
    *,
    stride: Sizes = 1,
    padding: Sizes = 0,
    output_padding: Sizes = 0,
    groups: int = 1,
    dilation: Sizes = 1,
):
    """Return the transposed convolution of ``x: [B, C, H, W]`` or ``[C, H, W]``.

    ``w: [C, O // groups, R, S]``; ``bias: [O]``. Attributes are integers or pairs.
    """
    places = (stride, padding, output_padding, dilation)
    return _transposed("conv_transpose2d", x, w, bias, 2, places, groups)


@tl.compute
def conv_transpose3d(
    x: Any,
    w: Any,
    bias: Any = None,
    *,
    stride: Sizes = 1,
    padding: Sizes = 0,
    output_padding: Sizes = 0,
    groups: int = 1,
    dilation: Sizes = 1,
):
    """Return the transposed convolution of ``x: [B, C, D, H, W]`` or ``[C, D, H, W]``.

    ``w: [C, O // groups, Q, R, S]``; ``bias: [O]``. Attributes are integers or triples.
    """
    places = (stride, padding, output_padding, dilation)
    return _transposed("conv_transpose3d", x, w, bias, 3, places, groups)


def _transposed(
    operator: str,
    x: Any,
    w: Any,
    bias: Any,
    count: int,
    places: tuple[Sizes, Sizes, Sizes, Sizes],
    groups: int,
) -> Any:
    if x.ndim not in (count + 1, count + 2) or w.ndim != count + 2:
        raise definition_error(
            f"{operator}: x has shape [B, C, ...] or [C, ...] and w [C, O, ...], with {count} more "
            f"{'axis' if count == 1 else 'axes'}"
        )
    stride, padding, output_padding, dilation = places
    steps = per_axis(stride, count, "stride", operator, 1)
    before = per_axis(padding, count, "padding", operator, 0)
    added = per_axis(output_padding, count, "output_padding", operator, 0)
    apart = per_axis(dilation, count, "dilation", operator, 1)
    for extra, step, gap in zip(added, steps, apart, strict=True):
        if extra >= max(step, gap):
            raise definition_error(
                f"{operator}: output_padding must be less than the stride or the dilation"
            )
    *batch, channels = x.shape[:-count]
    _, share = w.shape[:2]
    windows, sizes = w.shape[2:], x.shape[-count:]
    if groups < 1:
        raise definition_error(f"{operator}: groups must be at least 1, not {groups}")
    require_equal(channels, w.shape[0], f"{operator}: x and w have the same channels")
    require_equal(channels % groups, 0, f"{operator}: groups must divide the channels")
    depth = channels // groups
    results = [
        (sizes[a] - 1) * steps[a] - 2 * before[a] + apart[a] * (windows[a] - 1) + added[a] + 1
        for a in range(count)
    ]

    def contribution(i: Any, c: Any, j: Any) -> Any:
        lead, output, places = i[: len(batch)], i[len(batch)], i[len(batch) + 1 :]
        channel = c if groups == 1 else output // share * depth + c
        inside: Any = None
        index: list[Any] = []
        for axis in range(count):
            reached = places[axis] + before[axis] - j[axis] * apart[axis]
            index.append(reached // steps[axis])
            test = (reached >= 0) & (reached < sizes[axis] * steps[axis])
            if steps[axis] > 1:
                test = test & (reached % steps[axis] == 0)
            inside = test if inside is None else inside & test
        weight = w[(channel, output if groups == 1 else output % share, *j)]
        return tl.where(inside, x[(*lead, channel, *index)] * weight, 0)

    product = tl.tensor(
        tl.sum(contribution(i, j[0], j[1:]) for j in tl.grid((depth, *windows)))
        for i in tl.grid((*batch, share * groups, *results))
    )
    return with_bias(operator, product, bias, share * groups, len(batch))
