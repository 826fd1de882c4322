"""The rules, one after the other, on a schedule."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorlang.schedule.rules.attention import find_attention, place_attention
from tensorlang.schedule.rules.contraction import ProductPlan, schedule_contraction
from tensorlang.schedule.rules.convolution import schedule_convolution
from tensorlang.schedule.rules.depthwise import (
    channels_of_a_task,
    is_depthwise,
    schedule_depthwise,
)
from tensorlang.schedule.rules.elementwise import schedule_map, schedule_recurrence
from tensorlang.schedule.rules.groups import Group, group_stages
from tensorlang.schedule.rules.inline import inline_producers
from tensorlang.schedule.rules.kinds import as_contraction, is_window
from tensorlang.schedule.rules.machine import Machine, machine_of
from tensorlang.schedule.rules.next_row import prefetch_next_row
from tensorlang.schedule.rules.reduction import (
    schedule_reduction,
    schedule_total,
    schedule_window,
)
from tensorlang.schedule.rules.routine import schedule_routine
from tensorlang.schedule.rules.transforms import (
    find_transformed,
    schedule_transformed,
    without_transformed,
)
from tensorlang.schedule.rules.transposition import as_transposition, schedule_transposition
from tensorlang.schedule.rules.windows import as_convolution

if TYPE_CHECKING:
    from tensorlang.ir.definition import Stage
    from tensorlang.schedule.handles import Loop
    from tensorlang.schedule.schedule import Schedule


def apply(schedule: Schedule, target: str, plan: ProductPlan | None = None) -> None:
    """Take the steps of the default schedule for the machine that ``target`` means.

    ``plan`` is that of the only contraction, if it was made before.
    """
    machine = machine_of(target)
    inline_producers(schedule)
    groups = group_stages(schedule.program, machine)
    transformed = find_transformed(schedule.program, machine)
    for found in transformed:
        schedule_transformed(schedule, found, machine)
    groups = without_transformed(groups, transformed)
    program = schedule.program
    chains = find_attention(groups, list(program.stages), program.definition)
    for chain in chains:
        place_attention(schedule, chain, machine)
        for stage in (*chain.rows, *([chain.finish] if chain.finish else [])):
            _schedule_stage(schedule, stage, machine, parallel=False)
    taken = {id(stage) for chain in chains for stage in chain.stages}
    for group in groups:
        if id(group.anchor) not in taken:
            _schedule_group(schedule, group, machine, plan)


def _schedule_group(
    schedule: Schedule, group: Group, machine: Machine, plan: ProductPlan | None
) -> None:
    anchor = group.anchor
    convolution = as_convolution(anchor)
    contraction = as_contraction(anchor)
    if convolution is not None and group.is_convolution:
        schedule_convolution(schedule, anchor, convolution, machine, group.padding, group.epilogue)
    elif contraction is not None:
        schedule_contraction(schedule, anchor, contraction, machine, group.epilogue, plan)
    elif anchor.is_recurrence:
        schedule_recurrence(schedule, anchor)
    elif anchor.routine is not None:
        schedule_routine(schedule, anchor)
    elif not anchor.axes:
        schedule_total(schedule, anchor, machine)
    elif not group.members:
        _schedule_stage(schedule, anchor, machine, parallel=True)
    else:
        outer = _shared_loop(schedule, group, machine)
        for member in reversed(group.members):
            schedule.compute_at(member.name, outer)
        schedule.parallel(outer)
        for stage in group.members:
            _schedule_stage(schedule, stage, machine, parallel=False)
        _schedule_stage(schedule, anchor, machine, parallel=False, members=group.members)
        if group.depth == 1 and group.halo is None:
            prefetch_next_row(schedule, group, outer)


def _shared_loop(schedule: Schedule, group: Group, machine: Machine) -> Loop:
    """Return the loop that the members join: the shared axes and a strip of the next one."""
    loops = list(schedule[group.anchor.name].loops)
    shared = loops[: group.depth]
    channels = 0
    if is_depthwise(group.anchor) and len(group.members) == 1:
        channels = channels_of_a_task(group.anchor, group.members[0], group.depth, machine)
    if channels:
        shared[-1], _ = schedule.split(shared[-1], channels)
    elif group.halo is not None:
        strip, _ = schedule.split(loops[group.depth], strip_rows(group.halo))
        shared.append(strip)
    return shared[0] if len(shared) == 1 else schedule.fuse(*shared)


def strip_rows(halo: int) -> int:
    """Return the height of a strip: what is computed twice is a small share of it."""
    return max(16, 4 * halo) if halo else 64


def _schedule_stage(
    schedule: Schedule,
    stage: Stage,
    machine: Machine,
    *,
    parallel: bool,
    members: tuple[Stage, ...] = (),
) -> None:
    transposition = as_transposition(stage) if parallel else None
    if transposition is not None:
        schedule_transposition(schedule, stage, transposition, machine)
    elif not stage.is_reduction:
        schedule_map(schedule, stage, machine, parallel=parallel)
    elif is_depthwise(stage):
        schedule_depthwise(schedule, stage, machine, members, parallel=parallel)
    elif is_window(stage) and stage.axes:
        schedule_window(schedule, stage, machine, parallel=parallel)
    else:
        schedule_reduction(schedule, stage, machine, parallel=parallel)
