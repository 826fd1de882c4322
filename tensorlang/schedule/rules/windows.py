"""Which contractions are convolutions: one operand is read in windows.

Input:  ``y[b, o, i, j] = sum(x[b, c, 2 * i + r, 2 * j + s] * w[o, c, r, s] for c, r, s)``
Output: ``Convolution(output=1, pixels=(2, 3), batch=(0,), channels=(c,), taps=(r, s))``

That is any rank, stride, dilation and order of axes. In a convolution with groups the image's
channel depends on the output by ``o // share``.
"""

from __future__ import annotations

from dataclasses import dataclass

from tensorlang.ir.affine import FloorDiv, Var, atom_variables, linear_coefficient
from tensorlang.ir.definition import Axis, Stage
from tensorlang.ir.expr import Load
from tensorlang.schedule.rules.kinds import factors_of_product, variables_of_load


@dataclass(frozen=True, slots=True)
class Convolution:
    """A sum of products of windows of an image with filters.

    ``output``, ``batch`` and ``pixels`` are positions of the stage's axes: the output channel, the
    axes that move no window, and those that do. ``channels`` and ``taps`` are reduction axes, by
    whether they move a position in an image. ``share`` is how many outputs each group has, None
    without groups.
    """

    image: Load
    filters: Load
    output: int
    batch: tuple[int, ...]
    pixels: tuple[int, ...]
    channels: tuple[Axis, ...]
    taps: tuple[Axis, ...]
    share: int | None = None


def as_convolution(stage: Stage) -> Convolution | None:
    """Recognise a sum of products of which one factor is read in windows, if only of a point."""
    factors = factors_of_product(stage)
    if factors is None or not stage.axes:
        return None
    for image, filters in (factors, factors[::-1]):
        found = _with_roles(stage, image, filters)
        if found is not None:
            return found
    return None


def _with_roles(stage: Stage, image: Load, filters: Load) -> Convolution | None:
    in_image, in_filters = variables_of_load(image), variables_of_load(filters)
    outputs = [n for n, axis in enumerate(stage.axes) if axis.variable in in_filters]
    if len(outputs) != 1:
        return None
    output = stage.axes[outputs[0]].variable
    share = None
    if output in in_image:
        share = _share_of(image, output)
        if share is None:
            return None
    taps = tuple([axis for axis in stage.reduction_axes if _moves_window(stage, image, axis)])
    if not taps:
        return None
    if not all(axis.variable in in_image & in_filters for axis in stage.reduction_axes):
        return None
    pixels = [n for n, axis in enumerate(stage.axes) if _is_moved(image, axis, taps)]
    batch = [n for n in range(len(stage.axes)) if n not in pixels and n != outputs[0]]
    channels = tuple([axis for axis in stage.reduction_axes if axis not in taps])
    if not pixels or not all(stage.axes[n].variable in in_image for n in batch):
        return None
    return Convolution(
        image, filters, outputs[0], tuple(batch), tuple(pixels), channels, taps, share
    )


def _moves_window(stage: Stage, image: Load, tap: Axis) -> bool:
    """Tell whether a reduction axis and an axis of the output are added in one index."""
    data = {axis.variable for axis in stage.axes}
    return any(
        linear_coefficient(index, tap.variable) and any(linear_coefficient(index, v) for v in data)
        for index in image.indices
    )


def _is_moved(image: Load, axis: Axis, taps: tuple[Axis, ...]) -> bool:
    return any(
        linear_coefficient(index, axis.variable)
        and any(linear_coefficient(index, tap.variable) for tap in taps)
        for index in image.indices
    )


def _share_of(image: Load, output: Var) -> int | None:
    """Return n if the output enters the image's indices as ``output // n`` alone."""
    found: set[int] = set()
    for index in image.indices:
        for atom, _ in index.terms:
            if output not in atom_variables(atom):
                continue
            if not isinstance(atom, FloorDiv) or len(atom.operand.terms) != 1:
                return None
            if linear_coefficient(atom.operand, output) != 1 or atom.operand.constant:
                return None
            found.add(atom.divisor)
    return found.pop() if len(found) == 1 else None
