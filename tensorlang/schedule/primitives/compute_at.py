"""compute_at: a stage is computed inside a loop of its consumers, just what they need there.

Before                              After ``compute_at(h, i.o)`` of a blur split by 32
::

    h = global f32[M, N - 2]            for i.o in (M + 29) // 32:
    for i in M: ...                         h = global f32[34, N - 2] at [32 * i.o, 0]
        h[i, j] = ...                       for i in 34: ...
    for i.o in (M + 29) // 32:                  h[32 * i.o + i, j] = ...  # if 32 * i.o + i < M
        for i.i in 32: ...                  for i.i in 32: ...
            blur[...] = h[...] + ...            blur[...] = h[...] + ...

Legal when every consumer is inside the loop and the stage is no output. Where the boxes of two
iterations overlap, elements are computed again. The loops of the stage come along as they have been
split, ordered and vectorized; those that nobody has scheduled are made anew, without loops of one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from tensorlang.ir.affine import ZERO, Affine, Var, affine
from tensorlang.ir.definition import Stage
from tensorlang.ir.expr import loads_of
from tensorlang.ir.program import Alloc, Program, Scope, Seq, Stmt
from tensorlang.ir.routines import loop_order, unit_axes
from tensorlang.ir.walk import iterate, sequence
from tensorlang.schedule.boxes import Box, clipping_guard, reads_box
from tensorlang.schedule.legality import require_proof
from tensorlang.schedule.move_nest import find_nest
from tensorlang.schedule.naive import nest_over_box
from tensorlang.schedule.primitives.base import (
    Outcome,
    enclosing,
    enclosing_loops,
    extents_around,
    own_extents,
    require_room,
    the_loop,
)
from tensorlang.schedule.primitives.caching import extents, origins, require_constant_box
from tensorlang.schedule.refusal import Refusal
from tensorlang.schedule.tree import (
    Place,
    find_alloc,
    handle_of,
    label_of,
    nest_of,
    places_of,
    replace_loop,
    without_alloc,
    without_stmt,
)


@dataclass(frozen=True, slots=True)
class ComputeAt:
    """Compute ``stage`` inside ``loop``, over the box that the loop's body reads."""

    stage: Stage
    loop: Var
    scope: Scope = "global"

    def check(self, program: Program) -> None:
        """Refuse outputs, scheduled stages, and loops that do not hold every consumer."""
        loop = the_loop(program, self.loop)
        require_movable(program, self.stage, "compute_at")
        require_room(program, self.loop, "compute_at")
        inside = {id(place.compute) for place in places_of(loop.body)}
        consumers = consumers_of(program, self.stage)
        if not consumers:
            raise Refusal(
                f"nothing reads {self.stage.name}", "remove the stage", loops=(self.loop,)
            )
        for place in consumers:
            if id(place.compute) not in inside:
                reader = label_of(place.compute.stage)
                raise Refusal(
                    f"{reader} reads {self.stage.name} outside {self.loop}",
                    f'a loop that holds {reader} too, or s.compute_at("{reader}", ...) first',
                    loops=(self.loop,),
                    compute=place.compute,
                )
        if any(place.compute.stage is self.stage for place in places_of(loop.body)):
            raise Refusal(
                f"{self.loop} is a loop of {self.stage.name} itself",
                "a loop of a stage that reads it",
                loops=(self.loop,),
            )
        self._require_constant_box(program)
        around = (*enclosing(program.body, self.loop), *iterate(loop.body))
        require_visible(program, self.stage, around, "compute_at", self.loop)
        require_kinds_fit(program, self.stage, "compute_at", self.loop)
        if self._reads_what_is_inside(program):
            require_proof(
                self.apply(program).program,
                f"{self.stage.name} needs more than is computed inside {self.loop} so far",
                "place consumers before producers: compute_at this stage first",
                self.loop,
            )

    def apply(self, program: Program) -> Outcome:
        """Return the program with the stage's nest moved into the loop."""
        nest = nest_of(program.body, self.stage)
        assert nest is not None
        body = without_stmt(program.body, nest)
        for tensor in self.stage.tensors:
            body = without_alloc(body, tensor)
        moved = replace(program, body=body)
        loop = the_loop(moved, self.loop)
        box = self._box(moved)
        around = extents_around(body, self.loop) | own_extents(loop)
        guard = clipping_guard(self.stage, box, around)
        new = nest_in_box(program, self.stage, box, guard)
        inner = before_consumers(loop.body, self.stage, box, new, self.scope)
        body = replace_loop(body, self.loop, lambda old: replace(old, body=inner))
        return Outcome(replace(program, body=body))

    def _require_constant_box(self, program: Program) -> None:
        if self.scope == "local":
            box = self._box(program)
            require_constant_box(box, self.stage.tensor, self.scope, self.loop, "part")

    def _box(self, program: Program) -> Box:
        places = [place.inside(self.loop) for place in _below(program, self.loop)]
        read = [tensor for tensor in self.stage.tensors if _is_read(places, tensor)]
        boxes = [reads_box(places, tensor) for tensor in read]
        whole = tuple((ZERO, axis.extent) for axis in self.stage.axes)
        if any(box != boxes[0] for box in boxes):
            return whole
        runs_along = recurrence_axes(self.stage)
        return tuple(
            everything if position in runs_along else needed
            for position, (everything, needed) in enumerate(zip(whole, boxes[0], strict=True))
        )

    def _reads_what_is_inside(self, program: Program) -> bool:
        loop = the_loop(program, self.loop)
        allocated = {id(stmt.tensor) for stmt in iterate(loop.body) if isinstance(stmt, Alloc)}
        return any(id(load.tensor) in allocated for load in loads_of(*self.stage.values))


