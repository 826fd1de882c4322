"""Elementwise producers disappear into their readers, where that computes nothing twice.

A stage is inlined when it is cheap and read at few places, or when it is read once. What a
reduction reads many times over (a producer lacking one of the reduction's outer axes) is kept if
it is expensive.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorlang.ir.affine import variables_of
from tensorlang.ir.definition import Stage
from tensorlang.ir.expr import Call, iterate
from tensorlang.schedule.rules.kinds import case_axes, is_conditional, is_expensive, is_map, reads

if TYPE_CHECKING:
    from tensorlang.schedule.schedule import Schedule

_FEW_READS = 3
_LARGE = 64
"""Calls in a reader beyond which nothing more is inlined into it."""


def inline_producers(schedule: Schedule) -> None:
    """Inline, first to last, every stage for which that pays."""
    for stage in schedule.definition.stages:
        current = _current(schedule, stage)
        if _pays(schedule, current):
            schedule.compute_inline(current.name)


def _current(schedule: Schedule, stage: Stage) -> Stage:
    """Return the stage as earlier inlining left it."""
    return next(s for s in schedule.program.stages if s.tensors == stage.tensors)


def _pays(schedule: Schedule, stage: Stage) -> bool:
    definition = schedule.definition
    if not is_map(stage) or any(t in definition.outputs for t in stage.tensors):
        return False
    if case_axes(stage):
        return False  # its cases share what they read only where they are written out together
    readers = [s for s in schedule.program.stages if reads(s, stage)]
    if any(_reads_inside_index(reader, stage) for reader in readers):
        return False
    if any(_reads_at_data(reader, stage) for reader in readers):
        return False
    if any(reader.is_recurrence or reader.routine is not None for reader in readers):
        return False
    places = [(reader, load) for reader in readers for load in reads(reader, stage)]
    if any(_calls(reader) > _LARGE for reader in readers):
        return False
    repeated = any(_is_read_repeatedly(reader, load.indices) for reader, load in places)
    if is_conditional(stage) and any(reader.is_reduction for reader in readers):
        return False  # a branch would spoil the inner loop of the reduction
    if is_expensive(*stage.values):
        return len(places) == 1 and not repeated
    return len(places) <= _FEW_READS


def _is_read_repeatedly(reader: Stage, indices: tuple[object, ...]) -> bool:
    """Whether the reader's axes outnumber those that the index depends on."""
    from tensorlang.ir.affine import Affine

    used = {v for index in indices if isinstance(index, Affine) for v in variables_of(index)}
    return not {axis.variable for axis in reader.all_axes} <= used


def _reads_inside_index(reader: Stage, stage: Stage) -> bool:
    from tensorlang.schedule.primitives.compute_inline import reads_inside_index

    return reads_inside_index(reader, stage)


def _reads_at_data(reader: Stage, stage: Stage) -> bool:
    from tensorlang.schedule.primitives.compute_inline import reads_at_data

    return reads_at_data(reader, stage)


def _calls(stage: Stage) -> int:
    return sum(isinstance(expr, Call) for expr in iterate(*stage.values))
