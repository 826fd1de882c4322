"""Runs compiled programs through the ABI, on memory that ends where a page that faults begins.

Input:  a lowered program, arrays, scalars and sizes
Output: the outputs' arrays and the return code; reading past the end of an array kills the process
"""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from tensorlang.backends.cpu import CpuArtefact, compile_lowered, load
from tensorlang.dtypes import to_numpy
from tensorlang.ir.affine import evaluate
from tensorlang.ir.lowered import LoweredProgram
from tensorlang.targets.cpu import CpuTarget, parse_cpu_target

BASELINE = "cpu -mcpu=x86-64"
AVX2 = "cpu -mcpu=haswell"

_libc = ctypes.CDLL(None)


@dataclass
class Outcome:
    code: int
    outputs: list[np.ndarray]
    status: list[int]


def guarded(array: np.ndarray) -> np.ndarray:
    """Return a copy whose last byte is the last before a page that cannot be touched."""
    page = mmap.PAGESIZE
    used = -(-max(array.nbytes, 1) // page) * page
    memory = mmap.mmap(-1, used + page)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    assert _libc.mprotect(ctypes.c_void_p(start + used), page, 0) == 0
    copy = np.frombuffer(memory, array.dtype, array.size, used - array.nbytes)
    copy = copy.reshape(array.shape)
    copy[...] = array
    return copy


@cache
def openmp() -> tuple[int, Any]:
    """Return the address of ``GOMP_parallel`` and what keeps it alive."""
    try:
        library = ctypes.CDLL("libgomp.so.1")
        return ctypes.cast(library.GOMP_parallel, ctypes.c_void_p).value or 0, library
    except OSError:
        prototype = ctypes.CFUNCTYPE(
            None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint
        )
        task = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
        function = prototype(lambda code, data, threads, flags: task(code)(data))
        return ctypes.cast(function, ctypes.c_void_p).value or 0, function


@cache
def target_of(text: str) -> CpuTarget:
    return parse_cpu_target(text)


def compiled(program: LoweredProgram, target: str = "cpu", **options: Any) -> CpuArtefact:
    return compile_lowered(program, target_of(target), **options)


class Kernel:
    """A compiled program, ready to be called."""

    def __init__(self, program: LoweredProgram, target: str = "cpu", **options: Any) -> None:
        self.program = program
        self.artefact = compiled(program, target, **options)
        self.loaded = load(self.artefact, {"GOMP_parallel": openmp()[0]})
        self.function = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(self.loaded.address)

    def __call__(
        self,
        inputs: Sequence[np.ndarray],
        sizes: Sequence[int] = (),
        scalars: Sequence[Any] = (),
        threads: int = 2,
        fill: float = 0,
    ) -> Outcome:
        program = self.program
        values = dict(zip(program.sizes, sizes, strict=True))
        held = [guarded(array) for array in inputs]
        outputs = [
            guarded(np.full(evaluate(buffer.size, values), fill, to_numpy(buffer.dtype)))
            for buffer in program.outputs
        ]
        slots = np.zeros(len(held) + len(outputs) + len(scalars) + len(sizes) + 2, np.uint64)
        position = 0
        for array in (*held, *outputs):
            slots[position] = array.ctypes.data
            position += 1
        for scalar, value in zip(program.scalars, scalars, strict=True):
            stored = np.asarray(value, to_numpy(scalar.dtype))
            slots[position : position + 1].view(np.uint8)[: stored.nbytes] = np.frombuffer(
                stored.tobytes(), np.uint8
            )
            position += 1
        for size in sizes:
            slots[position : position + 1].view(np.int64)[0] = size
            position += 1
        slots[position] = threads
        status = np.full(4, -1, np.int64)
        slots[position + 1] = status.ctypes.data
        code = self.function(slots.ctypes.data)
        return Outcome(code, outputs, status.tolist())


def run(
    program: LoweredProgram,
    inputs: Sequence[np.ndarray],
    sizes: Sequence[int] = (),
    scalars: Sequence[Any] = (),
    target: str = "cpu",
    **options: Any,
) -> list[np.ndarray]:
    """Compile, call with two threads, and return the outputs of a call that succeeded."""
    outcome = Kernel(program, target, **options)(inputs, sizes, scalars)
    assert outcome.code == 0
    return outcome.outputs
