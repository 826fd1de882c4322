"""Where temporaries lie in one block of memory, so that those never needed together share it.

Input:  for each temporary its bytes, and the steps at which it is made and last read
Output: an offset for each, and the size of the block

The largest is placed first, each at the lowest offset where it overlaps none that lives at the
same time: greedy by size, the heuristic of Pisarchyk and Lee, *Efficient memory management for
deep neural net inference* (2020), section 5.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

ALIGNMENT = 64


@dataclass(frozen=True, slots=True)
class Lifetime:
    """A temporary: made by step ``first``, read for the last time by step ``last``."""

    bytes: int
    first: int
    last: int

    def meets(self, other: Lifetime) -> bool:
        """Tell whether both are needed during some step."""
        return self.first <= other.last and other.first <= self.last


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """The offset of each temporary, and the bytes of the block that holds them."""

    offsets: tuple[int, ...]
    bytes: int


def plan_memory(lifetimes: Sequence[Lifetime]) -> MemoryPlan:
    """Return a plan in which temporaries that meet do not overlap; offsets are aligned."""
    order = sorted(range(len(lifetimes)), key=lambda n: (-lifetimes[n].bytes, n))
    offsets = [0] * len(lifetimes)
    placed: list[int] = []
    for number in order:
        size = _aligned(lifetimes[number].bytes)
        taken = sorted(
            (offsets[other], offsets[other] + _aligned(lifetimes[other].bytes))
            for other in placed
            if lifetimes[other].meets(lifetimes[number])
        )
        offset = 0
        for start, end in taken:
            if offset + size <= start:
                break
            offset = max(offset, end)
        offsets[number] = offset
        placed.append(number)
    ends = [offsets[n] + _aligned(lifetimes[n].bytes) for n in range(len(lifetimes))]
    return MemoryPlan(tuple(offsets), max(ends, default=0))


def _aligned(count: int) -> int:
    return -(-count // ALIGNMENT) * ALIGNMENT
