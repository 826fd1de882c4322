"""Products between transforms, as Winograd's algorithm has them: one band of images at a time.

Before, in phases                       After, in bands
::

    columns = ... rows ...              parallel for b.v ... bands of rows of tiles
    products = sum(columns * u)             rows, columns = of this band
    sums = ... products ...                 products = tiles in registers
    pixels = ... sums ...                   sums = of this band
                                            pixels = ... sums ...

The transforms are maps whose cases are written out; each is read by the next one alone. A band is
small enough to stay in the second-level cache, beside the filters, which every band reads again:
where they are too large for that, the phases run over whole images.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from tensorlang.ir.definition import Stage
from tensorlang.ir.program import Program
from tensorlang.schedule.rules.elementwise import schedule_map
from tensorlang.schedule.rules.facts import Range
from tensorlang.schedule.rules.groups import Group
from tensorlang.schedule.rules.kinds import as_contraction, case_axes, reads
from tensorlang.schedule.rules.machine import Machine
from tensorlang.schedule.rules.reduction import vectorize_copy
from tensorlang.schedule.rules.registers import fill_registers
from tensorlang.schedule.rules.tiles import choose_tile

if TYPE_CHECKING:
    from tensorlang.schedule.schedule import Schedule

_L2_SHARE = 2
"""The filters fill at most this part of the second-level cache."""

_SHARED = 2
"""The leading axes of the last transform that are the bands: images and rows of tiles."""


@dataclass(frozen=True, slots=True)
class Transformed:
    """A contraction, and the transforms before and after it, in order of computation."""

    before: tuple[Stage, ...]
    products: Stage
    after: tuple[Stage, ...]

    @property
    def stages(self) -> tuple[Stage, ...]:
        """All stages, in order."""
        return (*self.before, self.products, *self.after)


def find_transformed(program: Program, machine: Machine) -> list[Transformed]:
    """Return the contractions between transforms that are worth banding."""
    found: list[Transformed] = []
    for stage in program.stages:
        contraction = as_contraction(stage)
        if contraction is None or contraction.batch == () or len(contraction.rows) < _SHARED:
            continue
        before, after = _transforms_before(program, stage), _transforms_after(program, stage)
        if not before or not after or len(after[-1].axes) <= _SHARED:
            continue
        shape = contraction.column_operand.tensor.shape
        extents = [axis.extent for s in (*before, stage, *after) for axis in s.all_axes]
        if not all(extent.is_constant and extent.constant > 0 for extent in (*extents, *shape)):
            continue
        size = prod(extent.constant for extent in shape) * stage.tensor.dtype.bits // 8
        bands = prod(axis.extent.constant for axis in after[-1].axes[:_SHARED])
        if size <= machine.l2_bytes // _L2_SHARE and bands >= 2 * machine.cores:
            found.append(Transformed(before, stage, after))
    return found


def _transforms_before(program: Program, stage: Stage) -> tuple[Stage, ...]:
    made = [s for s in program.stages if reads(stage, s) and s is not stage]
    if len(made) != 1 or not _is_transform(program, made[0], stage):
        return ()
    return (*_transforms_before(program, made[0]), made[0])


def _transforms_after(program: Program, stage: Stage) -> tuple[Stage, ...]:
    readers = [s for s in program.stages if reads(s, stage) and s is not stage]
    outputs = program.definition.outputs
    if len(readers) != 1 or any(tensor in outputs for tensor in stage.tensors):
        return ()
    if not case_axes(readers[0]):
        return ()
    return (readers[0], *_transforms_after(program, readers[0]))


def _is_transform(program: Program, stage: Stage, reader: Stage) -> bool:
    readers = [s for s in program.stages if reads(s, stage)]
    outputs = program.definition.outputs
    kept = any(tensor in outputs for tensor in stage.tensors)
    return bool(case_axes(stage)) and readers == [reader] and not kept


def without_transformed(groups: list[Group], chains: list[Transformed]) -> list[Group]:
    """Return the groups of what is left; a group that loses a stage is spread."""
    taken = {id(stage) for chain in chains for stage in chain.stages}
    result: list[Group] = []
    for group in groups:
        stages = (*group.members, group.anchor)
        left = [stage for stage in stages if id(stage) not in taken]
        if len(left) == len(stages):
            result.append(group)
        else:
            result.extend(Group(stage, ()) for stage in left)
    return result


def schedule_transformed(schedule: Schedule, chain: Transformed, machine: Machine) -> None:
    """Compute the chain in bands of its last transform."""
    *after, last = chain.after
    band = schedule.fuse(*schedule[last.name].loops[:_SHARED])
    for stage in reversed((*chain.before, chain.products, *after)):
        schedule.compute_at(stage.name, band)
    schedule.parallel(band)
    for stage in (*chain.before, *chain.after):
        schedule_map(schedule, stage, machine, parallel=False)
    _schedule_products(schedule, chain.products, machine)


def _schedule_products(schedule: Schedule, stage: Stage, machine: Machine) -> None:
    contraction = as_contraction(stage)
    assert contraction is not None
    lanes = machine.lanes(stage.tensor.dtype)
    loops = {loop.name: loop for loop in schedule[stage.name].loops}
    row = loops.pop(stage.axes[contraction.rows[-1]].variable.name, None)
    column = loops.pop(stage.axes[-1].variable.name)
    sums = [loops.pop(axis.variable.name) for axis in stage.reduction_axes
            if axis.variable.name in loops]  # fmt: skip
    rows, columns = (1 if row is None else int(row.extent)), int(column.extent)
    tile = choose_tile(
        machine,
        stage.tensor.dtype,
        Range(rows, rows),
        Range(columns, columns),
        parallel_columns=False,
    )
    panel, in_panel = schedule.split(column, tile.vectors * lanes)
    outer = [*loops.values(), panel]
    in_strip = None
    if row is not None:
        strip, in_strip = schedule.split(row, tile.rows)
        outer.append(strip)
    inner = [in_panel] if in_strip is None else [in_strip, in_panel]
    schedule.reorder(*outer, *sums, *inner)
    fill_registers(schedule, in_strip, in_panel, tile.vectors * lanes, lanes)
    back = schedule.cache_write(stage.name, at=outer[-1])
    vectorize_copy(schedule, back.name, lanes)
