"""Maps: the outer loop parallel, the contiguous loop in vectors.

Before                      After (two axes, f32, 512-bit vectors)
::

    for i in M:                 parallel for i in M:
        for j in N:                 for j.o in (N + 15) // 16:
            Y[i, j] = ...               vectorized for j.i in 16:
                                            Y[i, 16 * j.o + j.i] = ...
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorlang.ir.definition import Stage
from tensorlang.schedule.rules.machine import Machine

if TYPE_CHECKING:
    from tensorlang.schedule.handles import Loop
    from tensorlang.schedule.schedule import Schedule

_CHUNK_VECTORS = 64
"""A thread takes this many vectors of a one-dimensional map at a time."""


def schedule_map(schedule: Schedule, stage: Stage, machine: Machine, *, parallel: bool) -> None:
    """Schedule the loops of a map; inside a group, only its vectors are chosen."""
    loops = list(schedule[stage.name].loops)
    loops = [loop for loop in loops if loop.kind == "serial"]
    if not loops:
        return
    inner = loops[-1]
    lanes = machine.lanes(stage.tensor.dtype)
    if parallel and len(loops) == 1:
        chunk, inner = schedule.split(inner, lanes * _CHUNK_VECTORS)
        schedule.parallel(chunk)
    elif parallel:
        outer = loops[0] if len(loops) == 2 else schedule.fuse(*loops[:-1])
        schedule.parallel(outer)
    vectorize_loop(schedule, inner, lanes)


def vectorize_loop(schedule: Schedule, loop: Loop, lanes: int) -> None:
    """Run a loop in vectors; one shorter than a vector is left as it is."""
    if loop.extent.isdigit() and int(loop.extent) < lanes:
        return
    _, vector = schedule.split(loop, lanes)
    schedule.vectorize(vector)


def schedule_recurrence(schedule: Schedule, stage: Stage) -> None:
    """Schedule a scan: rows in parallel, each in order."""
    if len(stage.axes) > 1:
        schedule.parallel(schedule[stage.name].loops[0])
