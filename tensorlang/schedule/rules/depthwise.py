"""Depthwise convolutions: a small window of products, with no sum over channels.

Input (3x3, images as NCHW)             Output (512-bit vectors, f32)
::

    for c in C:                         parallel for c ...
        for y in OH:                        padded = a strip of the image, its rows set apart
            for z in OW:                    for y.o ... four rows
                for r in 3:                     for z.o ... vectors of a row
                    for s in 3: ...                 unrolled taps, four rows, a vector

The rows of a tile share most of what they read, and their filter's taps stay in registers. The rows
of a padded image are set so far apart that a vector that begins inside a row ends before the next:
then the last vector of a row is read like any other, and only its store is masked.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from tensorlang.ir.affine import linear_coefficient
from tensorlang.ir.definition import Stage
from tensorlang.ir.expr import loads_of
from tensorlang.schedule.rules.kinds import factors_of_product, is_window
from tensorlang.schedule.rules.machine import Machine
from tensorlang.schedule.rules.reduction import vectorize_copy

if TYPE_CHECKING:
    from tensorlang.schedule.schedule import Schedule

_ROWS = 4

_PAIRED = 2
"""The distance of windows up to which a vector is read as two neighbours and a shuffle."""

_FEWEST_LANES = 4
"""Lanes below which gathering the tail of a row costs less than shorter vectors."""


def is_depthwise(stage: Stage) -> bool:
    """Tell whether a stage sums the products of a window and a filter of a few taps."""
    if not stage.axes or not is_window(stage) or factors_of_product(stage) is None:
        return False
    last = stage.axes[-1]
    moved = [load for load in loads_of(*stage.values) if load.indices]
    return any(linear_coefficient(load.indices[-1], last.variable) for load in moved)


def schedule_depthwise(
    schedule: Schedule,
    stage: Stage,
    machine: Machine,
    members: tuple[Stage, ...],
    *,
    parallel: bool,
) -> None:
    """Schedule a window of products; ``members`` are computed in its strips already."""
    names = {axis.variable.name for axis in stage.reduction_axes}
    loops = [loop for loop in schedule[stage.name].loops if loop.kind == "serial"]
    taps = [loop for loop in loops if loop.name in names]
    data = [loop for loop in loops if loop.name not in names]
    if not data:
        return
    lanes = machine.lanes(stage.tensor.dtype)
    extent = stage.axes[-1].extent
    if extent.is_constant:  # no vector that a row cannot fill, none that is gathered in its tail
        apart = _step(stage) > _PAIRED
        while lanes > max(1, extent.constant):
            lanes //= 2
        while apart and lanes > _FEWEST_LANES and extent.constant % lanes:
            lanes //= 2
    column, vector = schedule.split(data[-1], lanes)
    tile = []
    rows = data[:-1]
    if len(rows) > 1 or (rows and not parallel):
        height = 1
        if rows[-1].extent.isdigit():  # a row outside the image would be a condition in each tap
            height = largest_divisor(int(rows[-1].extent), _ROWS)
        rows[-1], inner = schedule.split(rows[-1], height)
        tile = [inner]
    schedule.reorder(*rows, column, *taps, *tile, vector)
    schedule.vectorize(vector)
    for loop in (*taps, *tile):
        schedule.unroll(loop)
    if parallel and rows:
        schedule.parallel(rows[0] if len(rows) == 1 else schedule.fuse(*rows))
    for member in members:
        _set_rows_apart(schedule, stage, member, lanes)
    back = schedule.cache_write(stage.name, at=column)
    vectorize_copy(schedule, back.name, lanes)


def _step(stage: Stage) -> int:
    """Return how far apart the windows of neighbours along the last axis are."""
    last = stage.axes[-1].variable
    steps = [linear_coefficient(load.indices[-1], last) for load in loads_of(*stage.values)
             if load.indices]  # fmt: skip
    return max([abs(step) for step in steps if step], default=1)


def channels_of_a_task(stage: Stage, image: Stage, depth: int, machine: Machine) -> int:
    """Return how many positions of the last of ``depth`` shared axes a task should take.

    So many that their padded images fill half of the first-level cache: a vector that is read just
    after parts of it were written waits for them. 0 where a strip of one image is enough.
    """
    inner = [axis.extent for axis in image.axes[depth:]]
    needed = [*inner, *[axis.extent for axis in stage.axes[max(0, depth - 1) : depth]]]
    if depth < 1 or not all(extent.is_constant for extent in needed):
        return 0
    size = prod(extent.constant for extent in inner) * image.tensor.dtype.bits // 8
    shared = [axis.extent.constant if axis.extent.is_constant else 1 for axis in stage.axes[:depth]]
    most = min(machine.l1_bytes // 2 // max(1, size), prod(shared) // (4 * machine.cores))
    return largest_divisor(shared[-1], most) if most > 1 else 0


def largest_divisor(number: int, most: int) -> int:
    """Return the largest divisor of ``number`` that is at most ``most``."""
    return next((n for n in range(min(number, most), 1, -1) if number % n == 0), 1)


def _set_rows_apart(schedule: Schedule, stage: Stage, member: Stage, lanes: int) -> None:
    """Leave room behind the rows of an image for the vector that sticks out of the last window."""
    last = stage.axes[-1]
    if not last.extent.is_constant or not member.axes[-1].extent.is_constant:
        return
    for load in loads_of(*stage.values):
        step = linear_coefficient(load.indices[-1], last.variable) if load.indices else None
        if load.tensor in member.tensors and step is not None and step > 0:
            missing = step * (-last.extent.constant % lanes)
            if missing:
                schedule.pad_storage(member.name, len(member.axes) - 1, missing)
            return
