"""Temporaries: on the stack or the heap, allocated once, freed always, code 2 without memory."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest

from tensorlang.backends.cpu import load as load_artefact
from tensorlang.dtypes import f32, f64
from tensorlang.ir.affine import Var, affine
from tensorlang.ir.expr import Cast, Const
from tensorlang.ir.lowered import Allocate, LoweredProgram
from tests.backends.harness import compiled, openmp
from tests.backends.programs import buffer, call, load, loop, program, seq, store

_libc = ctypes.CDLL(None)
_libc.aligned_alloc.restype = ctypes.c_void_p
_libc.aligned_alloc.argtypes = [ctypes.c_size_t, ctypes.c_size_t]
_libc.free.argtypes = [ctypes.c_void_p]
_ALLOCATE = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t)
_FREE = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Memory:
    """An allocator that counts, and fails from the ``budget``-th allocation on."""

    def __init__(self, budget: int = 10**9) -> None:
        self.sizes: list[int] = []
        self.alive: set[int] = set()
        self.budget = budget
        self.allocate = _ALLOCATE(self._allocate)
        self.free = _FREE(self._free)

    def _allocate(self, alignment: int, size: int) -> int | None:
        self.sizes.append(size)
        assert size % alignment == 0
        if len(self.sizes) > self.budget:
            return None
        pointer = _libc.aligned_alloc(alignment, size)
        self.alive.add(pointer)
        return pointer

    def _free(self, pointer: int) -> None:
        self.alive.remove(pointer)
        _libc.free(pointer)

    def symbols(self) -> dict[str, int]:
        return {
            "aligned_alloc": ctypes.cast(self.allocate, ctypes.c_void_p).value or 0,
            "free": ctypes.cast(self.free, ctypes.c_void_p).value or 0,
            "GOMP_parallel": openmp()[0],
        }


@contextmanager
def memory(budget: int = 10**9) -> Iterator[Memory]:
    made = Memory(budget)
    yield made
    assert not made.alive, "storage was not freed"


def call_with(made: LoweredProgram, used: Memory, n: int, rows: int, threads: int = 1):
    loaded = load_artefact(compiled(made), used.symbols())
    x, y = np.arange(n, dtype=np.float32), np.full(rows, -1, np.float32)
    status = np.zeros(4, np.int64)
    slots = np.array(
        [x.ctypes.data, y.ctypes.data, n, rows, threads, status.ctypes.data], np.uint64
    )
    code = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(loaded.address)(slots.ctypes.data)
    return code, y, n


def temporaries(kind: str = "serial", zeroed: bool = False, nested: bool = True) -> LoweredProgram:
    """``Y[i] = sum of X + i`` through two temporaries of N elements an iteration."""
    n, rows = Var("N"), Var("R")
    x, y = buffer("X", f32, n), buffer("Y", f32, rows)
    first, second = buffer("first", f32, n), buffer("second", f64, n)
    i, j, k = Var("i"), Var("j"), Var("k")
    fill = loop(j, n, store(first, j, load(x, j)))
    total = loop(k, n, store(y, i, call("add", load(y, i), load(first, k))))
    inner = seq(store(y, i, Const(0.0, f32)), fill, total)
    if nested:
        c = Var("c")
        inner = seq(
            store(y, i, Const(0.0, f32)),
            fill,
            Allocate(
                second,
                seq(
                    loop(c, n, store(second, c, Cast(load(first, c), f64))),
                    loop(k, n, store(y, i, call("add", load(y, i), Cast(load(second, k), f32)))),
                ),
            ),
        )
    body = loop(i, rows, Allocate(first, inner, zeroed), kind)  # type: ignore[arg-type]
    return program(body, (n, rows), (x,), (y,))


@pytest.mark.parametrize("nested", [False, True])
def test_storage_is_allocated_once_before_a_loop(nested: bool) -> None:
    with memory() as used:
        code, y, n = call_with(temporaries(nested=nested), used, 9, 100)
        assert code == 0
        np.testing.assert_array_equal(y, np.full(100, n * (n - 1) / 2))
        assert len(used.sizes) == 1 + nested


def test_each_thread_has_its_own() -> None:
    with memory() as used:
        code, y, n = call_with(temporaries("parallel"), used, 9, 100)
        assert code == 0
        np.testing.assert_array_equal(y, np.full(100, n * (n - 1) / 2))
        assert len(used.sizes) == 2


@pytest.mark.parametrize("kind", ["serial", "parallel"])
@pytest.mark.parametrize("budget", [0, 1])
def test_out_of_memory_frees_and_returns_2(kind: str, budget: int) -> None:
    with memory(budget) as used:
        code, _, _ = call_with(temporaries(kind), used, 9, 100)
        assert code == 2
        assert len(used.sizes) == budget + 1


@pytest.mark.parametrize(("n", "rows"), [(0, 0), (0, 5), (5, 0)])
def test_empty(n: int, rows: int) -> None:
    with memory() as used:
        code, y, _ = call_with(temporaries(), used, n, rows)
        assert code == 0
        np.testing.assert_array_equal(y, np.full(rows, n * (n - 1) / 2))


def test_zeroed_each_time() -> None:
    """Storage that is promised zeroed is so in every iteration, though allocated once."""
    n, rows = Var("N"), Var("R")
    x, y = buffer("X", f32, n), buffer("Y", f32, rows)
    sums = buffer("sums", f32, n)
    i, j = Var("i"), Var("j")
    add = loop(j, n, store(sums, j, call("add", load(sums, j), load(x, j))))
    last = store(y, i, load(sums, affine(n) - 1))
    body = loop(i, rows, Allocate(sums, seq(add, last), zeroed=True))
    with memory() as used:
        code, got, _ = call_with(program(body, (n, rows), (x,), (y,)), used, 9, 4)
        assert code == 0
        np.testing.assert_array_equal(got, np.full(4, 8))


@pytest.mark.parametrize("size", [4096, 5000])
@pytest.mark.parametrize("kind", ["serial", "parallel"])
def test_gaps_between_rows_begin_as_zero(size: int, kind: str) -> None:
    """Vectors pass through them, and what was in the memory before may be slow to multiply."""
    n, rows = Var("N"), Var("R")
    x, y = buffer("X", f32, n), buffer("Y", f32, rows)
    apart = replace(buffer("apart", f32, affine(size)), gaps=True)
    i, j = Var("i"), Var("j")
    total = loop(j, affine(size), store(y, i, call("add", load(y, i), load(apart, j))))
    body = loop(i, rows, Allocate(apart, seq(store(y, i, Const(0.0, f32)), total)), kind)
    with memory() as used:
        for _ in range(2):
            dirty = used.allocate(64, -(-4 * size // 64) * 64)
            ctypes.memset(dirty, 0x7F, 4 * size)
            used.free(dirty)
            code, got, _ = call_with(program(body, (n, rows), (x,), (y,)), used, 1, 3)
            assert code == 0
            np.testing.assert_array_equal(got, np.zeros(3))


def test_small_constant_temporaries_stay_on_the_stack() -> None:
    n, rows = Var("N"), Var("R")
    x, y = buffer("X", f32, n), buffer("Y", f32, rows)
    small, large = buffer("small", f32, 4096), buffer("large", f32, 4097)
    i = Var("i")

    def through(temporary: object) -> object:
        return Allocate(
            temporary,
            seq(
                loop(i, rows, store(temporary, i, call("add", load(x, i), load(x, i)))),
                loop(i, rows, store(y, i, load(temporary, affine(rows) - 1 - i))),
            ),
        )

    for temporary, count in ((small, 0), (large, 1)):
        with memory() as used:
            made = program(through(temporary), (n, rows), (x,), (y,))
            code, got, _ = call_with(made, used, 9, 9)
            assert code == 0
            np.testing.assert_array_equal(got, 2 * np.arange(9)[::-1])
            assert len(used.sizes) == count