def recurrence_axes(stage: Stage) -> set[int]:
    """Return the axes along which a stage is computed as a whole.

    These are those along which a recurrence reads other elements of its own, or a routine's.
    """
    if stage.routine is not None:
        return set(unit_axes(stage))
    return {
        position
        for load in loads_of(*stage.values)
        if load.tensor in stage.tensors
        for position, axis in enumerate(stage.axes)
        if load.indices[position] != affine(axis.variable)
    }


def _is_read(places: list[Place], tensor: object) -> bool:
    return any(
        place.compute.redirect(load.tensor) is tensor
        for place in places
        for load in loads_of(*place.compute.stage.values)
    )


def _below(program: Program, handle: Var) -> list[Place]:
    loop = the_loop(program, handle)
    return list(places_of(loop.body))


def consumers_of(program: Program, stage: Stage) -> list[Place]:
    """Return the statements of other stages that read what ``stage`` computes."""
    return [
        place
        for place in places_of(program.body)
        if place.compute.stage is not stage
        and any(
            place.compute.redirect(load.tensor) is tensor
            for load in loads_of(*place.compute.stage.values)
            for tensor in stage.tensors
        )
    ]


def require_movable(program: Program, stage: Stage, step: str) -> None:
    """Refuse outputs, copies, and stages whose loops cannot be taken along."""
    require_inner(program, stage, step)
    require_known_loops(program, stage, step)


def require_known_loops(program: Program, stage: Stage, step: str) -> None:
    """Refuse stages whose loops are more than split, ordered and given a kind."""
    if is_as_made(program, stage) or find_nest(program, stage) is not None:
        return
    for place in places_of(program.body):
        if place.compute.stage is stage and not is_untouched(place, stage):
            raise Refusal(
                f"the loops of {stage.name} have been scheduled already, by more than split, tile, "
                f"reorder, vectorize, parallel and unroll, and {step} cannot take them along",
                f"{step} first, then the other steps",
                loops=tuple(handle_of(loop) for loop in place.loops if loop.owner == stage.name),
            )


