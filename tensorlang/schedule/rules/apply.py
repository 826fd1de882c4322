"""The rules, one after the other, on a schedule."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorlang.schedule.rules.contraction import schedule_contraction
from tensorlang.schedule.rules.elementwise import schedule_map, schedule_recurrence
from tensorlang.schedule.rules.groups import Group, group_stages
from tensorlang.schedule.rules.inline import inline_producers
from tensorlang.schedule.rules.kinds import as_contraction
from tensorlang.schedule.rules.machine import Machine, host_machine
from tensorlang.schedule.rules.reduction import schedule_reduction, schedule_total

if TYPE_CHECKING:
    from tensorlang.ir.definition import Stage
    from tensorlang.schedule.schedule import Schedule


def apply(schedule: Schedule) -> None:
    """Take the steps of the default schedule."""
    machine = host_machine()
    inline_producers(schedule)
    for group in group_stages(schedule.program):
        _schedule_group(schedule, group, machine)


def _schedule_group(schedule: Schedule, group: Group, machine: Machine) -> None:
    anchor = group.anchor
    contraction = as_contraction(anchor)
    if contraction is not None:
        schedule_contraction(schedule, anchor, contraction, machine)
        return
    if anchor.is_recurrence:
        schedule_recurrence(schedule, anchor)
        return
    if not anchor.axes:
        schedule_total(schedule, anchor, machine)
        return
    if not group.members:
        _schedule_alone(schedule, anchor, machine)
        return
    outer = schedule[anchor.name].loops[0]
    if group.halo:
        outer, _ = schedule.split(outer, strip_rows(group.halo))
    for member in reversed(group.members):
        schedule.compute_at(member.name, outer)
    schedule.parallel(outer)
    for stage in (*group.members, anchor):
        _schedule_inside(schedule, stage, machine)


def strip_rows(halo: int) -> int:
    """Return the height of a strip: the rows computed twice are a small share of it."""
    return max(16, 8 * halo)


def _schedule_alone(schedule: Schedule, stage: Stage, machine: Machine) -> None:
    if stage.is_reduction:
        schedule_reduction(schedule, stage, machine, parallel=True)
    else:
        schedule_map(schedule, stage, machine, parallel=True)


def _schedule_inside(schedule: Schedule, stage: Stage, machine: Machine) -> None:
    if stage.is_reduction:
        schedule_reduction(schedule, stage, machine, parallel=False)
    else:
        schedule_map(schedule, stage, machine, parallel=False)
