"""The facts of the machine that the rules use: lanes, registers, caches, cores."""

from __future__ import annotations

from dataclasses import dataclass

from tensorlang.dtypes import DType, evaluation_dtype


@dataclass(frozen=True, slots=True)
class Machine:
    """A processor as the rules see it; sizes in bytes, caches as one core sees them."""

    vector_bytes: int
    vector_registers: int
    l1_bytes: int
    l2_bytes: int
    cores: int = 1

    def lanes(self, dtype: DType) -> int:
        """Return how many elements one vector register holds."""
        return max(1, self.vector_bytes * 8 // evaluation_dtype(dtype).bits)


def host_machine() -> Machine:
    """Return the machine that runs this process."""
    from tensorlang.targets.cpu import host_target

    target = host_target()
    return Machine(
        max(8, target.vector_bits // 8),
        target.vector_registers,
        target.l1_bytes,
        target.l2_bytes,
        target.cores,
    )
