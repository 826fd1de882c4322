"""bind: the iterations of a loop become blocks of a grid, or threads of a block.

Before                              After ``bind(i.o, "block.x")``, ``bind(i.i, "thread.x")``
::

    for i.o in (N + 255) // 256:        block.x for i.o in (N + 255) // 256:
        for i.i in 256:                     thread.x for i.i in 256:
            C[...] = A[...] + B[...]            C[...] = A[...] + B[...]

Blocks run in any order, so their loops are outermost and perfectly nested. Inside them, each nest
of thread loops ends before the next one begins; the compiler puts a barrier where that matters.
Legal where the iterations are independent.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tensorlang.ir.affine import ONE, Affine, Var
from tensorlang.ir.definition import Condition
from tensorlang.ir.program import BLOCK_AXES, THREAD_AXES, For, LoopKind, Program
from tensorlang.schedule.legality import require_independent
from tensorlang.schedule.primitives.base import (
    Outcome,
    enclosing,
    enclosing_loops,
    obstacle,
    require_serial,
    the_loop,
)
from tensorlang.schedule.primitives.kinds import with_kind
from tensorlang.schedule.refusal import Refusal
from tensorlang.schedule.resolve import shortest_path
from tensorlang.schedule.tree import Loop, handle_of, loops_of
from tensorlang.targets.gpu import MAX_BLOCK, MAX_GRID, MAX_THREADS_PER_BLOCK

AXES: tuple[LoopKind, ...] = (*BLOCK_AXES, *THREAD_AXES)


@dataclass(frozen=True, slots=True)
class Bind:
    """Run the iterations of ``loop`` as blocks or threads along ``axis``."""

    loop: Var
    axis: LoopKind

    def check(self, program: Program) -> None:
        """Refuse axes used twice, blocks that are not outermost, too many threads, dependences."""
        if self.axis not in AXES:
            raise Refusal(f"there is no axis {self.axis!r}", ", ".join(f'"{a}"' for a in AXES))
        loop = the_loop(program, self.loop)
        require_serial(loop, "bind")
        around = enclosing_loops(program.body, self.loop)
        below = [other for other in loops_of(loop.body) if other is not loop]
        for other in (*around, *below):
            if other.kind == self.axis:
                raise Refusal(
                    f"{handle_of(other)} is bound to {self.axis}, and one of the two loops would "
                    "stand inside the other",
                    f"another axis: {', '.join(a for a in AXES if a[:5] == self.axis[:5])}",
                    loops=(self.loop, handle_of(other)),
                )
        if self.axis in BLOCK_AXES:
            self._check_block(program)
        else:
            self._check_thread(program, loop, around, below)
        require_independent(
            program, self.loop, "bind", "bind a loop that carries no dependence, or rfactor first"
        )

    def apply(self, program: Program) -> Outcome:
        """Return the program with the loop bound, and the most blocks there may be assumed."""
        bound = with_kind(program, self.loop, self.axis).program
        count = _count(the_loop(program, self.loop))
        if self.axis in BLOCK_AXES[1:] and not count.is_constant:
            limit = MAX_GRID[BLOCK_AXES.index(self.axis)]
            text = f"{count} <= {limit}, the most blocks along {self.axis[-1]}"
            new = Condition(limit - count, text)
            bound = replace(bound, conditions=(*bound.conditions, new))
        return Outcome(bound)

    def _check_block(self, program: Program) -> None:
        for stmt in enclosing(program.body, self.loop):
            if isinstance(stmt, For) and stmt.kind in BLOCK_AXES:
                continue
            what = f"the loop {stmt.variable}" if isinstance(stmt, For) else obstacle(stmt)
            raise Refusal(
                f"blocks are the outermost loops, and {what} stands around {self.loop}",
                "reorder it outward, compute_at for the other stages, or bind the outer loop first",
                loops=(self.loop,),
            )

        count = _count(the_loop(program, self.loop))
        limit = MAX_GRID[BLOCK_AXES.index(self.axis)]
        if count.is_constant and count.constant > limit:
            raise Refusal(
                f"there would be {count} blocks along {self.axis[-1]}, and {limit} are the most",
                'bind the longest loop to "block.x"',
                loops=(self.loop,),
            )

    def _check_thread(
        self, program: Program, loop: Loop, around: tuple[Loop, ...], below: list[Loop]
    ) -> None:
        for other in around:
            if other.kind in ("parallel", "vectorized"):
                raise Refusal(
                    f"{self.loop} stands inside the {other.kind} loop {handle_of(other)}",
                    "bind a loop further out",
                    loops=(self.loop, handle_of(other)),
                )
        for other in below:
            if other.kind in BLOCK_AXES or other.kind == "parallel":
                raise Refusal(
                    f"the {other.kind} loop {handle_of(other)} stands inside {self.loop}",
                    "blocks around, threads inside",
                    loops=(self.loop, handle_of(other)),
                )
        extent = thread_extent(loop)
        if extent is None:
            raise Refusal(
                f"the number of threads is fixed when compiling, and {self.loop} has no constant "
                "number of iterations",
                f's.split("{shortest_path(program, self.loop)}", 128), then bind the inner loop',
                loops=(self.loop,),
            )
        self._check_threads(program, extent)

    def _check_threads(self, program: Program, extent: int) -> None:
        axis = THREAD_AXES.index(self.axis)
        sizes = block_size(program)
        sizes[axis] = max(sizes[axis], extent)
        total = sizes[0] * sizes[1] * sizes[2]
        if extent > MAX_BLOCK[axis] or total > MAX_THREADS_PER_BLOCK:
            limit = MAX_BLOCK[axis] if extent > MAX_BLOCK[axis] else MAX_THREADS_PER_BLOCK
            which = f"along {self.axis[-1]}" if extent > MAX_BLOCK[axis] else "in all"
            count = extent if extent > MAX_BLOCK[axis] else total
            raise Refusal(
                f"a block would have {count} threads {which}, and {limit} are the most",
                f's.split("{shortest_path(program, self.loop)}", {min(limit, 256)}), then bind '
                "the inner loop",
                loops=(self.loop,),
            )


def thread_extent(loop: Loop) -> int | None:
    """Return how many threads a loop would be, None if that is not known when compiling."""
    if isinstance(loop, For):
        return loop.extent.constant if loop.extent.is_constant else None
    if loop.run is not None:
        return loop.run.size
    if not all(extent.is_constant for extent in loop.extents):
        return None
    count = 1
    for extent in loop.extents:
        count *= extent.constant
    return count


def _count(loop: Loop) -> Affine:
    extents = (loop.extent,) if isinstance(loop, For) else loop.extents
    count = ONE
    for extent in extents:
        count = count * extent
    return count


def block_size(program: Program) -> list[int]:
    """Return the threads of a block along x, y and z: the largest loop bound to each."""
    sizes = [1, 1, 1]
    for loop in loops_of(program.body):
        if loop.kind in THREAD_AXES:
            axis = THREAD_AXES.index(loop.kind)
            sizes[axis] = max(sizes[axis], thread_extent(loop) or 1)
    return sizes
