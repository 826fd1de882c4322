"""Rearranging elements: reshape, flip, roll, tile, pixel_shuffle, triangles and others.

Input:  ``pixel_shuffle(x, upscale_factor=2)`` with ``x: [..., 4 * C, H, W]``
Output: ``[..., C, 2 * H, 2 * W]``

Each is one stage that says where an element comes from; inside of a graph it is put together with
what reads it.
"""

from __future__ import annotations

from typing import Any

import tensorlang as tl
from tensorlang.lang.mistakes import definition_error
from tensorlang.nn.agreement import (
    axis_position,
    axis_positions,
    product_of,
    require_equal,
)


@tl.compute
def permute(x: Any, *, axes: tuple[int, ...]):
    """Return ``x`` with its axes in the order that ``axes`` says."""
    order = [axis_position(axis, x.ndim, "permute") for axis in axes]
    if sorted(order) != list(range(x.ndim)):
        raise definition_error(f"permute: {axes} does not name each of {x.ndim} axes once")
    place = [order.index(axis) for axis in range(x.ndim)]
    return tl.tensor(
        x[tuple([i[place[axis]] for axis in range(x.ndim)])]
        for i in tl.grid([x.shape[axis] for axis in order])
    )


@tl.compute
def reshape(x: Any, *, shape: tuple[int, ...]):
    """Return ``x`` in another shape, elements in C order; one extent may be -1."""
    wanted: Any = (shape,) if isinstance(shape, int) else shape
    free = [place for place, extent in enumerate(wanted) if extent == -1]
    if len(free) > 1 or any(extent < -1 for extent in wanted):
        raise definition_error(f"reshape: at most one extent of {shape} is -1, none is less")
    count, known = product_of(x.shape), product_of([e for e in wanted if e != -1])
    message = f"reshape: x does not have as many elements as {shape}"
    full: list[Any] = list(wanted)
    if free and not known:
        raise definition_error(f"reshape: the extent -1 of {shape} is not determined beside a 0")
    if free:
        require_equal(count % known, 0, message)
        full[free[0]] = count // known
    else:
        require_equal(count, known, message)

    def source(i: Any) -> tuple[Any, ...]:
        position: Any = 0
        for place, extent in zip(i, full, strict=True):
            position = position * extent + place
        return _unpacked(position, x.shape)

    return tl.tensor(x[source(i)] for i in tl.grid(full))


def _unpacked(position: Any, shape: Any) -> tuple[Any, ...]:
    """Return the index of the element at a position in C order."""
    parts: list[Any] = []
    for extent in reversed(shape[1:]):
        parts.insert(0, position % extent)
        position = position // extent
    return (position, *parts) if shape else ()


@tl.compute
def unflatten(x: Any, *, axis: int, sizes: tuple[int, ...]):
    """Return ``x`` with one axis made into several, of ``sizes``, of which one may be -1."""
    place = axis_position(axis, x.ndim, "unflatten")
    free = [n for n, extent in enumerate(sizes) if extent == -1]
    if len(free) > 1 or not sizes or any(extent < 1 and extent != -1 for extent in sizes):
        raise definition_error(f"unflatten: sizes are positive, and at most one is -1, not {sizes}")
    extent, known = x.shape[place], product_of([size for size in sizes if size != -1])
    full: list[Any] = list(sizes)
    if free:
        require_equal(extent % known, 0, f"unflatten: {known} must divide axis {axis}")
        full[free[0]] = extent // known
    else:
        require_equal(extent, known, f"unflatten: axis {axis} has {known} elements")

    def source(i: Any) -> tuple[Any, ...]:
        position: Any = 0
        for size, part in zip(full, i[place : place + len(full)], strict=True):
            position = position * size + part
        return (*i[:place], position, *i[place + len(full) :])

    return tl.tensor(
        x[source(i)] for i in tl.grid((*x.shape[:place], *full, *x.shape[place + 1 :]))
    )


@tl.compute
def squeeze(x: Any, *, axis: int | tuple[int, ...]):
    """Return ``x`` without axes of one element."""
    dropped = axis_positions(axis, x.ndim, "squeeze")
    for place in dropped:
        require_equal(x.shape[place], 1, f"squeeze: axis {place} must have one element")
    kept = [place for place in range(x.ndim) if place not in dropped]

    def source(i: Any) -> tuple[Any, ...]:
        parts = iter(i)
        return tuple([0 if place in dropped else next(parts) for place in range(x.ndim)])

    return tl.tensor(x[source(i)] for i in tl.grid([x.shape[place] for place in kept]))


@tl.compute
def unsqueeze(x: Any, *, axis: int):
    """Return ``x`` with a new axis of one element, which will be number ``axis``."""
    place = axis_position(axis, x.ndim + 1, "unsqueeze")
    return tl.tensor(x[i.drop(place)] for i in tl.grid(x.shape.insert(place, 1)))


@tl.compute
def flip(x: Any, *, axis: int | tuple[int, ...]):
    """Return ``x`` with the order of elements along some axes reversed."""
    places = axis_positions(axis, x.ndim, "flip")

    def source(i: Any) -> tuple[Any, ...]:
        return tuple([x.shape[n] - 1 - part if n in places else part for n, part in enumerate(i)])

    return tl.tensor(x[source(i)] for i in tl.grid(x.shape))


