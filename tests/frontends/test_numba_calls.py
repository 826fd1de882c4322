"""Operators inside numba's compiled functions."""

import tomllib
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import tensorlang as tl

numba = pytest.importorskip("numba")

from tensorlang.frontends.numba_calls import register  # noqa: E402

register()

M, N, K = tl.dims("M N K")


@tl.compute
def matmul(A: tl.f32[M, K], B: tl.f32[K, N]):
    return tl.tensor(tl.sum(A[i, k] * B[k, j] for k in K) for i in M for j in N)


@tl.compute
def ends(x):
    return tl.tensor(x[i] * 2 for i in tl.grid(x.shape)), tl.sum(x[i] for i in tl.grid(x.shape))


@tl.compute
def narrow(x: tl.f32[N]):
    return tl.tensor(tl.cast(x[i], tl.bf16) for i in N)


@tl.graph
def mlp(x: tl.f32[M, K], w: tl.f32[K, N]):
    return tl.nn.relu(tl.nn.matmul(x, w))


COMPILED, GRAPH = tl.compile(matmul), tl.compile(mlp)


def numbers(*shape, dtype=np.float32):
    return (np.arange(np.prod(shape, dtype=int)).reshape(shape) % 11 - 5).astype(dtype)


def test_the_entry_point_is_registered():
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    module, name = project["project"]["entry-points"]["numba_extensions"]["init"].split(":")
    assert getattr(import_module(module), name) is register


@pytest.mark.parametrize("name", ["matmul", "COMPILED", "GRAPH"])
def test_calls(name):
    namespace = {"numba": numba, "f": globals()[name]}
    exec(
        "@numba.njit\ndef run(a, b, n):\n"
        "    total = 0.0\n"
        "    for _ in range(n):\n"
        "        total += f(a, b)[1, 1]\n"
        "    return total, f(a, b)\n",
        namespace,
    )
    expected = numbers(3, 4) @ numbers(4, 5)
    expected = np.maximum(expected, 0) if name == "GRAPH" else expected
    for a in (numbers(3, 4), np.asfortranarray(numbers(3, 4)), numbers(6, 4)[::2]):
        expected = a @ numbers(4, 5)
        expected = np.maximum(expected, 0) if name == "GRAPH" else expected
        total, result = namespace["run"](a, numbers(4, 5), 5)
        np.testing.assert_array_equal(result, expected)
        assert total == 5 * expected[1, 1]
    with pytest.raises(ValueError, match="size 3, but K = 4 is expected"):
        namespace["run"](numbers(3, 4), numbers(3, 5), 1)


def test_filling_an_array():
    @numba.njit
    def run(a, b, c):
        matmul(a, b, c)
        return COMPILED(a, b, out=c)

    c = np.zeros((3, 10), np.float32)[:, ::2]
    result = run(numbers(3, 4), numbers(4, 5), c)
    np.testing.assert_array_equal(c, numbers(3, 4) @ numbers(4, 5))
    np.testing.assert_array_equal(result, c)
    a = numbers(4, 4)
    with pytest.raises(ValueError, match="shares memory with A"):
        run(a, numbers(4, 4), a)


def test_generic_operators_with_several_results():
    @numba.njit
    def run(x):
        doubled, total = ends(x)
        return doubled, total[()]

    for dtype in (np.float32, np.float64, np.int64):
        doubled, total = run(numbers(2, 3, dtype=dtype))
        np.testing.assert_array_equal(doubled, 2 * numbers(2, 3))
        assert doubled.dtype == dtype
        assert total == numbers(2, 3).sum()


def test_parallel_numba_loops():
    @numba.njit(parallel=True)
    def run(x, out):
        for i in numba.prange(x.shape[0]):
            out[i] = matmul(x[i], x[i])[0, 0]

    x, out = numbers(16, 3, 3), np.zeros(16, np.float32)
    run(x, out)
    np.testing.assert_array_equal(out, [(m @ m)[0, 0] for m in x])


def test_types_without_a_counterpart():
    @numba.njit
    def run(x):
        return narrow(x)

    with pytest.raises(numba.TypingError, match="numba has no type for narrow, which holds bf16"):
        run(numbers(3))
