"""Where each shared buffer of a kernel lies in the shared memory of a block.

Input:  ``A.shared = f32[1024]``, ``B.shared = f32[1024]``
Output: offsets 0 and 4096, 8192 bytes in all; "dynamic" if the total is above 48 KB or not known

Each buffer has memory of its own for the whole kernel, so that a barrier that orders two buffers'
users is never needed because they overlap.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tensorlang.errors import CompileError
from tensorlang.ir.affine import ZERO, Affine
from tensorlang.ir.lowered import Buffer
from tensorlang.lower.kernel import Kernel
from tensorlang.targets.gpu import STATIC_SHARED_BYTES, GpuTarget

SHARED_ALIGNMENT = 128


@dataclass(frozen=True, slots=True)
class SharedMemory:
    """Offsets of buffers in bytes, the bytes in all, and whether the launch must ask for them."""

    offsets: Mapping[Buffer, Affine]
    total: Affine
    is_dynamic: bool


def plan_shared_memory(kernel: Kernel, target: GpuTarget) -> SharedMemory:
    """Return where the shared buffers lie; raises CompileError if they are too large."""
    offsets: dict[Buffer, Affine] = {}
    total = ZERO
    for buffer in kernel.shared:
        offsets[buffer] = total
        size = buffer.size * max(buffer.dtype.bits // 8, 1)
        total = total + (size + (SHARED_ALIGNMENT - 1)) // SHARED_ALIGNMENT * SHARED_ALIGNMENT
    if total.is_constant and total.constant > target.shared_bytes:
        sizes = ", ".join(f"{b} {b.size * max(b.dtype.bits // 8, 1)}" for b in kernel.shared)
        raise CompileError(
            f"{kernel.name} needs {total} bytes of shared memory a block ({sizes}), and "
            f"{target.architecture} has {target.shared_bytes}: take smaller tiles."
        )
    is_dynamic = not total.is_constant or total.constant > STATIC_SHARED_BYTES
    return SharedMemory(offsets, total, is_dynamic)
