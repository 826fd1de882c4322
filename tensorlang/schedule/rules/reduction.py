"""Reductions that are no contractions: several accumulators, in vectors.

Along contiguous memory (a row sum), the lanes of one step get a partial result each, combined at
the end of the row. Across it (a column sum), the columns are the lanes. Over a small window (a
stencil), the window is written out. A reduction to a single value is cut into chunks of fixed
size, so that results do not depend on the number of threads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorlang.ir.definition import Stage
from tensorlang.schedule.rules.elementwise import HALF_LINE
from tensorlang.schedule.rules.kinds import reads_last_axis
from tensorlang.schedule.rules.machine import Machine

if TYPE_CHECKING:
    from tensorlang.schedule.handles import Loop
    from tensorlang.schedule.schedule import Schedule

_ACCUMULATORS = 4
_HALVES = 8
"""Accumulators of half the width: as many loads are on their way as the window holds."""

_FEW_LANES = 4
"""Lanes that are added up one by one: each waits for the one before."""

_CHUNK_BYTES = 256 * 1024


def schedule_reduction(
    schedule: Schedule, stage: Stage, machine: Machine, *, parallel: bool
) -> None:
    """Schedule a reduction with data axes; inside a group, its outer loops stay serial."""
    assert stage.combiner is not None
    data, reduction = _loops(schedule, stage)
    along = reads_last_axis(stage) or not data
    if parallel and data and (along or len(data) > 1):
        schedule.parallel(data[0])
    if stage.combiner.ordered or not reduction:
        return
    if along:
        accumulate_lanes(schedule, stage, machine)
    else:
        _accumulate_columns(schedule, stage, machine, data, reduction, parallel=parallel)


def _lanes(stage: Stage, machine: Machine) -> int:
    """Return how many lanes all parts of the state have: an argmax of i8 counts in i64."""
    return min(machine.lanes(tensor.dtype) for tensor in stage.tensors)


def _loops(schedule: Schedule, stage: Stage) -> tuple[list[Loop], list[Loop]]:
    """Return the untouched data loops and reduction loops of a stage."""
    loops = [loop for loop in schedule[stage.name].loops if loop.kind == "serial"]
    names = [axis.variable.name for axis in stage.reduction_axes]
    count = len(loops) - len(names)
    return loops[:count], loops[count:]


def accumulate_lanes(
    schedule: Schedule, stage: Stage, machine: Machine, *, from_memory: bool = False
) -> None:
    """Give each lane of each accumulator its own partial result.

    What comes ``from_memory`` is read in vectors of half a line at most: the second access to a
    line is what lets the prefetcher of the first-level cache follow the stream.
    """
    lanes = _lanes(stage, machine)
    halves = from_memory and machine.vector_bytes > HALF_LINE
    if halves:
        lanes = max(1, lanes * HALF_LINE // machine.vector_bytes)
    inner = schedule[stage.name].loops[-1]
    wanted = lanes * (_HALVES if halves else _ACCUMULATORS)
    if inner.extent.isdigit() and int(inner.extent) < wanted:
        return
    _, lane = schedule.split(inner, wanted)
    schedule.rfactor(lane)
    if halves:
        block, lane = schedule.split(lane, lanes)
        schedule.unroll(block)
    schedule.vectorize(lane)
    while True:
        _, narrow = schedule.split(schedule[stage.name].loops[-1], lanes)
        schedule.rfactor(narrow)
        schedule.vectorize(narrow)
        lanes //= _FEW_LANES
        if lanes < _FEW_LANES:
            break


def _accumulate_columns(
    schedule: Schedule,
    stage: Stage,
    machine: Machine,
    data: list[Loop],
    reduction: list[Loop],
    *,
    parallel: bool,
) -> None:
    """Run the last data axis in vectors, inside the reduction, accumulated in registers."""
    lanes = _lanes(stage, machine)
    column = data[-1]
    if column.extent.isdigit() and int(column.extent) < lanes:
        return
    # Half of the registers, so that each row is read in long runs.
    outer, inner = schedule.split(column, lanes * machine.vector_registers // 2)
    block, lane = schedule.split(inner, lanes)
    schedule.reorder(outer, *reduction, block, lane)
    schedule.vectorize(lane)
    schedule.unroll(block)
    if parallel and len(data) == 1:
        schedule.parallel(outer)
    back = schedule.cache_write(stage.name, at=outer)
    vectorize_copy(schedule, back.name, lanes)


def schedule_window(schedule: Schedule, stage: Stage, machine: Machine, *, parallel: bool) -> None:
    """Write out a small window for each vector of the last data axis."""
    data, reduction = _loops(schedule, stage)
    lanes = _lanes(stage, machine)
    if not data or not reduction:
        return
    column = data[-1]
    if column.extent.isdigit() and int(column.extent) < lanes:
        return
    outer, lane = schedule.split(column, lanes)
    schedule.reorder(outer, *reduction, lane)
    schedule.vectorize(lane)
    for loop in reduction:
        schedule.unroll(loop)
    if parallel:
        rows = data[:-1]
        schedule.parallel(
            outer if not rows else rows[0] if len(rows) == 1 else schedule.fuse(*rows)
        )
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
    """Schedule a stage without axes: a single value, by way of chunks of fixed size."""
    if stage.combiner is None or stage.combiner.ordered or not stage.reduction_axes:
        return
    loops = schedule[stage.name].loops
    outer = loops[0]
    if len(loops) == 1:
        lanes = _lanes(stage, machine)
        per_chunk = max(lanes * _ACCUMULATORS, _CHUNK_BYTES * 8 // stage.tensors[0].dtype.bits)
        if outer.extent.isdigit() and int(outer.extent) <= per_chunk:
            accumulate_lanes(schedule, stage, machine)
            return
        outer, _ = schedule.split(outer, per_chunk)
    partial = schedule.rfactor(outer)
    schedule.parallel(outer)
    accumulate_lanes(schedule, _stage_of(schedule, partial.name), machine, from_memory=True)


def _stage_of(schedule: Schedule, name: str) -> Stage:
    return next(stage for stage in schedule.program.stages if stage.name == name)
