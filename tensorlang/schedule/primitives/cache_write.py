"""cache_write: a stage computes into a copy, which is written back when it is done.

Before                              After ``cache_write(C, at=i.o, scope="local")``
::

    for i.o in ...:                     for i.o in ...:
        for k in K:                         C.local = local f32[6, 16] at [6 * i.o, ...]
            for i.i in 6: ...               for k in K:
                C[...] += A * B                 for i.i in 6: ...
                                                    C.local[...] += A * B
                                            for i in 6: ...
                                                C[6 * i.o + i, ...] = C.local[...]

Between reduction loops, when the loop lies inside one that it does not finish, the copy is read
back first: copied in, accumulated, copied out. Always legal for the statements inside the loop,
as no other iteration sees the copy; what is written back is exactly what was written.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tensorlang.ir.affine import Affine, Var, affine, substitute
from tensorlang.ir.definition import Stage, Tensor
from tensorlang.ir.program import Alloc, Program, Scope, Stmt
from tensorlang.ir.walk import sequence
from tensorlang.schedule.boxes import Box, is_filled, writes_box, written_guard
from tensorlang.schedule.legality import reduction_depends_on, require_proof
from tensorlang.schedule.naive import nest_over_box
from tensorlang.schedule.primitives.base import (
    Outcome,
    enclosing_loops,
    extents_around,
    own_extents,
    the_loop,
)
from tensorlang.schedule.primitives.caching import (
    cache_name,
    copy_stage,
    extents,
    origins,
    redirect,
    require_constant_box,
)
from tensorlang.schedule.refusal import Refusal
from tensorlang.schedule.tree import Place, find_alloc, label_of, places_of, replace_loop


@dataclass(frozen=True, slots=True)
class CacheWrite:
    """Compute ``stage`` into a copy during one iteration of ``loop``."""

    stage: Stage
    loop: Var
    scope: Scope = "local"

    def check(self, program: Program) -> None:
        """Refuse loops that do not hold the stage, symbolic boxes in registers, mixed guards."""
        places = self._places(program)
        if not places:
            raise Refusal(
                f"{self.loop} does not hold {self.stage.name}",
                "a loop around the stage",
                loops=(self.loop,),
            )
        for tensor in self._written(places):
            if find_alloc(the_loop(program, self.loop).body, tensor) is not None:
                raise Refusal(
                    f"{tensor} is allocated inside {self.loop}",
                    "a loop inside the storage of the tensor",
                    loops=(self.loop,),
                )
            box = writes_box(places, tensor)
            require_constant_box(box, tensor, self.scope, self.loop)
        if self._needs_proof(program, places):
            require_proof(
                self.apply(program).program,
                f"what {self.stage.name} writes inside {self.loop} is no box to be copied back",
                "a loop further in or further out",
                self.loop,
            )

    def apply(self, program: Program) -> Outcome:
        """Return the program with the copy placed; returns the stage that copies back."""
        places = self._places(program)
        accumulates = self._accumulates(program, places)
        loop = the_loop(program, self.loop)
        around = extents_around(program.body, self.loop) | own_extents(loop)
        body = loop.body
        stages = program.stages
        results: list[Stage] = []
        for tensor in self._written(places):
            box = writes_box(places, tensor)
            guard, _ = written_guard(places[0], places[0].compute.stage, box, around)
            renamed = Tensor(cache_name(program, tensor, "local"), tensor.shape, tensor.dtype)
            back = copy_stage(tensor, renamed)
            inner: list[Stmt] = [redirect(body, tensor, renamed)]
            if accumulates:
                load = copy_stage(renamed, tensor)
                inner.insert(0, self._copy_nest(load, places[0], box, guard))
                stages = (*stages, load)
            inner.append(self._copy_nest(back, places[0], box, guard))
            stages = (*stages, back)
            results.append(back)
            body = Alloc(renamed, origins(box), extents(box), self.scope, sequence(*inner))
        new = replace_loop(program.body, self.loop, lambda old: replace(old, body=body))
        return Outcome(replace(program, body=new, stages=stages), tuple(results))

    def _copy_nest(self, copy: Stage, place: Place, box: Box, guard: tuple[Affine, ...]) -> Stmt:
        pairs = zip(place.compute.stage.axes, copy.axes, strict=True)
        mapping = {theirs.variable: affine(ours.variable) for theirs, ours in pairs}
        forms = tuple(substitute(form, mapping) for form in guard)
        return nest_over_box(copy, box, label_of(copy), forms)

    def _places(self, program: Program) -> list[Place]:
        return [
            place
            for place in places_of(the_loop(program, self.loop).body)
            if place.compute.stage is self.stage
        ]

    def _written(self, places: list[Place]) -> list[Tensor]:
        """Return where the stage writes now: its tensors, or the copies of an earlier step."""
        compute = places[0].compute
        return [compute.redirect(own) for own in self.stage.tensors]

    def _accumulates(self, program: Program, places: list[Place]) -> bool:
        """Tell whether values from before the iteration are needed: a reduction goes on."""
        loop = the_loop(program, self.loop)
        handles = (*enclosing_loops(program.body, self.loop), loop)
        around: list[Var] = [v for outer in handles for v in own_extents(outer)]
        if any(reduction_depends_on(place, v) for place in places for v in around):
            return True
        if self.stage.is_recurrence:
            return True
        parts = {place.compute.part for place in places}
        return "update" in parts and "init" not in parts

    def _needs_proof(self, program: Program, places: list[Place]) -> bool:
        if len(places) > 1 or self.stage.is_recurrence or not is_filled(places[0]):
            return True
        loop = the_loop(program, self.loop)
        around = extents_around(program.body, self.loop) | own_extents(loop)
        box = writes_box(places, self._written(places)[0])
        return not written_guard(places[0], self.stage, box, around)[1]
