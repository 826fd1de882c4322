"""Row chains (softmax, layer normalisation): ask for the next row while this one is computed.

Before                              After
::

    parallel for i in M:                parallel for i in M:
        ... sums along X[i, :]              ... sums along X[i, :]
        for j.o in (N + 15) // 16:          for j.o in (N + 15) // 16:
            Y[i, ...] = X[i, ...] ...           prefetch Y[i + 1, 16 * j.o : + 16]
                                                prefetch X[i + 1, 16 * j.o : + 16]
                                                Y[i, ...] = X[i, ...] ...

A line is read before a part of it is written, so that the result's rows are waited for as well. The
first pass over a row would wait for memory, as each row is short and begins elsewhere; the last
pass has time to spare, since its row lies in the cache and it computes the most.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorlang.ir.affine import Var, depends_on, linear_coefficient
from tensorlang.ir.definition import Stage, Tensor
from tensorlang.ir.expr import loads_of
from tensorlang.schedule.rules.groups import Group

if TYPE_CHECKING:
    from tensorlang.schedule.handles import Loop
    from tensorlang.schedule.schedule import Schedule


def prefetch_next_row(schedule: Schedule, group: Group, rows: Loop) -> None:
    """Prefetch the next row of each operand of a group of rows, and of its result.

    An operand's in the last map that reads it, the result's where it is written.
    """
    stages = [*group.members, group.anchor]
    found = False
    for tensor in schedule.program.definition.inputs:
        readers = [stage for stage in stages if _reads_row(stage, tensor)]
        if len(readers) < 2 or not readers[-1].is_map:
            continue
        found |= _prefetch(schedule, tensor, readers[-1], rows)
    is_result = group.anchor.tensor in schedule.program.definition.outputs
    if found and is_result and group.anchor.is_map and len(group.anchor.axes) == 2:
        _prefetch(schedule, group.anchor.tensor, group.anchor, rows)


def _prefetch(schedule: Schedule, tensor: Tensor, stage: Stage, rows: Loop) -> bool:
    """Prefetch the next row of a tensor in the passes of a stage; tell whether that fits."""
    loops = schedule[stage.name].loops
    steps = [loop for loop in loops if loop.kind == "serial"]
    if len(steps) != 1 or loops[-1].kind != "vectorized":
        return False
    schedule.prefetch(tensor.name, at=steps[0], along=rows)
    return True


def _reads_row(stage: Stage, tensor: Tensor) -> bool:
    """Tell whether a stage reads a row of a matrix: its own, and contiguously along it."""
    loads = [load for load in loads_of(*stage.values) if load.tensor is tensor]
    return bool(loads) and all(
        len(load.indices) == 2
        and depends_on(load.indices[0], {stage.axes[0].variable})
        and _is_along(load.indices[1], [axis.variable for axis in stage.all_axes[1:]])
        for load in loads
    )


def _is_along(index: object, variables: list[Var]) -> bool:
    from tensorlang.ir.affine import Affine

    return isinstance(index, Affine) and any(linear_coefficient(index, v) == 1 for v in variables)
