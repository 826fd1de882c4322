"""Reductions that are no contractions: several accumulators, in vectors.

Along contiguous memory (a row sum), the lanes of one step get a partial result each, combined at
the end of the row. Across it (a column sum), the columns are the lanes. A reduction to a single
value is cut into chunks of fixed size, so that results do not depend on the number of threads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorlang.ir.definition import Stage
from tensorlang.schedule.rules.kinds import reads_last_axis
from tensorlang.schedule.rules.machine import Machine

if TYPE_CHECKING:
    from tensorlang.schedule.handles import Loop
    from tensorlang.schedule.schedule import Schedule

_ACCUMULATORS = 4
_CHUNK_BYTES = 256 * 1024


def schedule_reduction(
    schedule: Schedule, stage: Stage, machine: Machine, *, parallel: bool
) -> None:
    """Schedule a reduction with data axes; inside a group, its outer loops stay serial."""
    assert stage.combiner is not None
    loops = [loop for loop in schedule[stage.name].loops if loop.kind == "serial"]
    if parallel and stage.axes:
        schedule.parallel(loops[0])
    if stage.combiner.ordered or not stage.reduction_axes:
        return
    if reads_last_axis(stage) or not stage.axes:
        _accumulate_lanes(schedule, stage, machine)
    else:
        _accumulate_columns(schedule, stage, machine, loops)


def _accumulate_lanes(schedule: Schedule, stage: Stage, machine: Machine) -> None:
    """Give each lane of each accumulator its own partial result."""
    lanes = machine.lanes(stage.tensors[0].dtype)
    inner = schedule[stage.name].loops[-1]
    wanted = lanes * _ACCUMULATORS
    if inner.extent.isdigit() and int(inner.extent) < wanted:
        return
    _, lane = schedule.split(inner, wanted)
    partial = schedule.rfactor(lane)
    schedule.vectorize(lane)
    del partial
    last = schedule[stage.name].loops[-1]
    _, narrow = schedule.split(last, lanes)
    second = schedule.rfactor(narrow)
    schedule.vectorize(narrow)
    del second


def _accumulate_columns(
    schedule: Schedule, stage: Stage, machine: Machine, loops: list[Loop]
) -> None:
    """Run the last data axis in vectors, inside the reduction, accumulated in registers."""
    lanes = machine.lanes(stage.tensors[0].dtype)
    count = len(stage.axes)
    data = loops[: len(loops) - len(stage.reduction_axes)]
    reduction = loops[len(data) :]
    del count
    if not data:
        return
    column = data[-1]
    if column.kind != "serial" or (column.extent.isdigit() and int(column.extent) < lanes):
        return
    outer, inner = schedule.split(column, lanes * _ACCUMULATORS)
    block, lane = schedule.split(inner, lanes)
    schedule.reorder(outer, *reduction, block, lane)
    schedule.vectorize(lane)
    schedule.unroll(block)
    back = schedule.cache_write(stage.name, at=outer)
    vectorize_copy(schedule, back.name, lanes)


def vectorize_copy(schedule: Schedule, copy: str, lanes: int) -> None:
    """Run the contiguous loop of a copy in vectors, and write out the other constant loops."""
    loops = schedule[copy].loops
    if not loops:
        return
    for loop in loops[:-1]:
        schedule.unroll(loop)
    last = loops[-1]
    if last.extent.isdigit() and int(last.extent) > lanes:
        block, last = schedule.split(last, lanes)
        schedule.unroll(block)
    schedule.vectorize(last)


def schedule_total(schedule: Schedule, stage: Stage, machine: Machine) -> None:
    """Schedule a stage without axes: a single value."""
    if stage.combiner is None or stage.combiner.ordered or not stage.reduction_axes:
        return
    loops = schedule[stage.name].loops
    lanes = machine.lanes(stage.tensors[0].dtype)
    outer = loops[0]
    if len(loops) == 1:
        per_chunk = max(lanes * _ACCUMULATORS, _CHUNK_BYTES // 4)
        if outer.extent.isdigit() and int(outer.extent) <= per_chunk:
            _accumulate_lanes(schedule, stage, machine)
            return
        outer, inner = schedule.split(outer, per_chunk)
        partial = schedule.rfactor(outer)
        schedule.parallel(outer)
        del inner
    else:
        partial = schedule.rfactor(outer)
        schedule.parallel(outer)
    last = partial.loops[-1]
    wanted = lanes * _ACCUMULATORS
    if last.extent.isdigit() and int(last.extent) < wanted:
        return
    _, lane = schedule.split(last, wanted)
    schedule.rfactor(lane)
    schedule.vectorize(lane)
