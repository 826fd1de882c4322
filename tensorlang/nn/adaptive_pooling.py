"""Adaptive pooling: as many windows as are asked for, over any size.

Input:  ``adaptive_avg_pool2d(x, output_size=(7, 7))`` with ``x: [..., H, W]``
Output: ``[..., 7, 7]``

Window i of n over a size reaches from ``floor(i * size / n)`` to ``ceil((i + 1) * size / n)``, so
that windows may overlap by an element. ``output_size`` None keeps an axis as it is.
"""

from __future__ import annotations

from typing import Any

import tensorlang as tl
from tensorlang.dtypes import integer_range, is_float
from tensorlang.lang.mistakes import definition_error
from tensorlang.nn.agreement import narrowed, widened

Outputs = int | None | tuple[int | None, ...]


@tl.compute
def adaptive_avg_pool1d(x: Any, *, output_size: Outputs):
    """Return the means of ``output_size`` windows over ``x: [..., L]``."""
    return _means(_Adaptive("adaptive_avg_pool1d", x, 1, output_size))


@tl.compute
def adaptive_avg_pool2d(x: Any, *, output_size: Outputs):
    """Return the means of ``output_size`` windows over ``x: [..., H, W]``, an integer or a pair."""
    return _means(_Adaptive("adaptive_avg_pool2d", x, 2, output_size))


@tl.compute
def adaptive_avg_pool3d(x: Any, *, output_size: Outputs):
    """Return the means of ``output_size`` windows over ``x: [..., D, H, W]``."""
    return _means(_Adaptive("adaptive_avg_pool3d", x, 3, output_size))


@tl.compute
def adaptive_max_pool1d(x: Any, *, output_size: Outputs):
    """Return the greatest elements of ``output_size`` windows over ``x: [..., L]``."""
    return _greatest(_Adaptive("adaptive_max_pool1d", x, 1, output_size))


@tl.compute
def adaptive_max_pool2d(x: Any, *, output_size: Outputs):
    """Return the greatest elements of ``output_size`` windows over ``x: [..., H, W]``."""
    return _greatest(_Adaptive("adaptive_max_pool2d", x, 2, output_size))


@tl.compute
def adaptive_max_pool3d(x: Any, *, output_size: Outputs):
    """Return the greatest elements of ``output_size`` windows over ``x: [..., D, H, W]``."""
    return _greatest(_Adaptive("adaptive_max_pool3d", x, 3, output_size))


class _Adaptive:
    """Where the windows lie over the last axes of ``x``."""

    def __init__(self, operator: str, x: Any, count: int, output_size: Outputs) -> None:
        if x.ndim < count:
            raise definition_error(f"{operator}: x has at least {count} axes, those of the windows")
        wanted = output_size if isinstance(output_size, tuple) else (output_size,) * count
        valid = all(n is None or n >= 0 for n in wanted)
        if len(wanted) != count or not valid:
            raise definition_error(
                f"{operator}: output_size must be an integer of at least 0, or {count} of them or "
                f"of None, not {output_size!r}"
            )
        self.x = x
        self.wanted = wanted
        self.lead: int = x.ndim - count
        self.sizes: tuple[Any, ...] = tuple(x.shape[self.lead :])
        numbers = [s if n is None else n for n, s in zip(wanted, self.sizes, strict=True)]
        self.outer = (*x.shape[: self.lead], *numbers)
        self.longest = [_longest(n, size) for n, size in zip(self.wanted, self.sizes, strict=True)]

    def bounds(self, i: Any, axis: int) -> tuple[Any, Any]:
        """Return where window ``i`` starts and ends."""
        number, size, place = self.wanted[axis], self.sizes[axis], i[self.lead + axis]
        if number is None:
            return place, place + 1
        return place * size // number, (place * size + size + number - 1) // number

    def element(self, i: Any, j: Any, otherwise: Any) -> Any:
        """Return point ``j`` of window ``i``, ``otherwise`` where that lies after its end."""
        index: list[Any] = [*i[: self.lead]]
        inside: Any = None
        for axis, point in enumerate(j):
            start, end = self.bounds(i, axis)
            index.append(start + point)
            if self.wanted[axis] not in (1, None):
                test = start + point < end
                inside = test if inside is None else inside & test
        value = widened(self.x[tuple(index)])
        return value if inside is None else tl.where(inside, value, otherwise)

    def elements(self, i: Any) -> Any:
        """Return how many elements window ``i`` holds."""
        total: Any = 1
        for axis in range(len(self.wanted)):
            start, end = self.bounds(i, axis)
            total = total * (end - start)
        return total


def _longest(number: int | None, size: Any) -> Any:
    """Return an extent that no window exceeds."""
    if number is None:
        return 1
    return size if number in (0, 1) else (size + number - 1) // number + 1


def _means(windows: _Adaptive) -> Any:
    dtype = windows.x.dtype
    total = tl.tensor(
        tl.sum(windows.element(i, j, 0) for j in tl.grid(windows.longest))
        for i in tl.grid(windows.outer)
    )
    return tl.tensor(
        narrowed(total[i] / windows.elements(i), dtype) for i in tl.grid(windows.outer)
    )


def _greatest(windows: _Adaptive) -> Any:
    dtype = windows.x.dtype
    lowest = -tl.inf if is_float(dtype) else integer_range(dtype)[0]
    return tl.tensor(
        narrowed(tl.max(windows.element(i, j, lowest) for j in tl.grid(windows.longest)), dtype)
        for i in tl.grid(windows.outer)
    )