@tl.compute
def roll(x: Any, *, shifts: int | tuple[int, ...], axis: int | tuple[int, ...]):
    """Return ``x`` with elements moved along axes; what leaves at the end enters at the front."""
    amounts = (shifts,) if isinstance(shifts, int) else shifts
    axes = (axis,) if isinstance(axis, int) else axis
    if len(amounts) != len(axes):
        raise definition_error("roll: one shift is needed for each axis")
    moved: dict[int, int] = {}
    for amount, given in zip(amounts, axes, strict=True):
        place = axis_position(given, x.ndim, "roll")
        moved[place] = moved.get(place, 0) + amount

    def source(i: Any) -> tuple[Any, ...]:
        return tuple(
            [(part - moved[n]) % x.shape[n] if n in moved else part for n, part in enumerate(i)]
        )

    return tl.tensor(x[source(i)] for i in tl.grid(x.shape))


@tl.compute
def tile(x: Any, *, reps: int | tuple[int, ...]):
    """Return ``x`` repeated along its axes, ``reps`` times each; fewer are for the last axes."""
    times: tuple[int, ...] = (reps,) if isinstance(reps, int) else reps
    if any(number < 0 for number in times):
        raise definition_error(f"tile: reps must not be negative: {reps}")
    times = (1,) * (x.ndim - len(times)) + times
    added = len(times) - x.ndim
    shape: list[Any] = list(times[:added])
    shape += [n * extent for n, extent in zip(times[added:], x.shape, strict=True)]

    def source(i: Any) -> tuple[Any, ...]:
        parts = zip(i[added:], times[added:], x.shape, strict=True)
        return tuple([part if n == 1 else part % extent for part, n, extent in parts])

    return tl.tensor(x[source(i)] for i in tl.grid(shape))


@tl.compute
def repeat_interleave(x: Any, *, repeats: int, axis: int):
    """Return ``x`` with each element along ``axis`` repeated."""
    place = axis_position(axis, x.ndim, "repeat_interleave")
    if repeats < 0:
        raise definition_error(f"repeat_interleave: repeats must not be negative: {repeats}")
    shape = x.shape.replace(place, x.shape[place] * repeats)
    step = max(repeats, 1)
    return tl.tensor(x[i.replace(place, i[place] // step)] for i in tl.grid(shape))


@tl.compute
def pixel_shuffle(x: Any, *, upscale_factor: int):
    """Return ``[..., C * r * r, H, W]`` as ``[..., C, H * r, W * r]`` (Shi et al., 2016)."""
    r = upscale_factor
    if x.ndim < 3 or r < 1:
        raise definition_error("pixel_shuffle: x has shape [..., C * r * r, H, W], with r >= 1")
    *lead, channels, height, width = x.shape
    require_equal(channels % (r * r), 0, "pixel_shuffle: r * r must divide the channels")

    def source(i: Any) -> tuple[Any, ...]:
        *batch, c, y, z = i
        return (*batch, c * (r * r) + y % r * r + z % r, y // r, z // r)

    return tl.tensor(
        x[source(i)] for i in tl.grid((*lead, channels // (r * r), height * r, width * r))
    )


@tl.compute
def pixel_unshuffle(x: Any, *, downscale_factor: int):
    """Return ``[..., C, H * r, W * r]`` as ``[..., C * r * r, H, W]``: undoes ``pixel_shuffle``."""
    r = downscale_factor
    if x.ndim < 3 or r < 1:
        raise definition_error("pixel_unshuffle: x has shape [..., C, H * r, W * r], with r >= 1")
    *lead, channels, height, width = x.shape
    for extent in (height, width):
        require_equal(extent % r, 0, "pixel_unshuffle: r must divide the rows and columns")

    def source(i: Any) -> tuple[Any, ...]:
        *batch, c, y, z = i
        return (*batch, c // (r * r), y * r + c // r % r, z * r + c % r)

    return tl.tensor(
        x[source(i)] for i in tl.grid((*lead, channels * (r * r), height // r, width // r))
    )


@tl.compute
def tril(x: Any, *, diagonal: int = 0):
    """Return the lower triangle of matrices ``[..., M, N]``; what is above ``diagonal`` is 0."""
    if x.ndim < 2:
        raise definition_error("tril: x has shape [..., M, N]")
    return tl.tensor(
        tl.where(i[-1] - i[-2] <= diagonal, x[i], tl.cast(0, x.dtype)) for i in tl.grid(x.shape)
    )


@tl.compute
def triu(x: Any, *, diagonal: int = 0):
    """Return the upper triangle of matrices ``[..., M, N]``; what is below ``diagonal`` is 0."""
    if x.ndim < 2:
        raise definition_error("triu: x has shape [..., M, N]")
    return tl.tensor(
        tl.where(i[-1] - i[-2] >= diagonal, x[i], tl.cast(0, x.dtype)) for i in tl.grid(x.shape)
    )
