"""What is known of an NVIDIA GPU architecture: its limits, and what compilers call it.

Input:  ``"cuda:sm_90"``
Output: ``GpuTarget(sm=90, ...)``: 227 KB of shared memory a block, 1024 threads a block, ...

The limits are those of the CUDA programming guide (table "Technical Specifications per Compute
Capability").
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tensorlang.errors import CompileError

MAX_THREADS_PER_BLOCK = 1024
MAX_BLOCK = (1024, 1024, 64)
"""The most threads along x, y and z, and in a block."""

MAX_GRID = (2**31 - 1, 65_535, 65_535)
"""The most blocks along x, y and z."""

STATIC_SHARED_BYTES = 48 * 1024
"""Shared memory that a kernel may declare; more is asked for at launch."""

MAX_REGISTERS_PER_THREAD = 255


@dataclass(frozen=True, slots=True)
class GpuTarget:
    """An architecture; sizes in bytes. ``ptx`` is the instruction set's version, times ten."""

    text: str
    sm: int
    ptx: int
    shared_bytes: int
    registers: int = 65_536
    warp: int = 32
    vector_bits: int = 128
    fused_multiply_add: bool = True
    half_conversion: bool = True
    native_rounding: bool = True
    scales_by_powers: bool = False
    is_x86: bool = False

    @property
    def architecture(self) -> str:
        """The name that LLVM and ptxas use: ``sm_90``."""
        return f"sm_{self.sm}"

    def __str__(self) -> str:
        return self.text


_ARCHITECTURES = {  # sm: (version of PTX times ten, most shared memory of a block)
    75: (63, 64 * 1024),
    80: (70, 163 * 1024),
    86: (71, 99 * 1024),
    87: (74, 163 * 1024),
    89: (78, 99 * 1024),
    90: (78, 227 * 1024),
    100: (86, 227 * 1024),
    120: (87, 99 * 1024),
}


def parse_gpu_target(text: str) -> GpuTarget:
    """Return the target that ``"cuda:sm_90"`` means; raises CompileError for other texts."""
    found = re.fullmatch(r"cuda:sm_(\d+)", text.strip())
    known = ", ".join(f'"cuda:sm_{sm}"' for sm in _ARCHITECTURES)
    if found is None:
        raise CompileError(
            f'target "{text}": which GPU is not said.\nThe targets known here are {known}.'
        )
    sm = int(found[1])
    if sm not in _ARCHITECTURES:
        raise CompileError(
            f'target "{text}": the architecture sm_{sm} is not known.\n'
            f"The targets known here are {known}."
        )
    ptx, shared = _ARCHITECTURES[sm]
    return GpuTarget(text.strip(), sm, ptx, shared)
