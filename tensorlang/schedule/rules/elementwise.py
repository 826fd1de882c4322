"""Maps: the outer loop parallel, the contiguous loop in vectors.

Before                      After (two axes, f32, 256-bit vectors)
::

    for i in M:                 parallel for i in M:
        for j in N:                 for j.o in (N + 7) // 8:
            Y[i, j] = ...               vectorized for j.i in 8:
                                            Y[i, 8 * j.o + j.i] = ...

A map that computes little waits for memory; it gets no wider vectors than these, but four a step.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tensorlang.ir.affine import Var, variables_of
from tensorlang.ir.definition import Stage
from tensorlang.ir.expr import loads_of
from tensorlang.schedule.rules.kinds import case_axes, is_expensive
from tensorlang.schedule.rules.machine import Machine

if TYPE_CHECKING:
    from tensorlang.schedule.handles import Loop
    from tensorlang.schedule.schedule import Schedule

HALF_LINE = 32
"""Bytes of a vector of which two make a line of the cache."""

_STREAMED = 4
"""Vectors a step in maps that wait for memory."""

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
    cases = _case_loops(stage, loops[:-1])
    if cases:
        loops = [loop for loop in loops if loop not in cases]
        schedule.reorder(*loops, *cases)
        for loop in cases:
            schedule.unroll(loop)
    crossed = None if cases else _crossed_axis(stage)
    if parallel and crossed is not None and len(loops) == len(stage.axes):
        # lines of the operand are read for some rows at a time, while they are in the cache
        block, loops[crossed] = schedule.split(loops[crossed], lanes)
        row = loops.pop(crossed)
        loops = [*loops[:crossed], block, *loops[crossed:-1], row, inner]
        schedule.reorder(*loops)
        schedule.parallel(schedule.fuse(*loops[:-2]) if len(loops) > 3 else block)
    elif parallel and len(loops) == 1:
        chunk, inner = schedule.split(inner, lanes * _CHUNK_VECTORS)
        schedule.parallel(chunk)
    elif parallel:
        outer = loops[0] if len(loops) == 2 else schedule.fuse(*loops[:-1])
        schedule.parallel(outer)
    is_stream = parallel and crossed is None and not cases and not is_expensive(*stage.values)
    if is_stream and machine.vector_bytes > HALF_LINE:
        _vectorize_stream(schedule, inner, max(1, lanes * HALF_LINE // machine.vector_bytes))
    else:
        vectorize_loop(schedule, inner, lanes, inside=cases)


def _vectorize_stream(schedule: Schedule, loop: Loop, lanes: int) -> None:
    """Run a loop that waits for memory in vectors of half a line, several a step.

    The second access to a line is what lets the prefetcher of the first-level cache follow.
    """
    if loop.extent.isdigit() and int(loop.extent) < lanes * _STREAMED:
        vectorize_loop(schedule, loop, lanes)
        return
    _, step = schedule.split(loop, lanes * _STREAMED)
    block, vector = schedule.split(step, lanes)
    schedule.unroll(block)
    schedule.vectorize(vector)


def _case_loops(stage: Stage, loops: list[Loop]) -> list[Loop]:
    """Return the loops over cases: written out, what the cases have in common is computed once."""
    names = {axis.variable.name for axis in case_axes(stage)}
    return [loop for loop in loops if loop.name in names]


def _crossed_axis(stage: Stage) -> int | None:
    """Return the axis along which an operand is contiguous, if it is another than the last."""
    last = stage.axes[-1].variable
    for load in loads_of(*stage.values):
        found = frozenset[Var]() if not load.indices else variables_of(load.indices[-1])
        crosses = any(last in variables_of(index) for index in load.indices[:-1])
        if crosses and last not in found:
            for place, axis in enumerate(stage.axes):
                if axis.variable in found:
                    return place
    return None


def vectorize_loop(schedule: Schedule, loop: Loop, lanes: int, inside: Sequence[Loop] = ()) -> None:
    """Run a loop in vectors; one shorter than a vector is left as it is.

    ``inside`` are unrolled loops below it, which the vectors move into.
    """
    if loop.extent.isdigit() and int(loop.extent) < lanes:
        return
    outer, vector = schedule.split(loop, lanes)
    if inside:
        schedule.reorder(outer, *inside, vector)
    schedule.vectorize(vector)


def schedule_recurrence(schedule: Schedule, stage: Stage) -> None:
    """Schedule a scan: rows in parallel, each in order."""
    if len(stage.axes) > 1:
        schedule.parallel(schedule[stage.name].loops[0])
