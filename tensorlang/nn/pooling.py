"""Pooling over windows of one, two or three axes: greatest elements, means, adaptive windows.

Input:  ``avg_pool2d(x, kernel_size=3, stride=2, padding=1)`` with ``x: [..., H, W]``
Output: ``[..., OH, OW]``, one element for each window

Each extent is ``(size + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1``. With
``ceil_mode`` the division rounds up, as long as the last window begins inside of the image or its
padding before.
"""

from __future__ import annotations

from typing import Any

import tensorlang as tl
from tensorlang.dtypes import integer_range, is_float
from tensorlang.lang.mistakes import definition_error
from tensorlang.nn.agreement import narrowed, per_axis, widened

Sizes = int | tuple[int, ...]


class Windows:
    """Where windows lie over the last axes of ``x``."""

    def __init__(
        self,
        operator: str,
        x: Any,
        count: int,
        kernel_size: Sizes,
        stride: Sizes | None,
        padding: Sizes,
        dilation: Sizes = 1,
        ceil_mode: bool = False,
    ) -> None:
        if x.ndim < count:
            raise definition_error(f"{operator}: x has at least {count} axes, those of the windows")
        self.count = count
        self.kernel = per_axis(kernel_size, count, "kernel_size", operator, 1)
        steps = kernel_size if stride is None else stride
        self.stride = per_axis(steps, count, "stride", operator, 1)
        self.padding = per_axis(padding, count, "padding", operator, 0)
        self.dilation = per_axis(dilation, count, "dilation", operator, 1)
        if any(2 * p > k for p, k in zip(self.padding, self.kernel, strict=True)):
            raise definition_error(f"{operator}: the padding must be at most half of the kernel")
        self.batch: tuple[Any, ...] = tuple(x.shape[: x.ndim - count])
        self.sizes: tuple[Any, ...] = tuple(x.shape[x.ndim - count :])
        self.ceil_mode = ceil_mode
        self.outer: tuple[Any, ...] = (*self.batch, *map(self._windows, range(count)))

    def _windows(self, axis: int) -> Any:
        size, step, before = self.sizes[axis], self.stride[axis], self.padding[axis]
        room = size + 2 * before - self.dilation[axis] * (self.kernel[axis] - 1) - 1
        if not self.ceil_mode:
            return room // step + 1
        return tl.minimum((room + step - 1) // step, (size + before - 1) // step) + 1

    def padded(self, x: Any, value: Any) -> Any:
        """Return ``x`` with the padding, and with what windows that stick out reach."""
        amounts: dict[int, tuple[int, int]] = {}
        for axis, before in enumerate(self.padding):
            beyond = self.stride[axis] - 1 if self.ceil_mode else 0
            if before or beyond:
                amounts[len(self.batch) + axis] = (before, before + beyond)
        return tl.pad(x, amounts, value=value) if amounts else x

    def at(self, i: Any, j: Any) -> tuple[Any, ...]:
        """Return the index in the padded tensor of point ``j`` of window ``i``."""
        places = i[len(self.batch) :]
        inside = [
            place * step + point * apart
            for place, step, point, apart in zip(places, self.stride, j, self.dilation, strict=True)
        ]
        return (*i[: len(self.batch)], *inside)

    def elements(self, i: Any, count_padding: bool) -> Any:
        """Return how many elements window ``i`` holds, with those of the padding or without."""
        total: Any = 1
        for axis, place in enumerate(i[len(self.batch) :]):
            size, before = self.sizes[axis], self.padding[axis]
            start = place * self.stride[axis] - before
            end = start + self.kernel[axis]
            if not self.padding[axis] and not self.ceil_mode:
                total = total * self.kernel[axis]
            elif count_padding:
                whole = not self.ceil_mode
                last = end if whole else tl.minimum(end, size + before)
                total = total * (last - start)
            else:
                total = total * (tl.minimum(end, size) - tl.maximum(start, 0))
        return total


@tl.compute
def max_pool1d(
    x: Any,
    *,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
):
    """Return the greatest element of each window of ``x: [..., L]`` (see ``max_pool2d``)."""
    windows = Windows("max_pool1d", x, 1, kernel_size, stride, padding, dilation, ceil_mode)
    padded = windows.padded(x, _lowest(x.dtype))
    return tl.tensor(
        tl.max(padded[windows.at(i, j)] for j in tl.grid(windows.kernel))
        for i in tl.grid(windows.outer)
    )


@tl.compute
def max_pool2d(
    x: Any,
    *,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
):
    """Return the greatest element of each window of ``x: [..., H, W]``.

    ``stride`` is ``kernel_size`` unless given; the padding is below everything, and at most half
    of the kernel, so that no window is empty. Attributes are integers or pairs (rows, columns).
    """
    windows = Windows("max_pool2d", x, 2, kernel_size, stride, padding, dilation, ceil_mode)
    padded = windows.padded(x, _lowest(x.dtype))
    rows, columns = windows.kernel
    return tl.tensor(
        tl.max(padded[windows.at(i, (r, s))] for r in tl.range(rows) for s in tl.range(columns))
        for i in tl.grid(windows.outer)
    )


@tl.compute
def max_pool3d(
    x: Any,
    *,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
):
    """Return the greatest element of each window of ``x: [..., D, H, W]`` (see ``max_pool2d``)."""
    windows = Windows("max_pool3d", x, 3, kernel_size, stride, padding, dilation, ceil_mode)
    padded = windows.padded(x, _lowest(x.dtype))
    return tl.tensor(
        tl.max(padded[windows.at(i, j)] for j in tl.grid(windows.kernel))
        for i in tl.grid(windows.outer)
    )


def _lowest(dtype: Any) -> Any:
    return -tl.inf if is_float(dtype) else integer_range(dtype)[0]


@tl.compute
def avg_pool1d(
    x: Any,
    *,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
):
    """Return the mean of each window of ``x: [..., L]`` (see ``avg_pool2d``)."""
    windows = Windows("avg_pool1d", x, 1, kernel_size, stride, padding, 1, ceil_mode)
    return _averages("avg_pool1d", x, windows, count_include_pad, None)


@tl.compute
def avg_pool2d(
    x: Any,
    *,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
):
    """Return the mean of each window of ``x: [..., H, W]``.

    The zeros of the padding count as elements unless ``count_include_pad`` is false; a window that
    sticks out of the padding (``ceil_mode``) counts what lies inside. ``divisor_override`` is
    what sums are divided by instead.
    """
    windows = Windows("avg_pool2d", x, 2, kernel_size, stride, padding, 1, ceil_mode)
    return _averages("avg_pool2d", x, windows, count_include_pad, divisor_override)


@tl.compute
def avg_pool3d(
    x: Any,
    *,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
):
    """Return the mean of each window of ``x: [..., D, H, W]`` (see ``avg_pool2d``)."""
    windows = Windows("avg_pool3d", x, 3, kernel_size, stride, padding, 1, ceil_mode)
    return _averages("avg_pool3d", x, windows, count_include_pad, divisor_override)


def _averages(
    operator: str, x: Any, windows: Windows, count_padding: bool, divisor: int | None
) -> Any:
    if not is_float(x.dtype):
        raise definition_error(f"{operator}: x is {x.dtype.name}; cast it to a float first")
    if divisor == 0:
        raise definition_error(f"{operator}: divisor_override must not be 0")
    padded = windows.padded(x, 0)
    total = tl.tensor(
        tl.sum(widened(padded[windows.at(i, j)]) for j in tl.grid(windows.kernel))
        for i in tl.grid(windows.outer)
    )
    return tl.tensor(
        narrowed(total[i] / (divisor or windows.elements(i, count_padding)), x.dtype)
        for i in tl.grid(windows.outer)
    )