def require_kinds_fit(program: Program, stage: Stage, step: str, handle: Var) -> None:
    """Refuse a stage with a parallel loop, or a second unrolled one, where it would not fit."""
    if is_as_made(program, stage):
        return
    nest = find_nest(program, stage)
    assert nest is not None
    around = (*enclosing_loops(program.body, handle), the_loop(program, handle))
    for outer in around:
        for inner in nest.loops:
            if outer.kind == "serial" or inner.kind not in ("parallel", "unrolled"):
                continue
            if inner.kind == "unrolled" and outer.kind != "unrolled":
                continue
            raise Refusal(
                f"the {inner.kind} loop {inner.variable} of {stage.name} would be nested in the "
                f"{outer.kind} loop {handle_of(outer)}",
                f"{step} first, and choose how the loops run afterwards",
                loops=(handle_of(outer), inner.variable),
            )


def is_as_made(program: Program, stage: Stage) -> bool:
    """Tell whether nobody has scheduled the loops of a stage."""
    places = [place for place in places_of(program.body) if place.compute.stage is stage]
    return all(is_untouched(place, stage) for place in places)


def nest_in_box(program: Program, stage: Stage, box: Box, guard: tuple[Affine, ...] = ()) -> Stmt:
    """Return the loops of a stage over a box: those that it has, or new ones."""
    nest = None if is_as_made(program, stage) else find_nest(program, stage)
    if nest is None:
        return nest_over_box(stage, box, stage.name, guard)
    return nest.over(box, guard)


def require_inner(program: Program, stage: Stage, step: str) -> None:
    """Refuse outputs and copies."""
    outputs = program.definition.outputs
    if any(tensor in outputs for tensor in stage.tensors):
        raise Refusal(
            f"{stage.name} is an output, which the caller sees whole",
            f"{step} a stage that only other stages read; reverse_compute_at moves a consumer",
        )
    require_no_copy(stage)


def require_no_copy(stage: Stage) -> None:
    """Refuse copies, which belong to the loop that they were made for."""
    if stage.copies is not None:
        raise Refusal(
            f"{label_of(stage)} is a copy, and stays where cache_read or cache_write put it",
            "give that step another loop",
        )


def require_visible(
    program: Program, stage: Stage, around: Iterable[Stmt], step: str, *loops: Var
) -> None:
    """Refuse to compute a stage where something that it reads has no storage."""
    visible = set(around)
    for load in loads_of(*stage.values):
        alloc = find_alloc(program.body, load.tensor)
        if alloc is not None and alloc not in visible and load.tensor not in stage.tensors:
            raise Refusal(
                f"{stage.name} reads {load.tensor}, which lives inside other loops only",
                f'{step} before {load.tensor} is moved, or s.compute_root("{load.tensor}") first',
                loops=loops,
            )


def is_untouched(place: Place, stage: Stage) -> bool:
    """Tell whether the loops of ``stage`` at ``place`` are still as they were made."""
    own = [loop for loop in place.loops if loop.owner == stage.name]
    every = [stage.axes[axis] for axis in loop_order(stage)] + list(stage.reduction_axes)
    axes = iter([axis.variable.name for axis in every])
    plain = all(loop.kind == "serial" for loop in own)
    return (
        all(handle_of(loop).name in axes for loop in own)  # in order, units left out
        and plain
        and not place.compute.via
        and place.compute.part == "whole"
    )


def before_consumers(body: Stmt, stage: Stage, box: Box, nest: Stmt, scope: Scope) -> Stmt:
    """Return ``body`` with a stage's storage and nest before the first statement that reads it."""
    if isinstance(body, Alloc):
        return replace(body, body=before_consumers(body.body, stage, box, nest, scope))
    stmts = body.stmts if isinstance(body, Seq) else (body,)
    first = next(
        n
        for n, stmt in enumerate(stmts)
        if any(_is_read(list(places_of(stmt)), t) for t in stage.tensors)
    )
    rest = sequence(nest, *stmts[first:])
    for tensor in reversed(stage.tensors):
        rest = Alloc(tensor, origins(box), extents(box), scope, rest)
    return sequence(*stmts[:first], rest)
