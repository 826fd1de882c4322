"""The facts of the machine that the rules use: lanes, registers, caches."""

from __future__ import annotations

from dataclasses import dataclass

from tensorlang.dtypes import DType, evaluation_dtype


@dataclass(frozen=True, slots=True)
class Machine:
    """One core as the rules see it; sizes in bytes."""

    vector_bytes: int
    vector_registers: int
    l1_bytes: int
    l2_bytes: int

    def lanes(self, dtype: DType) -> int:
        """Return how many elements one vector register holds."""
        return max(1, self.vector_bytes * 8 // evaluation_dtype(dtype).bits)

    def register_tile(self, dtype: DType) -> tuple[int, int]:
        """Return rows and columns of the accumulators that fit the registers of a contraction.

        Two vectors of columns; as many rows as leave room for those two and for one element of
        the rows' operand: 6 x 16 on AVX2, 14 x 32 on AVX-512, for f32.
        """
        columns = 2
        rows = max(1, (self.vector_registers - columns - 1) // columns)
        return rows, columns * self.lanes(dtype)


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
    )
