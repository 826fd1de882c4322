"""reverse_compute_inline: an elementwise stage disappears into the stage that it reads.

Before                              After ``reverse_compute_inline(Y)``
::

    for i.o in ...:                     for i.o in ...:
        for i.i in 8:                       for i.i in 8:
            e[8*i.o + i.i] = exp(X[...])        Y[8*i.o + i.i] = exp(X[...]) * 2
    for i in N:
        Y[i] = e[i] * 2

What ``compute_inline`` does for the stage that is read, with the loops of the other one: those of
the stage that is read stay as they are scheduled. Legal where the elements of the two stages
correspond, and nothing else reads the first.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tensorlang.ir.affine import Affine, affine
from tensorlang.ir.definition import Stage
from tensorlang.ir.derivation import Inlined
from tensorlang.ir.expr import Load, loads_of
from tensorlang.ir.program import Compute, Program, Stmt
from tensorlang.ir.walk import rewrite
from tensorlang.schedule.legality import require_proof
from tensorlang.schedule.primitives.base import Outcome
from tensorlang.schedule.primitives.compute_at import consumers_of
from tensorlang.schedule.primitives.compute_inline import inlined_into, reads_inside_index
from tensorlang.schedule.refusal import Refusal
from tensorlang.schedule.tree import nest_of, places_of, without_alloc, without_stmt


@dataclass(frozen=True, slots=True)
class ReverseComputeInline:
    """Compute ``stage`` where the one stage that it reads element by element is computed."""

    stage: Stage

    def check(self, program: Program) -> None:
        """Refuse reductions on either side, other readers, and elements that do not correspond."""
        if self.stage.is_reduction or self.stage.is_recurrence or self.stage.copies is not None:
            raise Refusal(
                f"{self.stage.name} is no elementwise stage",
                "compute_inline takes the stage that it reads instead",
            )
        source = self._source(program)
        if any(place.compute.stage is not self.stage for place in consumers_of(program, source)):
            raise Refusal(
                f"{source.name} is read by other stages too",
                f's.compute_inline("{source.name}") puts it into all of them',
            )
        if source.is_reduction or source.is_recurrence:
            raise Refusal(
                f"{source.name} is complete only after its last step, and {self.stage.name} cannot "
                "be computed in each",
                f's.reverse_compute_at("{self.stage.name}", ...) computes it as soon as it is',
            )
        places = [p for p in places_of(program.body) if p.compute.stage in (self.stage, source)]
        nest = nest_of(program.body, self.stage)
        mine = [] if nest is None else list(places_of(nest))
        if len(mine) != sum(place.compute.stage is self.stage for place in places):
            raise Refusal(
                f"{self.stage.name} is computed in several places",
                "reverse_compute_inline before peel",
            )
        if any(place.compute.via for place in places):
            raise Refusal(
                f"{self.stage.name} or {source.name} is computed through copies",
                "inline before cache_read and cache_write",
            )
        require_proof(
            self.apply(program).program,
            f"{self.stage.name} needs more than there is where {source.name} is computed",
            f's.compute_inline("{source.name}") keeps the loops of {self.stage.name}',
        )

    def apply(self, program: Program) -> Outcome:
        """Return the program with the stage computed by the nest of the one that it reads."""
        source = self._source(program)
        load = self._load(source)
        order = [load.indices.index(affine(axis.variable)) for axis in self.stage.axes]
        new = inlined_into(self.stage, source)
        nest = nest_of(program.body, self.stage)
        body = program.body if nest is None else without_stmt(program.body, nest)
        for tensor in source.tensors:
            body = without_alloc(body, tensor)

        def visit(stmt: Stmt) -> Stmt:
            if not isinstance(stmt, Compute) or stmt.stage is not source:
                return stmt
            return replace(stmt, stage=new, binding=tuple([stmt.binding[n] for n in order]))

        record = Inlined(self.stage, new, source)
        stages = tuple(
            new if stage is self.stage else stage for stage in program.stages if stage is not source
        )
        return Outcome(
            replace(
                program,
                body=rewrite(body, visit),
                stages=stages,
                derivations=(*program.derivations, record),
            )
        )

    def _source(self, program: Program) -> Stage:
        """Return a stage that is read element by element; if there is one, by no other stage."""
        found: list[Stage] = []
        for stage in program.stages:
            read = {load.tensor for load in loads_of(*self.stage.values)}
            hidden = not any(tensor in program.definition.outputs for tensor in stage.tensors)
            if stage is self.stage or read.isdisjoint(stage.tensors) or not hidden:
                continue
            if stage.copies is None and self._corresponds(stage):
                found.append(stage)
        for stage in found:
            if all(place.compute.stage is self.stage for place in consumers_of(program, stage)):
                return stage
        if found:
            return found[0]
        raise Refusal(
            f"{self.stage.name} reads no stage element by element",
            "a stage such as Y[i] = e[i] * 2, whose e only Y reads",
        )

    def _corresponds(self, source: Stage) -> bool:
        loads = [load for load in loads_of(*self.stage.values) if load.tensor in source.tensors]
        if len({load.indices for load in loads}) != 1 or reads_inside_index(self.stage, source):
            return False
        axes: dict[Affine, Affine] = {
            affine(axis.variable): axis.extent for axis in self.stage.axes
        }
        indices = loads[0].indices
        return (
            set(indices) == set(axes)
            and len(indices) == len(axes)
            and all(axes[i] == axis.extent for i, axis in zip(indices, source.axes, strict=True))
        )

    def _load(self, source: Stage) -> Load:
        return next(load for load in loads_of(*self.stage.values) if load.tensor in source.tensors)
