"""reverse_compute_at: a stage is computed inside a loop of the stage that it reads.

Before                              After ``reverse_compute_at(relu, i.o)``
::

    for i.o in ...:                     for i.o in ...:
        C[6*i.o + i.i, j] += ...            C[6*i.o + i.i, j] += ...
    for i in M: ...                         for i in 6: ...
        relu[i, j] = max(C[i, j], 0)            relu[6*i.o + i, j] = max(C[6*i.o + i, j], 0)

Legal where each element depends on what the loop's body writes, complete by then: an elementwise
consumer, after the loops of the reduction that it reads; a reduction over whole rows of what it
reads, such as the sum of a softmax inside the loop over its rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tensorlang.ir.affine import ZERO, Affine, Var, affine, substitute
from tensorlang.ir.definition import Stage, Tensor
from tensorlang.ir.expr import loads_of
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
        """Refuse scans, scheduled stages, and stages that need more than the loop's body writes."""
        stage = self.stage
        is_known = stage.is_map or (stage.is_reduction and not stage.is_recurrence)
        if not is_known or stage.copies is not None or stage.routine is not None:
            raise Refusal(
                f"{self.stage.name} is no elementwise stage and no reduction",
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
        self._reads(program)
        require_proof(
            self.apply(program).program,
            f"{self.stage.name} would read, inside {self.loop}, what is not complete there",
            "a loop further out, where all that it reads is complete",
            self.loop,
        )

    def apply(self, program: Program) -> Outcome:
        """Return the program with the stage's nest moved to the end of the loop's body."""
        reads = self._reads(program)
        nest = nest_of(program.body, self.stage)
        assert nest is not None
        body = without_stmt(program.body, nest)
        loop = the_loop(program, self.loop)
        around = extents_around(program.body, self.loop) | own_extents(loop)
        box, guard = self._region(reads, around)
        new = nest_over_box(self.stage, box, self.stage.name, guard)
        body = replace_loop(body, self.loop, lambda old: replace(old, body=sequence(old.body, new)))
        return Outcome(replace(program, body=body))

    def _reads(self, program: Program) -> _Reads:
        """Return how the stage reads what the loop's body writes, and the writing statements."""
        loop = the_loop(program, self.loop)
        inside = list(places_of(loop.body))
        loads = list(loads_of(*self.stage.values))
        for tensor in dict.fromkeys(load.tensor for load in loads):
            writers = [
                place
                for place in inside
                if tensor in place.compute.stage.tensors and place.compute.part != "init"
            ]
            if not writers:
                continue
            found = self._offsets([load.indices for load in loads if load.tensor is tensor])
            if found is None:
                raise Refusal(
                    f"{self.stage.name} does not read {tensor} element by element",
                    "compute_at moves the stage that it reads instead",
                    loops=(self.loop,),
                )
            return _Reads(tensor, *found, writers)
        raise Refusal(
            f"{self.stage.name} reads nothing that is computed inside {self.loop}",
            "a loop of a stage that it reads",
            loops=(self.loop,),
        )

    def _offsets(
        self, reads: list[tuple[Affine, ...]]
    ) -> tuple[tuple[Var, ...], tuple[int, ...]] | None:
        """Return the axis that each index moves with, and the greatest number added to it.

        None where an index is anything but an axis of the stage and a number.
        """
        own = {axis.variable for axis in (*self.stage.axes, *self.stage.reduction_axes)}
        axes: list[Var] = []
        for dimension in zip(*reads, strict=True):
            terms = {index.terms for index in dimension}
            (atom, coefficient), *more = next(iter(terms)) or ((None, 0),)
            if len(terms) != 1 or more or coefficient != 1 or atom not in own:
                return None
            assert isinstance(atom, Var)
            axes.append(atom)
        if len(set(axes)) != len(axes):
            return None
        lags = tuple(max(index.constant for index in d) for d in zip(*reads, strict=True))
        return tuple(axes), lags

    def _region(self, reads: _Reads, around: dict[Var, Affine]) -> tuple[Box, tuple[Affine, ...]]:
        """Return what the stage can compute once the body has run, and where that is so."""
        place = reads.places[0]
        producer = place.compute.stage
        written = writes_box(reads.places, place.compute.redirect(reads.tensor))
        forms, _ = written_guard(place, producer, written, around)
        self._require_whole_sums(reads, written)
        box: list[tuple[Affine, Affine]] = []
        for axis in self.stage.axes:
            box.append((ZERO, axis.extent))
            if axis.variable in reads.axes:
                dimension = reads.axes.index(axis.variable)
                origin, extent = written[dimension]
                if (origin, extent) != (ZERO, reads.tensor.shape[dimension]):
                    box[-1] = (origin - reads.lags[dimension], extent)
        mapping = {
            theirs.variable: affine(mine) + lag
            for theirs, mine, lag in zip(producer.axes, reads.axes, reads.lags, strict=True)
        }
        guard = clipping_guard(self.stage, tuple(box), around)
        translated = tuple(substitute(form, mapping) for form in forms)
        return tuple(box), guard + tuple(form for form in translated if form not in guard)

    def _require_whole_sums(self, reads: _Reads, written: Box) -> None:
        for axis in self.stage.reduction_axes:
            dimension = reads.axes.index(axis.variable) if axis.variable in reads.axes else None
            whole = None if dimension is None else (ZERO, reads.tensor.shape[dimension])
            if dimension is None or written[dimension] != whole:
                part = f"{axis.variable}, of which {self.loop} has a part"
                raise Refusal(
                    f"{self.stage.name} reduces over {part}",
                    "a loop further out, whose body computes all that is reduced",
                    loops=(self.loop,),
                )


@dataclass(frozen=True, slots=True)
class _Reads:
    """A stage reads ``tensor[axis + offset, ...]``; ``lags`` are the greatest offsets."""

    tensor: Tensor
    axes: tuple[Var, ...]
    lags: tuple[int, ...]
    places: list[Place]
