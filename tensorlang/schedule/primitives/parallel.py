"""parallel: iterations of a loop run on several threads.

Before                      After ``parallel(i)``
::

    for i in M:                 parallel for i in M:
        Y[i] = exp(X[i])            Y[i] = exp(X[i])

Legal where no iteration writes what another reads or writes; storage allocated inside the loop is
private to an iteration. A parallel loop may hold another only directly below it (they run as one).
"""

from __future__ import annotations

from dataclasses import dataclass

from tensorlang.ir.affine import Var
from tensorlang.ir.program import For, Fused, Program
from tensorlang.schedule.legality import require_independent
from tensorlang.schedule.primitives.base import Outcome, enclosing_loops, require_serial, the_loop
from tensorlang.schedule.primitives.kinds import with_kind
from tensorlang.schedule.refusal import Refusal
from tensorlang.schedule.tree import handle_of, loops_of


@dataclass(frozen=True, slots=True)
class Parallel:
    """Run the iterations of ``loop`` on several threads."""

    loop: Var

    def check(self, program: Program) -> None:
        """Refuse dependent iterations, and parallel loops that are not perfectly nested."""
        loop = the_loop(program, self.loop)
        require_serial(loop, "parallel")
        around = [x for x in enclosing_loops(program.body, self.loop) if x.kind != "serial"]
        below = [x for x in loops_of(loop.body) if x.kind == "parallel"]
        for other in (*around, *below):
            if other.kind in ("vectorized", "unrolled"):
                raise Refusal(
                    f"{self.loop} stands inside the {other.kind} loop {handle_of(other)}",
                    "make an outer loop parallel",
                    loops=(self.loop, handle_of(other)),
                )
            outer, inner = (other, loop) if other in around else (loop, other)
            if isinstance(outer, Fused) or not isinstance(inner, For) or outer.body is not inner:
                raise Refusal(
                    f"{handle_of(outer)} and {handle_of(inner)} would be parallel loops one inside "
                    "the other without being perfectly nested",
                    "keep one of them serial, or reorder until they stand directly one inside the "
                    "other (or fuse them first, and make the one loop parallel)",
                    loops=(handle_of(outer), handle_of(inner)),
                )
        require_independent(
            program, self.loop, "parallel", "make a loop parallel that carries no dependence"
        )

    def apply(self, program: Program) -> Outcome:
        """Return the program with the loop parallel."""
        return with_kind(program, self.loop, "parallel")
