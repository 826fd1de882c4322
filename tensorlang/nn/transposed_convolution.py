"""Transposed convolution: what a convolution does to gradients, also used to enlarge images.

Input:  ``x: [B, C, H, W]``, ``w: [C, O // groups, R, S]``, ``bias: [O]``
Output: ``[B, O, OH, OW]``, where
        ``OH = (H - 1) * stride - 2 * padding + dilation * (R - 1) + output_padding + 1``

Each element of the result gathers those of ``x`` that reach it, so that no scatter is needed: in
an axis, place p gets ``x[q] * w[r]`` for ``q * stride + r * dilation == p + padding``. Without
dilation that is a convolution of its own for each remainder of p by the stride.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
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

    place = _Places(w, groups, share, depth, steps, before, apart)
    outer = (*batch, share * groups)
    if all(gap == 1 for gap in apart):
        product = _by_phases(x, place, outer, results)
    else:
        product = _by_gathering(x, place, outer, results)
    return with_bias(operator, product, bias, share * groups, len(batch))


@dataclass(frozen=True, slots=True)
class _Places:
    """The filters, and how the windows lie."""

    w: Any
    groups: int
    share: Any
    depth: Any
    steps: tuple[int, ...]
    before: tuple[int, ...]
    apart: tuple[int, ...]

    def channel(self, output: Any, c: Any) -> Any:
        """Return the channel of x that is number ``c`` of the group of an output."""
        return c if self.groups == 1 else output // self.share * self.depth + c

    def weight(self, output: Any, c: Any, j: Any) -> Any:
        """Return the filter's element for an output, a channel of its group and a point."""
        column = output if self.groups == 1 else output % self.share
        return self.w[(self.channel(output, c), column, *j)]


def _by_phases(x: Any, place: _Places, outer: tuple[Any, ...], results: list[Any]) -> Any:
    """Return the result without its bias, as one convolution whose outputs are then interleaved.

    Places ``stride * t + f`` of an axis all meet the points ``stride * u + (f + padding) % stride``
    of the filter, at ``x[t + (f + padding) // stride - u]``. So each output has as many filters as
    there are remainders f, over x as it is: the sub-pixel convolution of W. Shi et al. (2016).
    """
    count, steps, before = len(results), place.steps, place.before
    windows, sizes = place.w.shape[2:], x.shape[-count:]
    least = [b // step for b, step in zip(before, steps, strict=True)]
    most = [(step - 1 + b) // step for b, step in zip(before, steps, strict=True)]
    reach = [(window + step - 1) // step for window, step in zip(windows, steps, strict=True)]
    taps = [reach[axis] + most[axis] - least[axis] for axis in range(count)]
    lengths = [(size + step - 1) // step for size, step in zip(results, steps, strict=True)]
    lead, parts_of_output = len(outer) - 1, math.prod(steps)

    def tap(i: Any) -> Any:
        phases = _digits(i[0] % parts_of_output, steps)
        inside: Any = None
        j: list[Any] = []
        for axis in range(count):
            moved = phases[axis] + before[axis]
            earlier = reach[axis] - 1 - i[2 + axis] + moved // steps[axis] - least[axis]
            point = earlier * steps[axis] + moved % steps[axis]
            j.append(point)
            test = (point >= 0) & (point < windows[axis])
            inside = test if inside is None else inside & test
        return tl.where(inside, place.weight(i[0] // parts_of_output, i[1], j), 0)

    filters = tl.tensor(tap(i) for i in tl.grid((outer[-1] * parts_of_output, place.depth, *taps)))
    margins: dict[int, tuple[Any, Any]] = {}
    for axis in range(count):
        first = reach[axis] - 1 - least[axis]
        last = lengths[axis] + taps[axis] - 1 - sizes[axis] - first
        margins[x.ndim - count + axis] = (first, last)
    padded = tl.pad(x, margins)
    share = place.share * parts_of_output

    def source(i: Any, c: Any, u: Any) -> tuple[Any, ...]:
        first = 0 if place.groups == 1 else i[lead] // share * place.depth
        inside = [t + point for t, point in zip(i[lead + 1 :], u, strict=True)]
        return (*i[:lead], first + c, *inside)

    parts = tl.tensor(
        tl.sum(
            padded[source(i, k[0], k[1:])] * filters[(i[lead], *k)]
            for k in tl.grid((place.depth, *taps))
        )
        for i in tl.grid((*outer[:-1], outer[-1] * parts_of_output, *lengths))
    )

    def part(i: Any) -> tuple[Any, ...]:
        places = i[lead + 1 :]
        number: Any = 0
        for position, step in zip(places, steps, strict=True):
            number = number * step + position % step
        output = i[lead] * parts_of_output + number
        return (*i[:lead], output, *[p // step for p, step in zip(places, steps, strict=True)])

    return tl.tensor(parts[part(i)] for i in tl.grid((*outer, *results)))


def _digits(number: Any, bases: tuple[int, ...]) -> list[Any]:
    """Return the digits of a number in a mixed base, the greatest first."""
    digits: list[Any] = []
    for base in reversed(bases):
        digits.insert(0, number % base)
        number = number // base
    return digits


def _by_gathering(x: Any, place: _Places, outer: tuple[Any, ...], results: list[Any]) -> Any:
    """Return the result without its bias, asking for each point of the filter whether it counts."""
    count, steps, before, apart = len(results), place.steps, place.before, place.apart
    windows, sizes = place.w.shape[2:], x.shape[-count:]
    lead = len(outer) - 1

    def contribution(i: Any, c: Any, j: Any) -> Any:
        places = i[lead + 1 :]
        inside: Any = None
        index: list[Any] = []
        for axis in range(count):
            reached = places[axis] + before[axis] - j[axis] * apart[axis]
            index.append(reached // steps[axis])
            test = (reached >= 0) & (reached < sizes[axis] * steps[axis])
            if steps[axis] > 1:
                test = test & (reached % steps[axis] == 0)
            inside = test if inside is None else inside & test
        element = x[(*i[:lead], place.channel(i[lead], c), *index)]
        return tl.where(inside, element * place.weight(i[lead], c, j), 0)

    return tl.tensor(
        tl.sum(contribution(i, j[0], j[1:]) for j in tl.grid((place.depth, *windows)))
        for i in tl.grid((*outer, *results))
    )
