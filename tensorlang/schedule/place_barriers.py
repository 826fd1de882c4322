"""Put barriers where threads of a block must wait for each other.

Input::                                         Output::

    block.x for i in M:                             block.x for i in M:
        S = shared f32[64] at [64 * i]                  S = shared f32[64] at [64 * i]
        thread.x for j in 64:                           thread.x for j in 64:
            S[64*i + j] = X[64*i + j]                       S[64*i + j] = X[64*i + j]
                                                        barrier
        thread.x for j in 64:                           thread.x for j in 64:
            Y[...] = S[64*i + 63 - j]                       Y[...] = S[64*i + 63 - j]

A nest of threads ends before the next one begins: that is what a program says, and what a GPU does
only where a barrier stands. One is put before a nest if a nest before it, since the last barrier,
may touch an element that it touches, from another thread, one of the two writing; likewise around a
loop, where what one iteration read is overwritten by the next. The proof judges the result.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

from tensorlang.ir.program import (
    BLOCK_AXES,
    THREAD_AXES,
    Alloc,
    Barrier,
    Compute,
    For,
    Fused,
    Program,
    Seq,
    Stmt,
)
from tensorlang.ir.walk import computes_of, iterate, sequence

Loop: TypeAlias = For | Fused
Meets: TypeAlias = Callable[[Compute, Compute, Loop | None], bool]
"""Whether two threads may meet in a cell: in the first statement, and later in the second; the loop
is the one around which they are later, None within one iteration of all loops around both."""


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A statement that ran since the last barrier, perhaps in an earlier iteration of ``loop``."""

    compute: Compute
    loop: Loop | None = None


def is_kernel(program: Program) -> bool:
    """Tell whether a program has loops that are bound to a GPU's axes."""
    return any(
        isinstance(stmt, For | Fused) and stmt.kind in (*BLOCK_AXES, *THREAD_AXES)
        for stmt in iterate(program.body)
    )


def place_barriers(program: Program) -> Program:
    """Return ``program``, whose inits are placed, with the barriers that its threads need."""
    if not any(
        isinstance(stmt, For | Fused) and stmt.kind in THREAD_AXES for stmt in iterate(program.body)
    ):
        return program
    from tensorlang.poly.threads import Meetings

    placer = _Placer(Meetings(program).may_meet)
    body, _ = placer.visit(program.body, ())
    return replace(program, body=body)


class _Placer:
    """Walks the statements of a block in order, with those that no barrier has ended yet."""

    def __init__(self, meets: Meets) -> None:
        self._meets = meets

    def visit(self, stmt: Stmt, waiting: tuple[_Waiting, ...]) -> tuple[Stmt, tuple[_Waiting, ...]]:
        """Return ``stmt`` with barriers inside, and what waits after it."""
        match stmt:
            case Barrier():
                return stmt, ()
            case Seq():
                return self._visit_sequence(stmt, waiting)
            case Alloc():
                body, after = self.visit(stmt.body, waiting)
                return replace(stmt, body=body), after
            case For() | Fused() if stmt.kind in BLOCK_AXES:
                body, _ = self.visit(stmt.body, ())
                return replace(stmt, body=body), ()
            case For() | Fused() if _is_collective(stmt):
                return self._visit_loop(stmt, waiting)
            case _:
                before = self._before(stmt, waiting)
                after = tuple([_Waiting(compute) for compute in computes_of(stmt)])
                return sequence(*before, stmt), (*(() if before else waiting), *after)

    def _visit_sequence(
        self, stmt: Seq, waiting: tuple[_Waiting, ...]
    ) -> tuple[Stmt, tuple[_Waiting, ...]]:
        children: list[Stmt] = []
        for child in stmt.stmts:
            new, waiting = self.visit(child, waiting)
            children.append(new)
        return sequence(*children), waiting

    def _visit_loop(
        self, loop: Loop, waiting: tuple[_Waiting, ...]
    ) -> tuple[Stmt, tuple[_Waiting, ...]]:
        """Place the barriers that one iteration needs, then those between iterations."""
        carried: dict[Compute, _Waiting] = {}
        while True:
            body, after = self.visit(loop.body, tuple(carried.values()))
            new = [item.compute for item in after if item.compute not in carried]
            if not new:
                break
            carried.update({compute: _Waiting(compute, loop) for compute in new})
        loop = replace(loop, body=body)
        before = self._before_loop(loop, waiting)
        left = waiting if not before else ()
        inside = tuple([replace(item, loop=None) for item in after])
        return sequence(*before, loop), (*left, *inside)

    def _before_loop(self, loop: Loop, waiting: tuple[_Waiting, ...]) -> list[Stmt]:
        """Return a barrier if what waits meets what runs in the loop before its first barrier."""
        first, _ = _until_barrier(loop.body)
        return [Barrier()] if self._conflict(first, waiting) else []

    def _before(self, stmt: Stmt, waiting: tuple[_Waiting, ...]) -> list[Stmt]:
        return [Barrier()] if self._conflict(list(computes_of(stmt)), waiting) else []

    def _conflict(self, computes: list[Compute], waiting: tuple[_Waiting, ...]) -> bool:
        return any(
            self._meets(item.compute, compute, item.loop)
            for compute in computes
            for item in waiting
        )


def _is_collective(stmt: Stmt) -> bool:
    """Whether a loop stands around nests of threads (and is run by all of them)."""
    if isinstance(stmt, For | Fused) and stmt.kind in THREAD_AXES:
        return False
    return any(
        isinstance(child, Barrier) or (isinstance(child, For | Fused) and child.kind in THREAD_AXES)
        for child in iterate(stmt)
    )


def _until_barrier(stmt: Stmt) -> tuple[list[Compute], bool]:
    """Return what runs before the first barrier for certain, and whether there is one."""
    match stmt:
        case Barrier():
            return [], True
        case Seq():
            found: list[Compute] = []
            for child in stmt.stmts:
                more, ended = _until_barrier(child)
                found.extend(more)
                if ended:
                    return found, True
            return found, False
        case Alloc():
            return _until_barrier(stmt.body)
        case For() | Fused():
            found, _ = _until_barrier(stmt.body)
            return found, False  # the loop may run no iteration
        case _:
            return list(computes_of(stmt)), False
