"""split: one loop becomes two, an outer one over blocks and an inner one within a block.

Before                      After ``split(i, 6)``
::

    for i in M:                 for i.o in (M + 5) // 6:
        C[i] = ...                  for i.i in 6:
                                        C[6 * i.o + i.i] = ...  # if 6 * i.o + i.i < M

Always legal: the instances are the same and in the same order. ``exact`` promises that the factor
divides the extent (a condition checked at the call, if the extent is symbolic), so no guard is
left; ``pad`` runs the whole last block where only private storage sees it. ``shift`` moves the last
block back until it ends where the loop does, so that it computes some elements again.

A loop that runs in a way of its own shares it: both parts of an unrolled loop are written out, the
blocks of a parallel one run on several threads, and the inner part of a vectorized one has lanes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tensorlang.ir.affine import (
    ONE,
    ZERO,
    Affine,
    Var,
    affine,
    maximum,
    minimum,
    variables_of,
)
from tensorlang.ir.definition import Condition
from tensorlang.ir.interval import is_nonnegative
from tensorlang.ir.program import For, Fused, LoopKind, Program, Run, Stmt, Tail
from tensorlang.ir.walk import substitute_in_stmt
from tensorlang.schedule.guards import add_guard
from tensorlang.schedule.legality import require_proof
from tensorlang.schedule.primitives.base import (
    Outcome,
    extents_around,
    require_no_pieces,
    require_serial,
    the_loop,
)
from tensorlang.schedule.refusal import Refusal
from tensorlang.schedule.tree import Loop, handle_of, places_of, replace_loop

KINDS_OF_PARTS: dict[LoopKind, tuple[LoopKind, LoopKind]] = {
    "serial": ("serial", "serial"),
    "parallel": ("parallel", "serial"),
    "unrolled": ("unrolled", "unrolled"),
    "vectorized": ("serial", "vectorized"),
}
"""How the outer and the inner part of a loop run."""

TAILS: tuple[Tail, ...] = ("auto", "guard", "peel", "mask", "shift", "pad", "exact")


@dataclass(frozen=True, slots=True)
class Split:
    """Split ``loop`` into blocks of ``factor`` iterations; returns (outer, inner)."""

    loop: Var
    factor: int
    tail: Tail = "auto"

    def check(self, program: Program) -> None:
        """Refuse a factor below 1, an unknown tail, and ``exact`` where it cannot hold."""
        loop = the_loop(program, self.loop)
        if not is_positive_integer(self.factor):
            raise Refusal(
                f"the factor {self.factor!r} is not a positive number of iterations",
                "a factor of 1 or more",
                loops=(self.loop,),
            )
        if self.tail not in TAILS:
            raise Refusal(f"there is no tail {self.tail!r}", f"one of {', '.join(TAILS)}")
        require_no_pieces(loop, "split")
        self._check_kind(loop)
        if isinstance(loop, Fused):
            if loop.run is not None:
                raise Refusal(
                    f"{loop.handle} is a piece of a fused loop already",
                    "fix the sizes (tl.schedule(op, N=1024)), or split before fusing",
                    loops=(self.loop,),
                )
            if self.tail not in ("auto", "guard"):
                raise Refusal(
                    f"a fused loop over several variables has no tail {self.tail!r}",
                    'tail="auto"',
                    loops=(self.loop,),
                )
            return
        changing = variables_of(loop.extent) - set(program.definition.sizes)
        if self.tail == "exact" and changing:
            raise Refusal(
                f"the extent {loop.extent} of {self.loop} changes with "
                f"{', '.join(sorted(map(str, changing)))}, and no call can check what it is",
                'another tail: "auto" guards the last block',
                loops=(self.loop,),
            )
        if self.tail == "exact" and loop.extent.is_constant and loop.extent.constant % self.factor:
            raise Refusal(
                f"{self.factor} does not divide the extent {loop.extent} of {self.loop}",
                f'a divisor of {loop.extent}, or another tail: "auto" guards the last block',
                loops=(self.loop,),
                counterexample=f"the last block would hold {loop.extent.constant % self.factor} "
                f"of {self.factor} iterations",
            )
        if self._is_shifted(loop.extent, program.conditions):
            self._check_shift(program, loop)
        if self.tail == "pad" and loop.extent % self.factor != affine(0):
            require_proof(
                self.apply(program).program,
                f"iterations of {self.loop} beyond {loop.extent} would be seen outside",
                'tail="guard", or give the padded iterations private storage first (cache_write)',
                self.loop,
            )

    def _check_kind(self, loop: Loop) -> None:
        """Refuse what cannot share its kind: GPU axes, two parallel loops in one, few lanes."""
        if loop.kind not in KINDS_OF_PARTS:
            require_serial(loop, "split")
        below = loop.body
        if loop.kind == "parallel" and isinstance(below, For | Fused) and below.kind == "parallel":
            raise Refusal(
                f"the parallel loops {self.loop} and {handle_of(below)} run as one, and the blocks "
                f"of {self.loop} would stand between them",
                "split first, and choose how the resulting loops run afterwards",
                loops=(self.loop, handle_of(below)),
            )
        if loop.kind == "vectorized" and isinstance(loop, For):
            lanes = loop.extent.constant
            if self.factor > lanes:
                raise Refusal(
                    f"{self.loop} has {lanes} lanes, and blocks of {self.factor} would have more",
                    f"a factor of {max(1, lanes)} or less",
                    loops=(self.loop,),
                )

    def apply(self, program: Program) -> Outcome:
        """Return the program with the loop split, guarded where blocks may stick out."""
        loop = the_loop(program, self.loop)
        outer, inner = Var(f"{self.loop.name}.o"), Var(f"{self.loop.name}.i")
        if isinstance(loop, Fused):
            return self._split_fused(program, outer, inner)
        conditions = program.conditions
        index = affine(outer) * self.factor + inner
        if self._is_shifted(loop.extent, conditions):
            return self._shifted(program, loop, outer, inner)
        blocks, guard = self._blocks(loop.extent, index, conditions)
        if self.tail == "exact" and guard is not None:
            conditions += (self._divides(loop.extent),)
            blocks, guard = loop.extent // self.factor, None
        body = substitute_in_stmt(loop.body, {loop.variable: index})
        if guard is not None and self.tail != "pad":
            around = extents_around(program.body, self.loop)
            around |= {outer: blocks, inner: affine(self.factor)}
            body = add_guard(body, guard, around)
        nest = self._nest(loop, outer, blocks, inner, body)
        body = replace_loop(program.body, self.loop, lambda _: nest)
        return Outcome(replace(program, body=body, conditions=conditions), (outer, inner))

    def _nest(self, loop: For, outer: Var, blocks: Affine, inner: Var, body: Stmt) -> Stmt:
        """Return the two loops around ``body``, each with its part of the loop's kind."""
        kind, inner_kind = KINDS_OF_PARTS[loop.kind]
        size = affine(self.factor)
        block = replace(
            loop, variable=inner, extent=size, body=body, tail=self.tail, kind=inner_kind
        )
        return replace(loop, variable=outer, extent=blocks, body=block, kind=kind)

    def _blocks(
        self, extent: Affine, index: Affine, conditions: tuple[Condition, ...]
    ) -> tuple[Affine, Affine | None]:
        """Return the number of blocks, and the guard that the last one needs."""
        if extent % self.factor == affine(0) or is_assumed_divisible(
            extent, self.factor, conditions
        ):
            return extent // self.factor, None
        return (extent + (self.factor - 1)) // self.factor, extent - 1 - index

    def _is_shifted(self, extent: Affine, conditions: tuple[Condition, ...]) -> bool:
        """Whether a last block is moved: there is a rest, and a whole block before it."""
        whole = extent % self.factor == affine(0)
        single = extent.is_constant and extent.constant < self.factor
        return self.tail == "shift" and not (
            whole or single or is_assumed_divisible(extent, self.factor, conditions)
        )

    def _shifted(self, program: Program, loop: For, outer: Var, inner: Var) -> Outcome:
        """Return the program whose last block begins ``factor`` before the end.

        A loop that is shorter than one block has a block that begins at 0, with a guard. It says
        ``inner < extent`` and moves with no other loop: one test tells whether blocks are full.
        """
        extent, size = loop.extent, self.factor
        last = extent - size
        start = minimum(affine(outer) * size, last)
        if not is_nonnegative(last):
            start = maximum(start, ZERO)
        body = substitute_in_stmt(loop.body, {loop.variable: start + inner})
        blocks = (extent + (size - 1)) // size
        around = extents_around(program.body, self.loop)
        around |= {outer: blocks, inner: affine(size)}
        if not is_nonnegative(last):
            body = add_guard(body, extent - 1 - inner, around)
        nest = self._nest(loop, outer, blocks, inner, body)
        return Outcome(
            replace(program, body=replace_loop(program.body, self.loop, lambda _: nest)),
            (outer, inner),
        )

    def _check_shift(self, program: Program, loop: For) -> None:
        """Refuse to compute again what changes when it is computed again."""
        for place in places_of(loop.body):
            if place.compute.stage.is_reduction:
                raise Refusal(
                    f"the shifted block would combine into {place.compute.stage.name} again",
                    f'another tail, or split the loops of a copy: cache_write("'
                    f'{place.compute.stage.name}", ...)',
                    loops=(self.loop,),
                    compute=place.compute,
                )
        require_proof(
            self.apply(program).program,
            f"iterations of {self.loop} cannot run twice",
            'another tail: "auto" guards the last block',
            self.loop,
        )

    def _divides(self, extent: Affine) -> Condition:
        return Condition(
            extent % self.factor,
            f"{extent} must be a multiple of {self.factor}, as split({self.loop}, {self.factor}, "
            f"tail='exact') promised",
            equality=True,
        )

    def _split_fused(self, program: Program, outer: Var, inner: Var) -> Outcome:
        loop = the_loop(program, self.loop)
        assert isinstance(loop, Fused)
        total = ONE
        for extent in loop.extents:
            total = total * extent
        run = Run(outer, inner, self.factor)
        kind, inner_kind = KINDS_OF_PARTS[loop.kind]
        piece = replace(loop, handle=inner, run=run, kind=inner_kind)
        blocks = (total + (self.factor - 1)) // self.factor
        chunks = For(outer, blocks, kind, piece, owner=loop.owner)
        body = replace_loop(program.body, self.loop, lambda _: chunks)
        return Outcome(replace(program, body=body), (outer, inner))


def is_positive_integer(value: object) -> bool:
    """Tell whether a number that the user gave, or a saved schedule, counts something."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def factor_for(program: Program, handle: Var, parts: int) -> int:
    """Return the least factor that splits a loop into at most ``parts`` blocks."""
    loop = the_loop(program, handle)
    if not is_positive_integer(parts):
        raise Refusal(
            f"{parts!r} is no number of parts", "an integer of 1 or more", loops=(handle,)
        )
    if isinstance(loop, Fused) or not loop.extent.is_constant:
        extent = "several variables" if isinstance(loop, Fused) else loop.extent
        raise Refusal(
            f"parts= needs a constant number of iterations to divide, and {handle} has {extent}",
            "a factor, or fixed sizes: tl.schedule(op, N=1024)",
            loops=(handle,),
        )
    return max(1, -(-loop.extent.constant // parts))


def is_assumed_divisible(extent: Affine, factor: int, conditions: tuple[Condition, ...]) -> bool:
    """Tell whether a condition checked at the call says that ``factor`` divides ``extent``."""
    for condition in conditions:
        if not condition.equality:
            continue
        for multiple in range(factor, 64 * factor + 1, factor):
            if condition.form == extent % multiple:
                return True
    return False
