"""A compiled version of an operator in memory, and how it is called.

Input:  pointers of A, B and C; sizes M, N, K; 2 threads
Output: 0 (all well), 1 (an index left its tensor; the status tells where), 2 (out of memory)

The entry takes one pointer, to slots of 8 bytes: input pointers, output pointers, scalars (in the
low bytes of their slot), sizes, the number of threads, a pointer to the status of 4 integers.

``Caller`` is the seam between the Python face and the machine code: today ctypes, which releases
Python's lock during the call.
"""

from __future__ import annotations

import ctypes
import struct
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from tensorlang.ir.affine import Var
from tensorlang.ir.definition import Scalar, Tensor
from tensorlang.ir.lowered import CheckSite, LoweredProgram
from tensorlang.ir.program import For, Fused
from tensorlang.ir.walk import iterate
from tensorlang.runtime.threads import call_with_threads

OK, OUT_OF_BOUNDS, OUT_OF_MEMORY = 0, 1, 2

# One slot each; "=" means native byte order without padding, so the padding is spelled out.
_SCALAR_FORMATS = {
    "bool": "?7x", "i8": "b7x", "i16": "h6x", "i32": "i4x", "i64": "q",
    "u8": "B7x", "u16": "H6x", "u32": "I4x", "u64": "Q",
    "f16": "e6x", "bf16": "H6x", "f32": "f4x", "f64": "d",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Status:
    """What a failed bounds check leaves behind."""

    site: int
    index: int
    extent: int


class Caller(Protocol):
    """Runs a kernel; returns its code, and the status if the code is ``OUT_OF_BOUNDS``."""

    def __call__(
        self,
        pointers: Sequence[int],
        scalars: Sequence[float],
        sizes: Sequence[int],
        threads: int,
    ) -> tuple[int, Status | None]:
        """Run the kernel."""
        ...


@dataclass(frozen=True, slots=True)
class KernelFace:
    """What a call must know of a lowered program; stands for one whose loops are not at hand."""

    name: str
    sizes: tuple[Var, ...]
    scalars: tuple[Scalar, ...]
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    check_sites: tuple[CheckSite, ...]
    is_parallel: bool


@dataclass(frozen=True, slots=True)
class Kernel:
    """One version: its program, how to call it, and its texts (made when asked for).

    A kernel that was read from disk has a ``KernelFace`` for a program, and "loops" among its
    texts.
    """

    program: LoweredProgram | KernelFace
    caller: Caller
    texts: Mapping[str, Callable[[], str]] = field(default_factory=dict[str, Callable[[], str]])
    seconds: Mapping[str, float] = field(default_factory=dict[str, float])
    notes: Callable[[], tuple[str, ...]] = tuple


def is_parallel(program: LoweredProgram | KernelFace) -> bool:
    """Tell whether a call may start threads."""
    if isinstance(program, KernelFace):
        return program.is_parallel
    return any(
        isinstance(stmt, For | Fused) and stmt.kind == "parallel" for stmt in iterate(program.body)
    )


class UnavailableCaller:
    """Stands for code that cannot run here; a call raises RuntimeError with the reason."""

    def __init__(self, reason: str) -> None:
        self._reason = reason

    def __call__(
        self,
        pointers: Sequence[int],
        scalars: Sequence[float],
        sizes: Sequence[int],
        threads: int,
    ) -> tuple[int, Status | None]:
        """Raise RuntimeError."""
        raise RuntimeError(self._reason)


class CtypesCaller:
    """Calls the entry at ``address`` through ctypes.

    The slots are packed into a fresh ``bytes`` each time: nothing is shared between threads, nor
    with a signal handler that calls the same kernel. ``keep_alive`` owns the machine code.
    """

    def __init__(
        self, program: LoweredProgram | KernelFace, address: int, keep_alive: object = None
    ) -> None:
        pointers = len(program.inputs) + len(program.outputs)
        scalars = "".join(_SCALAR_FORMATS[scalar.dtype.name] for scalar in program.scalars)
        layout = f"={pointers}Q{scalars}{len(program.sizes)}qqQ"
        self._pack = struct.Struct(layout).pack
        self.address = address
        self._entry = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_char_p)(address)
        self._is_parallel = is_parallel(program)
        self._keep_alive = keep_alive
        self._local = threading.local()

    def __call__(
        self,
        pointers: Sequence[int],
        scalars: Sequence[float],
        sizes: Sequence[int],
        threads: int,
    ) -> tuple[int, Status | None]:
        """Run the kernel."""
        status, address = self._status()
        slots = self._pack(*pointers, *scalars, *sizes, threads, address)
        if self._is_parallel:
            code = call_with_threads(lambda: self._entry(slots))
        else:
            code = self._entry(slots)
        if code != OUT_OF_BOUNDS:
            return code, None
        return code, Status(status[0], status[1], status[2])

    def slots(
        self,
        pointers: Sequence[int],
        scalars: Sequence[float],
        sizes: Sequence[int],
        threads: int,
        status: int,
    ) -> bytes:
        """Return what the entry is given, for a caller that calls it by its ``address``."""
        return self._pack(*pointers, *scalars, *sizes, threads, status)

    def _status(self) -> tuple[ctypes.Array[ctypes.c_int64], int]:
        try:
            return self._local.status
        except AttributeError:
            block = (ctypes.c_int64 * 4)()
            self._local.status = block, ctypes.addressof(block)
            return self._local.status
