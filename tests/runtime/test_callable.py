import pickle
import re
import threading
from array import array

import numpy as np
import pytest
from hand_built import matmul, scale
from hypothesis import given
from hypothesis import strategies as st
from python_kernels import compiled

from tensorlang.dtypes import bf16, bool_, f16, f32, f64, i8, i32, i64, to_numpy, u64
from tensorlang.ir.affine import Var, affine
from tensorlang.ir.definition import Axis, Condition, Definition, Stage, Tensor
from tensorlang.ir.expr import Const, Load
from tensorlang.runtime.callable import Origin


def run_matmul(inputs, outputs, scalars, sizes):
    outputs[0][...] = inputs[0] @ inputs[1]


def run_scale(inputs, outputs, scalars, sizes):
    outputs[0][...] = inputs[0] * scalars[0]


def any_strides(shape, dtype, draw):
    """An array of ``shape`` inside a larger one: steps, reversed axes, transposition."""
    steps = [draw(st.sampled_from([1, 1, 2, -1, -3])) for _ in shape]
    pads = [draw(st.integers(0, 2)) for _ in shape]
    order = draw(st.permutations(range(len(shape))))
    whole = [n * abs(step) + pad for n, step, pad in zip(shape, steps, pads, strict=True)]
    base = np.zeros([whole[axis] for axis in order], dtype)
    base = base.transpose(np.argsort(order)) if shape else base
    view = base[
        tuple(
            slice(0, n * step, step) if step > 0 else slice(n * -step - 1 if n else 0, None, step)
            for n, step in zip(shape, steps, strict=True)
        )
    ]
    view = view[tuple(slice(0, n) for n in shape)] if shape else view[...]
    assert view.shape == tuple(shape)
    view[...] = np.arange(view.size).reshape(shape) % 7
    return view


@given(st.data())
def test_strided_inputs_and_out(data):
    m, n, k = (data.draw(st.sampled_from([0, 1, 2, 3, 5])) for _ in range(3))
    f = compiled(matmul(f32), run_matmul)
    a = any_strides((m, k), np.float32, data.draw)
    b = any_strides((k, n), np.float32, data.draw)
    a.flags.writeable = False
    expected = np.asarray(a) @ b
    result = f(a, b)
    np.testing.assert_array_equal(result, expected)
    assert result.flags.c_contiguous
    assert result.ctypes.data % 64 == 0
    out = any_strides((m, n), np.float32, data.draw)
    assert f(a, B=b, out=out) is out
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("dtype", [f32, f64, f16, i8, i32, i64, u64, bool_, bf16])
@pytest.mark.parametrize("rank", [0, 1, 3])
def test_dtypes_and_ranks(dtype, rank):
    f = compiled(scale(dtype, scalar_dtype=bool_, rank=rank), run_scale)
    x = np.asarray(np.arange(2**rank).reshape((2,) * rank) % 2, to_numpy(dtype))
    y = f(True, x)
    assert isinstance(y, np.ndarray)
    assert y.dtype == x.dtype
    assert y.shape == x.shape
    np.testing.assert_array_equal(y, x)


def test_unaligned_and_odd_strides_are_copied():
    f = compiled(scale(f64), run_scale)
    memory = np.zeros(8 * 5 + 1, np.uint8)
    x = memory[1:].view(np.float64)
    x[...] = np.arange(5)
    np.testing.assert_array_equal(f(2, x), 2 * np.arange(5))
    field = np.zeros(4, np.dtype([("a", "i4"), ("b", "f8")], align=False))["b"]
    field[...] = 3
    out = np.zeros(4, np.dtype([("a", "i4"), ("b", "f8")], align=False))["b"]
    assert f(2, field, out=out) is out
    np.testing.assert_array_equal(out, [6.0] * 4)
    assert set(f.builds) == {("contiguous", "contiguous")}


def test_versions_by_layout_compile_once():
    f = compiled(matmul(f32), run_matmul)
    a, b = np.ones((4, 6), np.float32), np.ones((6, 8), np.float32)
    f(a, b)
    f(a, b)
    f(np.ones((4, 12), np.float32)[:, :6], b)
    f(np.ones((6, 4), np.float32).T, b, out=np.zeros((4, 16), np.float32)[:, ::2])
    assert f.builds == [
        ("contiguous",) * 3,
        ("inner", "contiguous", "contiguous"),
        ("any", "contiguous", "any"),
    ]
    assert "(inner, contiguous, contiguous)" in str(f.report)


