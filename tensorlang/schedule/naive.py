"""The program that a definition stands for before anybody schedules it.

Input:  the definition of softmax        Output: one loop nest a stage, in order, each as written

Every stage tensor that the caller does not own has its own full buffer.
"""

from __future__ import annotations

from tensorlang.ir.affine import ONE, ZERO, Affine, Var, affine, substitute
from tensorlang.ir.definition import Definition, Stage
from tensorlang.ir.program import Alloc, Compute, For, Program, Stmt
from tensorlang.ir.routines import loop_order
from tensorlang.ir.walk import sequence


def naive_program(definition: Definition) -> Program:
    """Return the unscheduled program of ``definition``."""
    body = sequence(*[naive_nest(stage, stage.name) for stage in definition.stages])
    for stage in reversed(definition.stages):
        body = allocate_whole(stage, body, definition)
    return Program(definition, definition.stages, body)


def allocate_whole(stage: Stage, body: Stmt, definition: Definition) -> Stmt:
    """Return ``body`` inside full buffers for those tensors of ``stage`` that are no outputs."""
    for tensor in reversed(stage.tensors):
        if tensor not in definition.outputs:
            origin = tuple(ZERO for _ in tensor.shape)
            body = Alloc(tensor, origin, tensor.shape, "global", body)
    return body


def naive_nest(stage: Stage, owner: str) -> Stmt:
    """Return the loops of a whole stage: its axes, then its reduction axes, in fresh variables."""
    return nest_over_box(stage, tuple((ZERO, axis.extent) for axis in stage.axes), owner)


def nest_over_box(
    stage: Stage,
    box: tuple[tuple[Affine, Affine], ...],
    owner: str,
    guard: tuple[Affine, ...] = (),
) -> Stmt:
    """Return the loops that compute ``stage`` over a box of its data axes, each (origin, extent).

    An axis of which the box holds one position gets no loop.

    ``guard`` holds over the stage's own variables; the predicate of a reduction is added to it.
    """
    loops: list[tuple[Var, Affine]] = []
    mapping: dict[Var, Affine] = {}
    for place in loop_order(stage):
        axis, (origin, extent) = stage.axes[place], box[place]
        if extent == ONE and axis.extent != ONE:  # one row of a box needs no loop
            mapping[axis.variable] = origin
            continue
        loops.append((Var(axis.variable.name), extent))
        mapping[axis.variable] = origin + loops[-1][0]
    for axis in stage.reduction_axes:
        loops.append((Var(axis.variable.name), axis.extent))
        mapping[axis.variable] = affine(loops[-1][0])
    forms = tuple(dict.fromkeys(substitute(form, mapping) for form in guard + stage.predicate))
    body: Stmt = Compute(stage, tuple(mapping[v] for v in stage.variables), forms)
    for variable, extent in reversed(loops):
        body = For(variable, extent, "serial", body, owner=owner)
    return body
