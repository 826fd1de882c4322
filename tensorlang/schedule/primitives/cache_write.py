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
back first: copied in, accumulated, copied out. Legal where what is written back is what was
written, or what was there before: where structure does not show it, the program is proved.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tensorlang.ir.affine import Affine, Var, affine, substitute
from tensorlang.ir.definition import Stage, Tensor
from tensorlang.ir.program import Alloc, Program, Scope, Stmt
from tensorlang.ir.walk import sequence
from tensorlang.schedule.boxes import (
    Box,
    accesses_box,
    clipping_guard,
    covers_box,
    writes_box,
    written_guard,
)
from tensorlang.schedule.legality import is_proved, reduction_depends_on, require_proof
from tensorlang.schedule.naive import nest_over_box
from tensorlang.schedule.primitives.base import (
    Outcome,
    enclosing_loops,
    extents_around,
    own_extents,
    require_room,
    the_loop,
)
from tensorlang.schedule.primitives.caching import (
    accessed_tensors,
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
        """Refuse loops that do not hold the stage, and symbolic boxes in registers."""
        require_room(program, self.loop, "cache_write")
        loop = the_loop(program, self.loop)
        places = self._places(program)
        if not places:
            raise Refusal(
                f"{self.loop} does not hold {label_of(self.stage)}",
                "a loop around the stage",
                loops=(self.loop,),
            )
        for tensor in self._written(places):
            if find_alloc(loop.body, tensor) is not None:
                raise Refusal(
                    f"{tensor} is allocated inside {self.loop}",
                    "a loop inside the storage of the tensor",
                    loops=(self.loop,),
                )
            require_constant_box(self._box(places, tensor), tensor, self.scope, self.loop)
        if not self._is_plain(program, places) and not self._is_proved(program, copies_in=False):
            require_proof(
                self._cached(program, copies_in=True).program,
                f"what {label_of(self.stage)} writes inside {self.loop} is no box to be copied "
                "back",
                "a loop further in or further out",
                self.loop,
            )

    def apply(self, program: Program) -> Outcome:
        """Return the program with the copy placed; returns the stage that copies back."""
        places = self._places(program)
        if self._is_plain(program, places):
            return self._cached(program, copies_in=self._continues(program, places))
        return self._cached(program, copies_in=not self._is_proved(program, copies_in=False))

    def _cached(self, program: Program, *, copies_in: bool) -> Outcome:
        """Return the program with the copy placed, perhaps filled with what was there before."""
        places = self._places(program)
        body = the_loop(program, self.loop).body
        stages = program.stages
        results: list[Stage] = []
        for tensor in self._written(places):
            box = self._box(places, tensor)
            guard = self._guard(program, places, box)
            renamed = Tensor(cache_name(program, tensor, "local"), tensor.shape, tensor.dtype)
            back = copy_stage(tensor, renamed)
            inner: list[Stmt] = [redirect(body, tensor, renamed)]
            if copies_in:
                load = copy_stage(renamed, tensor)
                inner.insert(0, self._copy_nest(load, box, guard))
                stages = (*stages, load)
            inner.append(self._copy_nest(back, box, guard))
            stages = (*stages, back)
            results.append(back)
            body = Alloc(renamed, origins(box), extents(box), self.scope, sequence(*inner))
        new = replace_loop(program.body, self.loop, lambda old: replace(old, body=body))
        return Outcome(replace(program, body=new, stages=stages), tuple(results[:1]))

    def _copy_nest(self, copy: Stage, box: Box, guard: tuple[Affine, ...]) -> Stmt:
        pairs = zip(self.stage.axes, copy.axes, strict=True)
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

    def _box(self, places: list[Place], tensor: Tensor) -> Box:
        """Return the box that is written, and what a recurrence reads of itself."""
        return (
            accesses_box(places, tensor) if self.stage.is_recurrence else writes_box(places, tensor)
        )

    def _guard(self, program: Program, places: list[Place], box: Box) -> tuple[Affine, ...]:
        """Return the forms, over the stage's axes, that hold where something is written."""
        around = self._around(program)
        guards = {written_guard(place, self.stage, box, around)[0] for place in places}
        if len(guards) > 1 or self.stage.is_recurrence:
            return clipping_guard(self.stage, box, around)
        return guards.pop()

    def _around(self, program: Program) -> dict[Var, Affine]:
        return extents_around(program.body, self.loop) | own_extents(the_loop(program, self.loop))

    def _is_plain(self, program: Program, places: list[Place]) -> bool:
        """Tell whether structure shows that exactly the guarded box is written."""
        if self.stage.is_recurrence or not self._is_alone(program, places):
            return False
        if self.stage.predicate and self._continues(program, places):
            return False  # an iteration may only copy, in and out
        if places[0].compute.part == "init":
            return False
        box = self._box(places, self._written(places)[0])
        _, complete = written_guard(places[0], self.stage, box, self._around(program))
        return complete and covers_box(places[0])

    def _is_alone(self, program: Program, places: list[Place]) -> bool:
        """Tell whether one statement inside the loop touches what is cached, and no other."""
        written = set(self._written(places))
        touching = [
            place
            for place in places_of(the_loop(program, self.loop).body)
            if not written.isdisjoint(accessed_tensors(place.compute))
        ]
        return len(touching) == 1

    def _continues(self, program: Program, places: list[Place]) -> bool:
        """Tell whether a reduction goes on that began before the iteration."""
        compute = places[0].compute
        if compute.part == "update":
            return True  # it stands alone inside the loop, and the init does not
        loops = (*enclosing_loops(program.body, self.loop), the_loop(program, self.loop))
        return any(
            reduction_depends_on(places[0], variable)
            for loop in loops
            for variable in own_extents(loop)
        )

    def _is_proved(self, program: Program, *, copies_in: bool) -> bool:
        return is_proved(self._cached(program, copies_in=copies_in).program)
