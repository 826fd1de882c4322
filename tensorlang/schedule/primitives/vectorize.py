"""vectorize: the iterations of a loop become the lanes of vector instructions.

Before                      After ``vectorize(j.i)``
::

    for j.i in 16:              vectorized for j.i in 16:
        Y[16*j.o + j.i] = ...       Y[16*j.o + j.i] = ...

Legal where the iterations are independent and constant in number, at most sixteen registers' worth.
Guards that depend on the lane become masks. Inner loops are run inside the lanes' loop by turning
the nest inside out when it is lowered, which independence permits.
"""

from __future__ import annotations

from dataclasses import dataclass

from tensorlang.ir.affine import Var
from tensorlang.ir.program import Alloc, Prefetch, Program
from tensorlang.ir.walk import iterate
from tensorlang.schedule.legality import require_independent
from tensorlang.schedule.primitives.base import (
    Outcome,
    enclosing_loops,
    require_no_pieces,
    require_plain,
    require_serial,
    the_loop,
)
from tensorlang.schedule.primitives.kinds import require_constant_extent, with_kind
from tensorlang.schedule.refusal import Refusal
from tensorlang.schedule.resolve import shortest_path
from tensorlang.schedule.tree import handle_of, loops_of, places_of

MAX_VECTOR_BYTES = 16 * 64
"""Sixteen registers of 512 bits."""


@dataclass(frozen=True, slots=True)
class Vectorize:
    """Make the iterations of ``loop`` vector lanes."""

    loop: Var

    def check(self, program: Program) -> None:
        """Refuse symbolic or huge extents, dependent iterations, and nested vector loops."""
        loop = require_plain(the_loop(program, self.loop), "vectorize")
        require_serial(loop, "vectorize")
        require_no_pieces(loop, "vectorize")
        lanes = require_constant_extent(program, self.loop, "vectorize", 16)
        widest = max(
            (t.dtype.bits for p in places_of(loop.body) for t in p.compute.stage.tensors), default=8
        )
        limit = MAX_VECTOR_BYTES * 8 // widest
        if lanes > limit:
            raise Refusal(
                f"{lanes} lanes of {widest} bits are more than sixteen vector registers hold",
                f's.split("{shortest_path(program, self.loop)}", {min(limit, 64)}) first, then '
                "vectorize the inner loop",
                loops=(self.loop,),
            )
        around = [x for x in enclosing_loops(program.body, self.loop) if x.kind == "vectorized"]
        below = [x for x in loops_of(loop.body) if x.kind in ("vectorized", "parallel")]
        for other in (*around, *below):
            raise Refusal(
                f"{self.loop} and the {other.kind} loop {handle_of(other)} would be nested",
                "vectorize one loop of a nest, the one along contiguous memory",
                loops=(self.loop, handle_of(other)),
            )
        for stmt in iterate(loop.body):
            if isinstance(stmt, Alloc):
                raise Refusal(
                    f"{stmt.tensor} is allocated inside {self.loop}, once for each lane",
                    "vectorize the loops of the stages inside instead",
                    loops=(self.loop,),
                )
            if isinstance(stmt, Prefetch):
                raise Refusal(
                    f"{stmt.tensor} is prefetched inside {self.loop}, once for each lane",
                    "prefetch in a loop around the vectorized one",
                    loops=(self.loop,),
                )
        require_independent(
            program, self.loop, "vectorize", "vectorize a loop that carries no dependence"
        )

    def apply(self, program: Program) -> Outcome:
        """Return the program with the loop vectorized."""
        return with_kind(program, self.loop, "vectorized")
