"""compute_root: a stage is computed whole, before everything that reads it.

It undoes compute_at: the stage gets a full buffer and a nest of its own at the outermost level.
Legal where what the stage reads is computed at that level too. An output that reverse_compute_at
has moved comes back in the same way; a stage that is there already stays as it is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tensorlang.ir.affine import ZERO
from tensorlang.ir.definition import Stage
from tensorlang.ir.program import Program, Stmt
from tensorlang.ir.walk import sequence
from tensorlang.schedule.legality import require_proof
from tensorlang.schedule.naive import allocate_whole
from tensorlang.schedule.primitives.base import Outcome
from tensorlang.schedule.primitives.compute_at import (
    consumers_of,
    nest_in_box,
    require_known_loops,
    require_no_copy,
    require_visible,
)
from tensorlang.schedule.primitives.root import (
    enclosing_storage,
    root_statements,
    with_root_statements,
)
from tensorlang.schedule.tree import nest_of, places_of, without_alloc, without_stmt


@dataclass(frozen=True, slots=True)
class ComputeRoot:
    """Compute ``stage`` at the outermost level."""

    stage: Stage

    def check(self, program: Program) -> None:
        """Refuse copies, scheduled stages, and stages that read what is computed deeper down."""
        require_no_copy(self.stage)
        if self._is_at_root(program):
            return
        require_known_loops(program, self.stage, "compute_root")
        around = enclosing_storage(program.body)
        require_visible(program, self.stage, around, "compute_root")
        require_proof(
            self.apply(program).program,
            f"{self.stage.name} reads what is not computed yet at the outermost level",
            "move the stages that it reads to the root first",
        )

    def apply(self, program: Program) -> Outcome:
        """Return the program with the stage's nest at the root; itself if it is there already."""
        if self._is_at_root(program):
            return Outcome(program)
        nest = nest_of(program.body, self.stage)
        assert nest is not None
        body = without_stmt(program.body, nest)
        for tensor in self.stage.tensors:
            body = without_alloc(body, tensor)
        moved = replace(program, body=body)
        readers = {id(place.compute) for place in consumers_of(moved, self.stage)}
        stmts = list(root_statements(body))
        first = next((n for n, stmt in enumerate(stmts) if _holds(stmt, readers)), len(stmts))
        whole = tuple((ZERO, axis.extent) for axis in self.stage.axes)
        stmts.insert(first, nest_in_box(program, self.stage, whole))
        body = with_root_statements(body, sequence(*stmts))
        return Outcome(replace(program, body=allocate_whole(self.stage, body, program.definition)))

    def _is_at_root(self, program: Program) -> bool:
        """Whether a statement of the outermost level computes the stage, and nothing but copies."""
        stored = {alloc.tensor for alloc in enclosing_storage(program.body)}
        if not all(t in stored or t in program.definition.outputs for t in self.stage.tensors):
            return False
        holding = [
            found
            for stmt in root_statements(program.body)
            if self.stage in (found := {place.compute.stage for place in places_of(stmt)})
        ]
        return all(
            stage is self.stage or stage.copies is not None for found in holding for stage in found
        )


def _holds(stmt: Stmt, computes: set[int]) -> bool:
    return any(id(place.compute) in computes for place in places_of(stmt))
