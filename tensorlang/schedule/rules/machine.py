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


def machine_of(text: str) -> Machine:
    """Return the machine that a target such as ``"cpu -mcpu=haswell"`` means.

    For targets of other kinds it is the processor that ``"cpu"`` means.
    """
    from tensorlang.targets.cpu import parse_cpu_target

    target = parse_cpu_target(text if text.split()[:1] == ["cpu"] else "cpu")
    return Machine(
        max(8, target.vector_bits // 8),
        target.vector_registers,
        target.l1_bytes,
        target.l2_bytes,
        target.cores,
    )
