"""The same elements in another shape: transpose, flatten, slices.

Input:  ``x: [A, B, C]``        Output: ``[B, A, C]``, ``[A, B * C]``, ``[A, B - 1, C]``
"""

from __future__ import annotations

from typing import Any

import tensorlang as tl
from tensorlang.lang.mistakes import definition_error
from tensorlang.nn.agreement import axis_position

Slice = tuple[int | None, int | None, int | None]


@tl.compute
def transpose(x: Any, *, axes: tuple[int, ...] | None = None):
    """Return ``x`` with its axes in another order, reversed unless ``axes`` says how."""
    order = tuple(reversed(range(x.ndim))) if axes is None else axes
    order = tuple([axis_position(axis, x.ndim, "transpose") for axis in order])
    if sorted(order) != list(range(x.ndim)):
        raise definition_error(f"transpose: {axes} does not name each of {x.ndim} axes once")
    place = [order.index(axis) for axis in range(x.ndim)]
    return tl.tensor(
        x[tuple([i[place[axis]] for axis in range(x.ndim)])]
        for i in tl.grid([x.shape[axis] for axis in order])
    )


@tl.compute
def flatten(x: Any, *, start_axis: int = 0):
    """Return ``x`` with its axes from ``start_axis`` on made into one, in C order."""
    start = axis_position(start_axis, x.ndim, "flatten")
    kept, merged = x.shape[:start], x.shape[start:]
    count: Any = 1
    for extent in merged:
        count = count * extent

    def unpacked(position: Any) -> list[Any]:
        parts: list[Any] = []
        for extent in reversed(merged[1:]):
            parts.insert(0, position % extent)
            position = position // extent
        return [position, *parts]

    return tl.tensor(x[(*i[:-1], *unpacked(i[-1]))] for i in tl.grid((*kept, count)))


@tl.compute
def take_slice(x: Any, *, slices: tuple[Slice, ...], drop: tuple[int, ...] = ()):
    """Return ``x[start:stop:step, ...]``; ``drop`` names axes of which one element is taken.

    Steps are positive. Bounds that are negative count from the end; bounds that are not must lie
    inside, which is checked at the call where the size is symbolic.
    """
    starts: list[Any] = []
    steps: list[int] = []
    shape: list[Any] = []
    for axis, (start, stop, step) in enumerate(slices):
        extent = x.shape[axis]
        steps.append(1 if step is None else step)
        if steps[-1] < 1:
            raise definition_error("take_slice: steps must be at least 1")
        first = _counted(0 if start is None else start, extent)
        last = extent if stop is None else _counted(stop, extent)
        starts.append(first)
        if axis not in drop:
            shape.append((last - first + steps[-1] - 1) // steps[-1])

    def source(i: Any) -> Any:
        kept = iter(i)
        return tuple(
            [
                starts[axis] if axis in drop else starts[axis] + steps[axis] * next(kept)
                for axis in range(x.ndim)
            ]
        )

    return tl.tensor(x[source(i)] for i in tl.grid(shape))


def _counted(bound: int, extent: Any) -> Any:
    return extent + bound if bound < 0 else bound
