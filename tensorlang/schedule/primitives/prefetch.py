"""prefetch: ask the caches in time for what a later iteration of a loop reads or writes.

Before                              After ``prefetch("B.local", at=k, ahead=4)``
::

    for k in K:                         for k in K:
        for j.i in 16:                      prefetch B.local[k + 4, 16 * j.o : + 16]
            C[...] += ... * B.local[...]    for j.i in 16:
                                                C[...] += ... * B.local[...]

No value depends on it, so it is legal wherever the tensor lies in memory. The last iterations ask
for what lies behind the box that is read, or behind the tensor: the instruction never faults.

What is written is fetched as well, since a processor reads a line before it writes a part of it;
lines of a result are asked for as this core's own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from tensorlang.ir import program as ir
from tensorlang.ir.affine import Affine, Var, affine, depends_on, substitute
from tensorlang.ir.definition import Tensor
from tensorlang.ir.expr import loads_of
from tensorlang.ir.program import Alloc, Program, Stmt, is_outer_storage
from tensorlang.ir.walk import children_of, iterate, sequence
from tensorlang.schedule.boxes import Box, reads_box, writes_box
from tensorlang.schedule.primitives.base import (
    Outcome,
    enclosing,
    enclosing_loops,
    require_plain,
    require_room,
    the_loop,
)
from tensorlang.schedule.primitives.caching import extents, origins
from tensorlang.schedule.refusal import Refusal
from tensorlang.schedule.tree import Place, handle_of, places_of, replace_loop


@dataclass(frozen=True, slots=True)
class Prefetch:
    """In each iteration of ``loop``, ask for what it uses of ``tensor`` ``ahead`` steps later.

    The steps are those of ``along``: ``loop``, or a loop around it.
    """

    tensor: Tensor
    loop: Var
    ahead: int
    along: Var
    locality: int = 3

    def check(self, program: Program) -> None:
        """Refuse what is not used there, registers, and boxes that do not move with the loop."""
        require_room(program, self.loop, "prefetch")
        require_plain(the_loop(program, self.along), "prefetch")
        self._check_numbers()
        around = {handle_of(loop) for loop in enclosing_loops(program.body, self.loop)}
        if self.along is not self.loop and self.along not in around:
            raise Refusal(
                f"{self.along} is no loop around {self.loop}",
                "along= the loop itself, or one around it",
                loops=(self.loop, self.along),
            )
        self._check_storage(program)
        if not any(depends_on(origin, {self.along}) for origin, _ in self._box(program)):
            raise Refusal(
                f"each iteration of {self.along} uses the same box of {self.tensor}",
                "a loop that moves through the tensor",
                loops=(self.along,),
            )

    def apply(self, program: Program) -> Outcome:
        """Return the program with the prefetch at the beginning of the loop's body."""
        box = self._box(program)
        later = {self.along: affine(self.along) + self.ahead}

        def shifted(forms: tuple[Affine, ...]) -> tuple[Affine, ...]:
            return tuple([substitute(form, later) for form in forms])

        ask = ir.Prefetch(self.tensor, shifted(origins(box)), shifted(extents(box)), self.locality)
        body = replace_loop(
            program.body, self.loop, lambda old: replace(old, body=sequence(ask, old.body))
        )
        return Outcome(replace(program, body=body))

    def _check_numbers(self) -> None:
        if self.ahead < 1:
            raise Refusal(f"{self.ahead} steps ahead", "ahead=1 or more", loops=(self.loop,))
        if not 0 <= self.locality <= 3:
            raise Refusal(
                f"locality={self.locality}", "0 (used once) to 3 (every cache)", loops=(self.loop,)
            )

    def _check_storage(self, program: Program) -> None:
        places = list(places_of(the_loop(program, self.loop).body))
        if not self._is_read(places) and not self._is_written(places):
            raise Refusal(
                f"nothing inside {self.loop} reads or writes {self.tensor}",
                "a tensor that the loop's body uses, by the name it has there",
                loops=(self.loop,),
            )
        storage = [
            stmt
            for stmt in enclosing(program.body, self.loop)
            if isinstance(stmt, Alloc) and stmt.tensor is self.tensor
        ]
        if not storage and not is_outer_storage(program, self.tensor):
            raise Refusal(
                f"{self.tensor} is allocated inside {self.loop}, anew in each iteration",
                "prefetch what it is made from",
                loops=(self.loop,),
            )
        if storage and storage[-1].scope != "global":
            raise Refusal(
                f"{self.tensor} is kept in {_PLACES[storage[-1].scope]}, not in memory",
                "prefetch the tensor that it is copied from",
                loops=(self.loop,),
            )

    def _is_read(self, places: list[Place]) -> bool:
        return any(
            place.compute.redirect(load.tensor) is self.tensor
            for place in places
            for load in loads_of(*place.compute.stage.values)
        )

    def _is_written(self, places: list[Place]) -> bool:
        return any(
            place.compute.redirect(tensor) is self.tensor
            for place in places
            for tensor in place.compute.stage.tensors
        )

    def _box(self, program: Program) -> Box:
        places = list(places_of(the_loop(program, self.loop).body))
        box = reads_box if self._is_read(places) else writes_box
        return box(places, self.tensor)


_PLACES = {"local": "registers", "shared": "shared memory"}


def require_prefetches(before: Program, after: Program) -> None:
    """Refuse a step that takes away a prefetch, or moves the storage of what is prefetched."""
    asked = [stmt.tensor for stmt in iterate(before.body) if isinstance(stmt, ir.Prefetch)]
    if not asked:
        return
    definition = after.definition
    outer = frozenset((*definition.inputs, *definition.outputs))
    stored = dict(_prefetched(after.body, outer))
    for tensor in asked:
        if not stored.get(tensor, False):
            raise Refusal(
                f"{tensor} is prefetched, and the step takes away the loop or the storage",
                "prefetch when all stages have their place",
            )


def _prefetched(stmt: Stmt, storage: frozenset[Tensor]) -> Iterator[tuple[Tensor, bool]]:
    """Yield what is prefetched below ``stmt``, and whether it has storage wherever it is."""
    found: dict[Tensor, bool] = {}
    if isinstance(stmt, ir.Prefetch):
        found[stmt.tensor] = stmt.tensor in storage
    if isinstance(stmt, Alloc):
        storage |= {stmt.tensor}
    for child in children_of(stmt):
        for tensor, is_stored in _prefetched(child, storage):
            found[tensor] = is_stored and found.get(tensor, True)
    yield from found.items()
