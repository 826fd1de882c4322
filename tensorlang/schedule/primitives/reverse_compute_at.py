"""reverse_compute_at: a stage is computed inside a loop of the stage that it reads.

Before                              After ``reverse_compute_at(relu, i.o)``
::

    for i.o in ...:                     for i.o in ...:
        C[6*i.o + i.i, j] += ...            C[6*i.o + i.i, j] += ...
    for i in M: ...                         for i in 6: ...
        relu[i, j] = max(C[i, j], 0)            relu[6*i.o + i, j] = max(C[6*i.o + i, j], 0)

Legal where each element depends on one element of what the loop's body writes, complete by then:
an elementwise consumer, after the loops of the reduction that it reads.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tensorlang.ir.affine import ZERO, Affine, Var, affine, linear_coefficient, substitute
from tensorlang.ir.definition import Stage, Tensor
from tensorlang.ir.expr import Load, loads_of
from tensorlang.ir.program import Program
from tensorlang.ir.walk import sequence
from tensorlang.schedule.boxes import Box, clipping_guard, writes_box, written_guard
from tensorlang.schedule.legality import require_proof
from tensorlang.schedule.naive import nest_over_box
from tensorlang.schedule.primitives.base import (
    Outcome,
    extents_around,
    own_extents,
    require_room,
    the_loop,
)
from tensorlang.schedule.primitives.compute_at import is_untouched
from tensorlang.schedule.refusal import Refusal
from tensorlang.schedule.tree import Place, nest_of, places_of, replace_loop, without_stmt


@dataclass(frozen=True, slots=True)
class ReverseComputeAt:
    """Compute ``stage`` at the end of the body of ``loop``, over what the body has produced."""

    stage: Stage
    loop: Var

    def check(self, program: Program) -> None:
        """Refuse reductions, scheduled stages, and stages that are not elementwise in the loop."""
        if not self.stage.is_map or self.stage.copies is not None:
            raise Refusal(
                f"{self.stage.name} is no elementwise stage",
                "compute_at moves what it reads instead",
                loops=(self.loop,),
            )
        require_room(program, self.loop, "reverse_compute_at")
        for place in places_of(program.body):
            if place.compute.stage is self.stage and not is_untouched(place, self.stage):
                raise Refusal(
                    f"the loops of {self.stage.name} have been scheduled already",
                    "reverse_compute_at first, then split",
                    loops=(self.loop,),
                )
        self._load(program)
        require_proof(
            self.apply(program).program,
            f"{self.stage.name} would read, inside {self.loop}, what is not complete there",
            "a loop further out, where all that it reads is complete",
            self.loop,
        )

    def apply(self, program: Program) -> Outcome:
        """Return the program with the stage's nest moved to the end of the loop's body."""
        load, places = self._load(program)
        nest = nest_of(program.body, self.stage)
        assert nest is not None
        body = without_stmt(program.body, nest)
        loop = the_loop(program, self.loop)
        around = extents_around(program.body, self.loop) | own_extents(loop)
        box, guard = self._region(load, places, around)
        new = nest_over_box(self.stage, box, self.stage.name, guard)
        body = replace_loop(body, self.loop, lambda old: replace(old, body=sequence(old.body, new)))
        return Outcome(replace(program, body=body))

    def _load(self, program: Program) -> tuple[Load, list[Place]]:
        """Return the stage's load of what the loop's body writes, and the writing statements."""
        loop = the_loop(program, self.loop)
        inside = list(places_of(loop.body))
        own_axes = {axis.variable for axis in self.stage.axes}
        for load in loads_of(*self.stage.values):
            writers = [p for p in inside if load.tensor in p.compute.stage.tensors]
            if not writers:
                continue
            used = [self._axis_of(index, own_axes) for index in load.indices]
            if None in used or len(set(used)) != len(used):
                raise Refusal(
                    f"{self.stage.name} does not read {load.tensor} element by element",
                    "compute_at moves the stage that it reads instead",
                    loops=(self.loop,),
                )
            return load, [p for p in writers if p.compute.part != "init"]
        raise Refusal(
            f"{self.stage.name} reads nothing that is computed inside {self.loop}",
            "a loop of a stage that it reads",
            loops=(self.loop,),
        )

    def _axis_of(self, index: Affine, axes: set[Var]) -> Var | None:
        terms = [atom for atom, _ in index.terms]
        plain = len(terms) == 1 and terms[0] in axes and index.constant == 0
        found = terms[0] if plain else None
        return found if isinstance(found, Var) and linear_coefficient(index, found) == 1 else None

    def _region(
        self, load: Load, places: list[Place], around: dict[Var, Affine]
    ) -> tuple[Box, tuple[Affine, ...]]:
        tensor: Tensor = load.tensor
        producer = places[0].compute.stage
        written = writes_box(places, places[0].compute.redirect(tensor))
        forms, _ = written_guard(places[0], producer, written, around)
        axes = [index.terms[0][0] for index in load.indices]
        box: list[tuple[Affine, Affine]] = []
        for axis in self.stage.axes:
            if axis.variable in axes:
                box.append(written[axes.index(axis.variable)])
            else:
                box.append((ZERO, axis.extent))
        mapping = {
            theirs.variable: affine(mine) for theirs, mine in zip(producer.axes, axes, strict=True)
        }
        guard = clipping_guard(self.stage, tuple(box), around)
        translated = tuple(substitute(form, mapping) for form in forms)
        return tuple(box), guard + tuple(form for form in translated if form not in guard)
