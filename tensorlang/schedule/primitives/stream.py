"""stream: the vectors of a buffer are written past the caches.

Before                              After ``stream("Y")``
::

    def f(x: f32[N]) -> f32[N]:         def f(x: f32[N]) -> f32[N]:
        ...                                 # Y is written past the caches
                                            ...

A store to memory that is not in the caches first reads the line that it changes; one that goes past
them writes the line alone. No value depends on it: it is legal for any buffer in memory that is
written once, an element at a time.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tensorlang.ir.definition import Tensor
from tensorlang.ir.program import Program, is_outer_storage
from tensorlang.schedule.primitives.base import Outcome
from tensorlang.schedule.refusal import Refusal
from tensorlang.schedule.tree import find_alloc, places_of


@dataclass(frozen=True, slots=True)
class Stream:
    """Write what is stored to ``tensor`` past the caches."""

    tensor: Tensor

    def check(self, program: Program) -> None:
        """Refuse what is not written, registers, and sums that are read back from memory."""
        if self.tensor in program.streamed:
            raise Refusal(f"{self.tensor} is streamed already", "s.undo() takes it back")
        alloc = find_alloc(program.body, self.tensor)
        if alloc is not None and alloc.scope != "global":
            raise Refusal(
                f"{self.tensor} does not lie in memory but is {alloc.scope}",
                "stream the buffer that it is copied to",
            )
        if alloc is None and not is_outer_storage(program, self.tensor):
            raise Refusal(f"{self.tensor} has no storage", "a buffer that the program writes")
        writers = [
            place.compute
            for place in places_of(program.body)
            if any(
                place.compute.redirect(own) is self.tensor for own in place.compute.stage.tensors
            )
        ]
        if not writers:
            raise Refusal(f"nothing writes {self.tensor}", "a buffer that the program writes")
        if any(compute.stage.is_reduction for compute in writers):
            raise Refusal(
                f"{self.tensor} is accumulated in place, and each step reads the last one's result",
                f's.cache_write("{self.tensor}", at=...) accumulates in registers, and writes once',
            )

    def apply(self, program: Program) -> Outcome:
        """Return the program with the tensor among those that are streamed."""
        return Outcome(replace(program, streamed=(*program.streamed, self.tensor)))