def test_threads_compile_a_version_once():
    f = compiled(matmul(f32), run_matmul)
    a = np.ones((3, 3), np.float32)
    results = []
    threads = [threading.Thread(target=lambda: results.append(f(a, a))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(f.builds) == 1
    for result in results:
        np.testing.assert_array_equal(result, a @ a)


def test_broadcast_and_aliased_inputs():
    f = compiled(matmul(f32), run_matmul)
    a = np.broadcast_to(np.float32(2), (3, 3))
    np.testing.assert_array_equal(f(a, a), a @ a)


class Through:
    """An array that is reached through ``__array__`` only."""

    def __init__(self, data):
        self.data = data

    def __array__(self, dtype=None, copy=None):
        return self.data


class ThroughDLPack:
    def __init__(self, data):
        self.data = data

    def __dlpack__(self, **keywords):
        return self.data.__dlpack__(**keywords)

    def __dlpack_device__(self):
        return self.data.__dlpack_device__()


@pytest.mark.parametrize(
    "wrap", [Through, ThroughDLPack, lambda x: memoryview(x), lambda x: array("f", x.tolist())]
)
def test_other_arrays(wrap):
    f = compiled(scale(f32), run_scale)
    np.testing.assert_array_equal(f(2, wrap(np.arange(3, dtype=np.float32))), [0, 2, 4])


A = np.ones((2, 3), np.float32)
B = np.ones((3, 4), np.float32)


@pytest.mark.parametrize(
    ("args", "keywords", "error", "text"),
    [
        ((A,), {}, TypeError, "matmul: missing B; the parameters are A, B"),
        ((A, B, B), {}, TypeError, "matmul takes 2 positional arguments (A, B), found 3"),
        ((A, B), {"A": A}, TypeError, "matmul: A is given twice"),
        ((A, B), {"stride": 2}, TypeError,
         "matmul has no parameter 'stride'; the parameters are A, B"),
        ((A, 3.0), {}, TypeError,
         "matmul: B must be an array, f32[K, N]; found a float: convert it with"
         " np.asarray(..., dtype=np.float32)"),
        ((A, [[1.0]]), {}, TypeError,
         "matmul: B must be an array, f32[K, N]; found a list: convert it with"
         " np.asarray(..., dtype=np.float32)"),
        ((A, None), {}, TypeError,
         "matmul: B must be an array, f32[K, N]; found None: convert it with"
         " np.asarray(..., dtype=np.float32)"),
        ((A, object()), {}, TypeError,
         "matmul: B must be an array, f32[K, N]; found an object:"
         " memoryview: a bytes-like object is required, not 'object'"),
        ((A, np.ma.masked_array(B)), {}, TypeError,
         "matmul: B must be an array, f32[K, N]; found a masked array, whose mask would be lost:"
         " pass B.filled()"),
        ((A, B.astype(np.float64)), {}, TypeError,
         "matmul: B must hold f32 (np.float32), f32[K, N], found float64:"
         " pass B.astype(np.float32)"),
        ((A, B.astype(">f4")), {}, TypeError,
         "matmul: B must hold f32 (np.float32), f32[K, N], found >f4, of foreign byte order:"
         " pass B.astype(np.float32) to swap its bytes"),
        ((A, B.astype(complex)), {}, TypeError,
         "matmul: B must hold f32 (np.float32), f32[K, N], found complex128: tensorlang has no"
         " such element type; pass B.astype(np.float32) if it can be converted"),
        ((A, B[0]), {}, ValueError,
         "matmul: B must be f32[K, N] (2 axes), found shape (4,) (1 axis)"),
        ((A, B[:2]), {}, ValueError,
         "matmul: axis 0 of B has size 2, but K = 3 is expected (K = 3 by axis 1 of A)"),
        ((A, B), {"out": np.zeros((2, 5), np.float32)}, ValueError,
         "matmul: out (C) must have shape (2, 4), f32[M, N], found (2, 5)"),
        ((A, B), {"out": np.zeros((2, 4))}, TypeError,
         "matmul: out (C) must hold f32 (np.float32), found float64"),
        ((A, B), {"out": [1]}, TypeError,
         "matmul: out (C) must be an array, found list"),
        ((A, B), {"out": ()}, TypeError,
         "matmul: out must be a tuple of 1 arrays (C), found 0 of them"),
        ((A, B), {"out": np.broadcast_to(np.float32(0), (2, 4))}, ValueError,
         "matmul: out (C) is read-only"),
    ],
)  # fmt: skip
def test_mistakes(args, keywords, error, text):
    f = compiled(matmul(f32), run_matmul)
    with pytest.raises(error, match=f"^{re.escape(text)}$"):
        f(*args, **keywords)


def test_out_may_not_overlap():
    f = compiled(matmul(f32), run_matmul)
    memory = np.zeros((6, 6), np.float32)
    with pytest.raises(ValueError, match=r"out \(C\) shares memory with A, which would change"):
        f(memory[:3, :3], memory[3:, 3:], out=memory[1:4, 2:5])
    out = memory[:3, 3:]
    assert f(memory[:3, :3], memory[3:, 3:], out=out) is out
    interleaved = np.zeros((3, 6), np.float32)  # bounds overlap, elements do not
    f(interleaved[:, ::2], memory[:3, :3], out=interleaved[:, 1::2])
    own = np.lib.stride_tricks.as_strided(memory, (3, 3), (4, 4))
    with pytest.raises(ValueError, match="some of its elements share memory"):
        f(memory[3:, :3], memory[3:, 3:], out=own)


def pair() -> Definition:
    n = Var("N")
    x = Tensor("X", (affine(n),), f32)
    outputs = tuple(Tensor(name, (affine(n),), f32) for name in ("low", "high"))
    i = Var("i")
    stages = tuple(Stage((y,), (Axis(i, affine(n)),), (Load(x, (affine(i),)),)) for y in outputs)
    return Definition("pair", (n,), (x,), (), stages, outputs)


def test_several_outputs():
    def run(inputs, outputs, scalars, sizes):
        outputs[0][...], outputs[1][...] = inputs[0] - 1, inputs[0] + 1

    f = compiled(pair(), run)
    x = np.arange(3, dtype=np.float32)
    low, high = f(x)
    np.testing.assert_array_equal(low, x - 1)
    np.testing.assert_array_equal(high, x + 1)
    out = (np.zeros(3, np.float32), np.zeros(6, np.float32)[::2])
    assert f(x, out=out) is out
    np.testing.assert_array_equal(out[1], x + 1)
    with pytest.raises(ValueError, match=r"out \(high\) shares memory with out \(low\)"):
        f(x, out=(out[0], out[0]))
    with pytest.raises(TypeError, match=r"out must be a tuple of 2 arrays \(low, high\), found nd"):
        f(x, out=out[0])


@pytest.mark.parametrize(
    ("dtype", "value", "error", "text"),
    [
        (f32, "1", TypeError, "scale: alpha must be a number (f32), found an object of type str"),
        (f32, True, TypeError, "scale: alpha must be a number (f32), found True (bool)"),
        (f32, 1e39, ValueError, "scale: alpha: 1e+39 is too large for f32"),
        (bf16, 3.4e38 * 0.999999 + 1e36, ValueError, None),
        (i32, 1.0, TypeError, "scale: alpha must be an integer (i32), found 1.0 (float)"),
        (i8, 200, ValueError, "scale: alpha must lie in [-128, 127] (i8), found 200"),
        (u64, -1, ValueError, None),
        (bool_, 1, TypeError, "scale: alpha must be a bool, found 1 (int)"),
    ],
)
def test_scalar_mistakes(dtype, value, error, text):
    f = compiled(scale(f32, dtype), run_scale)
    with pytest.raises(error, match=text and f"^{re.escape(text)}$"):
        f(value, np.ones(3, np.float32))


@pytest.mark.parametrize(
    ("dtype", "value"),
    [(f32, 1.5), (f32, np.float64(0.5)), (f64, 3), (f32, np.array(2.0)), (i8, -3), (f16, 1.5),
     (u64, 2**64 - 1), (f32, float("inf"))],
)  # fmt: skip
def test_scalars_arrive(dtype, value):
    seen = []
    f = compiled(scale(f32, dtype), lambda inputs, outputs, scalars, sizes: seen.append(scalars[0]))
    f(value, np.ones(1, np.float32))
    f(X=np.ones(1, np.float32), alpha=value)
    assert seen == [value, value]


@given(st.floats(width=32))
def test_bf16_scalars_round_to_even(value):
    seen = []
    f = compiled(scale(f32, bf16), lambda inputs, outputs, scalars, sizes: seen.append(scalars[0]))
    with np.errstate(over="ignore", invalid="ignore"):
        expected = np.float32(value).astype(to_numpy(bf16))
    if np.isinf(expected) and np.isfinite(value):
        with pytest.raises(ValueError, match="too large for bf16"):
            f(value, np.ones(1, np.float32))
        return
    f(value, np.ones(1, np.float32))
    found = np.array(seen[0], np.uint16).view(to_numpy(bf16))
    np.testing.assert_array_equal(found.astype(np.float32), expected.astype(np.float32))


def test_sizes_that_no_array_fixes_and_attributes():
    n, m = Var("n"), Var("M")
    x = Tensor("X", (affine(m),), f32)
    y = Tensor("Y", (affine(n), affine(m) - 1), f32)
    axes = (Axis(Var("i"), affine(n)), Axis(Var("j"), affine(m) - 1))
    stage = Stage((y,), axes, (Const(1.0, f32),))
    definition = Definition(
        "fill", (m, n), (x,), (), (stage,), (y,), dims=(n,), attributes=(("stride", 2),)
    )

    def run(inputs, outputs, scalars, sizes):
        outputs[0][...] = sizes["n"]

    f = compiled(definition, run)
    x = np.zeros(4, np.float32)
    np.testing.assert_array_equal(f(x, n=np.int64(2), stride=2), np.full((2, 3), 2))
    np.testing.assert_array_equal(f(x, n=5), np.full((5, 3), 5))
    with pytest.raises(TypeError, match="fill: missing size n; the parameters are X, n="):
        f(x)
    with pytest.raises(ValueError, match="fill: the size n must be an integer >= 0, found -1"):
        f(x, n=-1)
    with pytest.raises(TypeError, match=r"the size n must be an integer >= 0, found 2\.0"):
        f(x, n=2.0)
    with pytest.raises(TypeError, match="compiled with stride=2, which 3 cannot replace; compile"):
        f(x, n=1, stride=3)
    with pytest.raises(ValueError, match=r"fill: the extent M - 1 is negative \(-1\)"):
        f(np.zeros(0, np.float32), n=1)


def test_conditions_are_checked():
    definition = matmul(f32)
    m, k, n = definition.sizes
    conditions = (
        Condition(affine(n) - affine(k), "the columns must outnumber the rows"),
        Condition(affine(m) % 2, "tile: M must be a multiple of 2", equality=True),
    )
    f = compiled(definition, run_matmul, conditions=conditions)
    f(A, B)
    with pytest.raises(
        ValueError,
        match=r"^matmul: the columns must outnumber the rows\n  needed: K <(=| 1 \+)? N( \+ 1)?\n"
        r"  found:  M = 2, K = 3, N = 2$",
    ):
        f(A, B[:, :2])
    with pytest.raises(ValueError, match="matmul: tile: M must be a multiple of 2"):
        f(A[:1], B)


def test_failures_of_the_kernel():
    outcome = (1, (0, 7, 5))
    f = compiled(scale(f32), lambda *_: outcome)
    x = np.ones(3, np.float32)
    with pytest.raises(IndexError) as caught:
        f(1, x)
    lines = str(caught.value).splitlines()
    assert lines[0] == "scale: index 7 leaves axis 0 of table, which has 5 elements"
    assert lines[1].endswith('python_kernels.py:1: """Kernels written in Python behind the real'
                             ' calling convention, so that no compiler is needed.')  # fmt: skip
    outcome = (1, (0, -1, 1))
    with pytest.raises(IndexError, match=r"(?s)has 1 element\n.*negative indices do not count"):
        f(1, x)
    outcome = (2, (0, 0, 0))
    with pytest.raises(MemoryError, match="scale: no memory for a temporary array, with N0 = 3"):
        f(1, x)


def test_sources_and_report():
    f = compiled(
        matmul(f32), run_matmul, origin=Origin("cpu", lambda: "for i in M: ...", "proved in 12 ms")
    )
    assert repr(f) == "<compiled matmul(A: f32[M, K], B: f32[K, N]) -> f32[M, N] for cpu>"
    assert "versions: none yet" in str(f.report)
    assert f.source("schedule") == "for i in M: ..."
    assert f.source().startswith("def matmul(A: f32[M * K]")
    assert f.source("llvm") == "; llvm"
    assert f.source("asm") == "# asm"
    assert "proved in 12 ms" in str(f.report)
    with pytest.raises(ValueError, match=r"^matmul\.source: 'ptx' is not made for cpu$"):
        f.source("ptx")
    with pytest.raises(ValueError, match="'c' is not one of 'schedule', 'loops', 'llvm', 'asm'"):
        f.source("c")
    with pytest.raises(TypeError, match=r"^<compiled matmul.* for cpu> cannot be pickled$"):
        pickle.dumps(f)


def test_time_counts_the_definition():
    f = compiled(matmul(f32), run_matmul)
    timing = f.time(A, B, seconds=0.001)
    assert timing.operations == 2 * 2 * 3 * 4
    assert timing.bytes == 4 * (6 + 12 + 8)
    assert timing.best <= timing.lower_quartile <= timing.median <= timing.upper_quartile
    assert re.fullmatch(
        r"matmul: \S+ us \(\S+-\S+, best \S+, \d+ samples\), "
        r"\S+ GFLOP/s( \(.*?\))?, \S+ GB/s( \(.*?\))?(; .* the limit)?",
        str(timing),
    )
