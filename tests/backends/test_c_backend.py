"""A backend of another package: found by its entry point, right on the operators of every kind."""

import functools
import importlib
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorlang as tl

PACKAGE = Path(__file__).parents[2] / "examples" / "c_backend"

M, N, K = tl.dims("M N K")

pytestmark = pytest.mark.skipif(
    shutil.which("cc") is None and shutil.which("gcc") is None, reason="there is no C compiler"
)


@pytest.fixture(scope="module", autouse=True)
def installed(tmp_path_factory):
    """Lay out the metadata that an installation of the package would leave."""
    site = tmp_path_factory.mktemp("site")
    info = site / "tensorlang_c-0.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: tensorlang-c\nVersion: 0.1.0\n")
    (info / "entry_points.txt").write_text("[tensorlang.backends]\nc = tensorlang_c\n")
    sys.path[:0] = [str(site), str(PACKAGE)]
    importlib.invalidate_caches()  # folders that appear are not looked at again otherwise
    yield
    del sys.path[:2]


@tl.compute
def matmul(A: tl.f32[M, K], B: tl.f32[K, N]):
    return tl.tensor(tl.sum(A[i, k] * B[k, j] for k in K) for i in M for j in N)


@tl.compute
def softmax(X: tl.f64[M, N]):
    top = tl.tensor(tl.max(X[i, j] for j in N) for i in M)
    e = tl.tensor(tl.exp(X[i, j] - top[i]) for i in M for j in N)
    total = tl.tensor(tl.sum(e[i, j] for j in N) for i in M)
    return tl.tensor(e[i, j] / total[i] for i in M for j in N)


@tl.compute
def blur(X: tl.f32[M, N]):
    p = tl.pad(X, {0: (1, 1)})
    return tl.tensor(p[i, j] + p[i + 1, j] + p[i + 2, j] for i in M for j in N)


@tl.compute
def running_total(X: tl.i64[M, N]):
    return tl.tensor(tl.scan(lambda a, b: a + b, 0, (X[i, j] for j in N)) for i in M)


@tl.compute
def best(X: tl.f32[M, N]):
    return tl.tensor(tl.argmax(X[i, j] for j in N) for i in M)


@tl.compute
def triangle(X: tl.f32[M]):
    return tl.tensor(tl.sum(X[j] for j in tl.range(0, i + 1)) for i in M)


@tl.compute
def pick(X: tl.f32[M], at: tl.i32[N]):
    return tl.tensor(X[at[i]] for i in N)


@tl.compute
def integers(a: tl.i32[N], b: tl.i32[N]):
    return tl.tensor((a[i] // b[i]) * 3 - a[i] % b[i] + tl.minimum(a[i], b[i]) for i in N)


SIZES = st.sampled_from([0, 1, 2, 5, 7, 16, 17])


@functools.cache
def compiled(operator):
    return tl.compile(operator, target="c")


def agree(operator, *arrays):
    result = compiled(operator)(*arrays)
    np.testing.assert_allclose(result, operator.reference(*arrays), rtol=1e-5, atol=1e-6)


@settings(max_examples=10)
@given(SIZES, SIZES, SIZES, st.randoms(use_true_random=False))
def test_operators_agree_with_their_definitions(m, n, k, random):
    rng = np.random.default_rng(random.randrange(2**32))

    def floats(*shape, dtype=np.float32):
        return rng.standard_normal(shape).astype(dtype)

    agree(matmul, floats(m, k), floats(k, n))
    agree(softmax, floats(m, n, dtype=np.float64))
    agree(blur, floats(m, n))
    agree(running_total, rng.integers(-99, 99, (m, n)))
    agree(best, floats(m, n + 1))
    agree(triangle, floats(m))
    agree(pick, floats(m + 1), rng.integers(0, m + 1, n).astype(np.int32))
    agree(integers, *rng.integers(-5, 5, (2, n)).astype(np.int32))


def test_a_schedule_runs_on_it():
    s = tl.schedule(matmul)
    i, j, k = s.loops
    io, ii = s.split(i, 4)
    jo, ji = s.split(j, 8)
    s.reorder(io, jo, k, ii, ji)
    s.cache_write("matmul", at=jo)
    s.vectorize(ji)
    s.parallel(io)
    rng = np.random.default_rng(0)
    A, B = rng.standard_normal((13, 9), np.float32), rng.standard_normal((9, 21), np.float32)
    np.testing.assert_allclose(tl.compile(s, target="c")(A, B), A @ B, rtol=1e-4, atol=1e-5)


def test_a_bad_index_is_reported():
    with pytest.raises(IndexError, match="7"):
        tl.compile(pick, target="c")(np.zeros(3, np.float32), np.array([0, 7], np.int32))


def test_what_it_lacks_is_refused():
    @tl.compute
    def half(x: tl.f16[N]):
        return tl.tensor(x[i] + x[i] for i in N)

    with pytest.raises(tl.CompileError, match='the backend "c" has no f16; the backend "cpu" has'):
        tl.compile(half, target="c")(np.zeros(3, np.float16))


def test_an_unknown_backend_names_those_that_are_there():
    with pytest.raises(tl.CompileError, match="Known here: c, cpu"):
        tl.compile(matmul, target="fpga")
