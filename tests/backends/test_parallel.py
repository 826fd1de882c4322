"""Parallel loops: every iteration once, whatever runs them; storage private to an iteration."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from tensorlang.backends.cpu import load as load_artefact
from tensorlang.dtypes import f32, f64, i64
from tensorlang.ir.affine import Affine, Var, affine
from tensorlang.ir.definition import Scalar
from tensorlang.ir.expr import Const, IndexValue, ScalarRef
from tensorlang.ir.lowered import Allocate, LoweredProgram
from tests.backends.harness import Kernel, compiled
from tests.backends.programs import buffer, call, lanes_over, load, loop, program, seq, store


def row_sums(local_size: int = 0) -> LoweredProgram:
    """``Y[i] = alpha * sum_j (X[i, j] + i)``, through a temporary of N elements a row."""
    m, n = Var("M"), Var("N")
    alpha = Scalar("alpha", f32)
    x, y = buffer("X", f32, affine(m) * n), buffer("Y", f32, m)
    row = buffer("row", f32, local_size or n)
    i, j, k = Var("i"), Var("j"), Var("k")
    fill = loop(
        j, n, store(row, j, call("add", load(x, affine(i) * n + j), IndexValue(affine(i), f32)))
    )
    total = loop(k, n, store(y, i, call("add", load(y, i), load(row, k))))
    scale = store(y, i, call("mul", load(y, i), ScalarRef(alpha)))
    body = Allocate(row, seq(fill, store(y, i, Const(0.0, f32)), total, scale))
    return program(loop(i, m, body, "parallel"), (m, n), (x,), (y,), scalars=(alpha,))


@pytest.mark.parametrize("local_size", [0, 64])
@pytest.mark.parametrize("threads", [0, 1, 2, 5, 64])
def test_rows(threads: int, local_size: int) -> None:
    kernel = Kernel(row_sums(local_size))
    for m, n in ((0, 5), (1, 1), (7, 0), (33, 13), (1000, 3)):
        x = np.arange(m * n, dtype=np.float32).reshape(m, n) % 7
        outcome = kernel([x], (m, n), [2.0], threads=threads)
        assert outcome.code == 0
        want = 2 * (x + np.arange(m, dtype=np.float32)[:, None]).sum(1)
        np.testing.assert_array_equal(outcome.outputs[0], want)


def test_results_do_not_depend_on_threads() -> None:
    kernel = Kernel(row_sums())
    x = np.random.default_rng(0).normal(size=(257, 31)).astype(np.float32)
    results = [kernel([x], (257, 31), [0.1], threads=n).outputs[0] for n in (1, 2, 3, 16)]
    for result in results[1:]:
        np.testing.assert_array_equal(result, results[0])


def test_one_call_of_the_task_does_everything() -> None:
    """A runtime without threads calls the task once; one with many may call it late again."""
    prototype = ctypes.CFUNCTYPE(
        None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint
    )
    task_type = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
    asked: list[int] = []

    def stand_in(task: int, data: int, threads: int, flags: int) -> None:
        asked.append(threads)
        for _ in range(3):
            task_type(task)(data)

    function = prototype(stand_in)
    size = Var("N")
    y = buffer("Y", i64, size)
    i = Var("i")
    body = loop(i, size, store(y, i, call("add", load(y, i), Const(1, i64))), "parallel")
    artefact = compiled(program(body, (size,), (), (y,)))
    loaded = load_artefact(
        artefact, {"GOMP_parallel": ctypes.cast(function, ctypes.c_void_p).value or 0}
    )
    values = np.zeros(1001, np.int64)
    status = np.zeros(4, np.int64)
    slots = np.array([values.ctypes.data, 1001, 4, status.ctypes.data], np.uint64)
    code = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(loaded.address)(slots.ctypes.data)
    assert code == 0
    assert asked == [4]
    np.testing.assert_array_equal(values, 1)


def test_nested_parallel_loops_and_several_in_a_row() -> None:
    m, n = Var("M"), Var("N")
    x, y = buffer("X", f64, affine(m) * n), buffer("Y", f64, affine(m) * n)
    i, j, p = Var("i"), Var("j"), Var("p")
    place = affine(i) * n + j
    inner = loop(j, n, store(y, place, call("add", load(x, place), load(x, place))), "parallel")
    body = seq(
        loop(i, m, inner, "parallel"),
        loop(p, affine(m) * n, store(y, p, call("add", load(y, p), Const(1.0, f64))), "parallel"),
    )
    values = np.arange(35.0)
    outcome = Kernel(program(body, (m, n), (x,), (y,)))([values], (5, 7))
    np.testing.assert_array_equal(outcome.outputs[0], values * 2 + 1)


def test_parallel_loop_inside_a_serial_one() -> None:
    """Time steps around a parallel loop: facts about the outer loop still hold inside."""
    steps, size = Var("T"), Var("N")
    y = buffer("Y", i64, size)
    t = Var("t")

    def body(index: Affine) -> object:
        return store(y, index, call("add", load(y, index), IndexValue(affine(t), i64)))

    made = program(loop(t, steps, lanes_over(size, 4, body, "parallel")), (steps, size), (), (y,))
    outcome = Kernel(made)([], (5, 18))
    np.testing.assert_array_equal(outcome.outputs[0], np.full(18, 10))


def test_pointers_stay_unaliased_in_outlined_functions() -> None:
    text = Kernel(row_sums()).artefact.llvm
    bodies = [line for line in text.splitlines() if "parallel1(" in line and "define" in line]
    assert len(bodies) == 1
    assert bodies[0].count("noalias") >= 3
    assert "noalias readonly" in bodies[0]
