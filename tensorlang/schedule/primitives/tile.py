"""tile: several loops are split at once, and the inner parts moved inside all outer ones.

Before                      After ``tile([i, j], [32, 64])``
::

    for i in M:                 for i.o in (M + 31) // 32:
        for j in N:                 for j.o in (N + 63) // 64:
            C[i, j] = ...               for i.i in 32:
                                            for j.i in 64: ...

A split of each loop followed by one reorder; legal where those are. Returns outers, then inners.
"""

from __future__ import annotations

from dataclasses import dataclass

from tensorlang.ir.affine import Var
from tensorlang.ir.program import Program, Tail
from tensorlang.schedule.primitives.base import Outcome
from tensorlang.schedule.primitives.reorder import Reorder
from tensorlang.schedule.primitives.split import Split
from tensorlang.schedule.refusal import Refusal


@dataclass(frozen=True, slots=True)
class Tile:
    """Tile ``loops`` by ``sizes``."""

    loops: tuple[Var, ...]
    sizes: tuple[int, ...]
    tail: Tail = "auto"

    def check(self, program: Program) -> None:
        """Refuse what split or reorder refuse, and lists of different lengths."""
        if len(self.loops) != len(self.sizes) or not self.loops:
            raise Refusal(
                f"{len(self.loops)} loops are given and {len(self.sizes)} sizes",
                "one size a loop: s.tile([i, j], [32, 64])",
                loops=self.loops,
            )
        Reorder(self.loops).check(program)
        program, outers, inners = self._split(program, check=True)
        Reorder((*outers, *inners)).check(program)

    def apply(self, program: Program) -> Outcome:
        """Return the tiled program."""
        program, outers, inners = self._split(program, check=False)
        tiled = Reorder((*outers, *inners)).apply(program).program
        return Outcome(tiled, (*outers, *inners))

    def _split(self, program: Program, *, check: bool) -> tuple[Program, list[Var], list[Var]]:
        """Return the program with each loop split where it stands, the outer and inner loops."""
        outers: list[Var] = []
        inners: list[Var] = []
        for loop, size in zip(self.loops, self.sizes, strict=True):
            split = Split(loop, size, self.tail)
            if check:
                split.check(program)
            outcome = split.apply(program)
            program = outcome.program
            outer, inner = outcome.results
            assert isinstance(outer, Var)
            assert isinstance(inner, Var)
            outers.append(outer)
            inners.append(inner)
        return program, outers, inners
