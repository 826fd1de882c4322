"""compute_root: a stage is computed whole, before everything that reads it.

It undoes compute_at: the stage gets a full buffer and a nest of its own at the outermost level.
Legal where what the stage reads is computed at that level too. An output that reverse_compute_at
has moved comes back in the same way; a stage that is there already stays as it is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tensorlang.ir.definition import Stage
from tensorlang.ir.program import Program, Stmt
from tensorlang.ir.walk import sequence
from tensorlang.schedule.legality import require_proof
from tensorlang.schedule.naive import allocate_whole, naive_nest
from tensorlang.schedule.primitives.base import Outcome
from tensorlang.schedule.primitives.compute_at import (
    consumers_of,
    require_no_copy,
    require_untouched,
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
        require_untouched(program, self.stage, "compute_root")
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
        stmts.insert(first, naive_nest(self.stage, self.stage.name))
        body = with_root_statements(body, sequence(*stmts))
        return Outcome(replace(program, body=allocate_whole(self.stage, body, program.definition)))

    def _is_at_root(self, program: Program) -> bool:
        """Whether the stage is computed whole by one statement of the outermost level."""
        nest = nest_of(program.body, self.stage)
        mine = [place for place in places_of(program.body) if place.compute.stage is self.stage]
        if nest is None or len(list(places_of(nest))) != len(mine):
            return False
        stored = {alloc.tensor for alloc in enclosing_storage(program.body)}
        return any(nest is stmt for stmt in root_statements(program.body)) and all(
            tensor in stored or tensor in program.definition.outputs
            for tensor in self.stage.tensors
        )


def _holds(stmt: Stmt, computes: set[int]) -> bool:
    return any(id(place.compute) in computes for place in places_of(stmt))
