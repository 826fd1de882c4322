"""unroll: the body of a loop is written out once an iteration.

Before                      After ``unroll(i.i)``
::

    for i.i in 6:               unrolled for i.i in 6:
        C[6*i.o + i.i] = ...        C[6*i.o + i.i] = ...

Always legal, as the order stays. The number of iterations must be constant; with ``factor`` the
loop is split first. Refused when more than 4,096 copies of statements would result.
"""

from __future__ import annotations

from dataclasses import dataclass

from tensorlang.ir.affine import Var
from tensorlang.ir.program import For, Program
from tensorlang.ir.walk import computes_of
from tensorlang.schedule.primitives.base import (
    Outcome,
    enclosing_loops,
    require_plain,
    require_serial,
    the_loop,
)
from tensorlang.schedule.primitives.kinds import require_constant_extent, with_kind
from tensorlang.schedule.primitives.split import Split
from tensorlang.schedule.refusal import Refusal
from tensorlang.schedule.resolve import shortest_path
from tensorlang.schedule.tree import loops_of

MAX_COPIES = 4096


@dataclass(frozen=True, slots=True)
class Unroll:
    """Write out every iteration of ``loop``; with a factor, of the inner loop after a split."""

    loop: Var
    factor: int | None = None

    def check(self, program: Program) -> None:
        """Refuse symbolic extents and unrolls that would explode."""
        if self.factor is not None:
            split = Split(self.loop, self.factor)
            require_plain(the_loop(program, self.loop), "unroll")
            split.check(program)
            outcome = split.apply(program)
            try:
                Unroll(_inner(outcome)).check(outcome.program)
            except Refusal as refusal:
                raise Refusal(refusal.claim, "a smaller factor", loops=(self.loop,)) from None
            return
        loop = require_plain(the_loop(program, self.loop), "unroll")
        require_serial(loop, "unroll")
        copies = require_constant_extent(program, self.loop, "unroll", 4)
        statements = max(1, len(computes_of(loop.body)))
        nested = (*enclosing_loops(program.body, self.loop), *loops_of(loop.body))
        for other in nested:
            if other.kind == "unrolled" and isinstance(other, For):
                copies *= max(1, other.extent.constant)
        if copies * statements > MAX_COPIES:
            path = shortest_path(program, self.loop)
            raise Refusal(
                f"unrolling {self.loop} would write out {copies * statements} statements",
                f's.split("{path}", 8) first, then unroll the inner loop',
                loops=(self.loop,),
            )

    def apply(self, program: Program) -> Outcome:
        """Return the program with the loop unrolled."""
        if self.factor is None:
            return with_kind(program, self.loop, "unrolled")
        outcome = Split(self.loop, self.factor).apply(program)
        return with_kind(outcome.program, _inner(outcome), "unrolled")


def _inner(outcome: Outcome) -> Var:
    inner = outcome.results[1]
    assert isinstance(inner, Var)
    return inner
