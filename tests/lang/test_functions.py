"""The functions of the language, against NumPy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import tensorlang as tl
from tensorlang.errors import DefinitionError
from tensorlang.ir.functions import FUNCTIONS

M, N = tl.dims("M N")

UNARY = {
    "sqrt": np.sqrt, "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1, "log": np.log,
    "log2": np.log2, "log1p": np.log1p, "sin": np.sin, "cos": np.cos, "tan": np.tan,
    "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "sinh": np.sinh, "cosh": np.cosh,
    "tanh": np.tanh, "floor": np.floor, "ceil": np.ceil, "round": np.rint, "trunc": np.trunc,
    "abs": np.abs, "sign": np.sign, "isnan": np.isnan, "isinf": np.isinf,
    "rsqrt": lambda x: 1 / np.sqrt(x), "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "erf": np.vectorize(math.erf, otypes=[float]),
}  # fmt: skip
SPECIAL = np.array([0.0, -0.0, 0.5, -1.5, 2.5, np.inf, -np.inf, np.nan])


@pytest.mark.parametrize("name", UNARY)
def test_unary_functions(name):
    @tl.compute
    def operator(x: tl.f64[N]):
        return tl.tensor(getattr(tl, name)(x[i]) for i in N)

    with np.errstate(all="ignore"):
        expected = UNARY[name](SPECIAL)
    np.testing.assert_allclose(operator.reference(SPECIAL), expected, rtol=1e-15)
    if hasattr(np, UNARY[name].__name__) and name not in ("floor", "ceil", "trunc"):

        @tl.compute
        def by_numpy(x: tl.f64[N]):
            return tl.tensor(UNARY[name](x[i]) for i in N)

        np.testing.assert_array_equal(by_numpy.reference(SPECIAL), operator.reference(SPECIAL))


def test_every_function_of_the_table_is_public_or_an_operator():
    for name, row in FUNCTIONS.items():
        assert row.symbol or hasattr(tl, name), name


numbers = hnp.arrays(np.int32, 6, elements=st.integers(-(2**31), 2**31 - 1))


@settings(max_examples=40, deadline=None)
@given(numbers, numbers)
def test_integer_operators(a, b):
    @tl.compute
    def operator(a: tl.i32[N], b: tl.i32[N]):
        return (
            tl.tensor(a[i] // b[i] for i in N), tl.tensor(a[i] % b[i] for i in N),
            tl.tensor(a[i] & b[i] | 5 for i in N), tl.tensor(~a[i] ^ b[i] for i in N),
            tl.tensor(-a[i] * b[i] for i in N), tl.tensor(abs(a[i]) for i in N),
            tl.tensor(a[i] ** 2 for i in N), tl.tensor(tl.popcount(a[i]) for i in N),
            tl.tensor((a[i] << 3) >> 1 for i in N), tl.tensor(a[i] / b[i] for i in N),
        )  # fmt: skip

    with np.errstate(all="ignore"):
        expected = (
            a // b, a % b, a & b | np.int32(5), ~a ^ b, -a * b, abs(a), a * a,
            np.bitwise_count(a.view(np.uint32)), (a << 3) >> 1, a / b,
        )  # fmt: skip
    for got, wanted in zip(operator.reference(a, b), expected, strict=True):
        np.testing.assert_array_equal(got, wanted)


def test_comparisons_of_all_kinds():
    @tl.compute
    def operator(x: tl.f32[N]):
        return tl.tensor(
            tl.where((x[i] < 1) & (i >= 1) | (x[i] != x[i]) & ~(N > 3), x[i] == 0, x[i] >= 2)
            for i in N
        )

    x = np.array([0, 0, np.nan], np.float32)
    np.testing.assert_array_equal(operator.reference(x), [False, True, False])
    assert operator.definition().outputs[0].dtype is tl.bool


def test_clip_minimum_maximum():
    @tl.compute
    def operator(x: tl.f64[N]):
        return (
            tl.tensor(tl.clip(x[i], -1, 1) for i in N),
            tl.tensor(tl.minimum(x[i], 0.5) for i in N),
            tl.tensor(x[tl.clip(i - 1, 0, N - 1)] for i in N),
        )

    clipped, least, edge = operator.reference(SPECIAL)
    np.testing.assert_array_equal(clipped, np.clip(SPECIAL, -1, 1))
    np.testing.assert_array_equal(least, np.minimum(SPECIAL, 0.5))
    np.testing.assert_array_equal(edge, SPECIAL[[0, 0, 1, 2, 3, 4, 5, 6]])


def test_pow_fma_atan2():
    @tl.compute
    def operator(x: tl.f32[N], y: tl.f32[N]):
        return (
            tl.tensor(x[i] ** y[i] for i in N),
            tl.tensor(2 ** y[i] for i in N),
            tl.tensor(tl.fma(x[i], y[i], -1) for i in N),
            tl.tensor(tl.atan2(x[i], y[i]) for i in N),
        )

    x, y = np.array([[2, 3.5], [0.5, 2]], np.float32)
    results = operator.reference(x, y)
    expected = (x**y, 2**y, (x.astype(float) * y - 1).astype(np.float32), np.arctan2(x, y))
    for got, wanted in zip(results, expected, strict=True):
        np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("target", [tl.i8, tl.u8, tl.i64, tl.bool, tl.f16, tl.f64])
def test_casts_saturate_and_round(target):
    @tl.compute
    def operator(x: tl.f32[N]):
        return tl.tensor(tl.cast(x[i], target) for i in N)

    x = np.array([0, 1.9, -1.9, 300, -300, 1e30, np.nan], np.float32)
    result = operator.reference(x)
    if target in (tl.i8, tl.u8, tl.i64):
        bounds = np.iinfo(result.dtype)
        whole = [0 if value != value else int(value) for value in x]
        assert result.tolist() == [min(max(v, bounds.min), bounds.max) for v in whole]
    else:
        with np.errstate(over="ignore"):
            np.testing.assert_array_equal(result, x.astype(result.dtype))


def test_a_cast_inside_an_expression_rounds():
    @tl.compute
    def operator(x: tl.f32[N]):
        return tl.tensor(tl.cast(tl.cast(x[i], tl.f16), tl.f32) - x[i] for i in N)

    x = np.array([0.1, 1 / 3], np.float32)
    np.testing.assert_array_equal(operator.reference(x), x.astype(np.float16).astype("f") - x)


def test_bitcast():
    @tl.compute
    def operator(x: tl.f32[N]):
        bits = tl.tensor(tl.bitcast(x[i], tl.u32) for i in N)
        return bits, tl.tensor(tl.bitcast(bits[i] & 0x7FFFFFFF, tl.f32) for i in N)

    x = np.array([-1.5, 2.0], np.float32)
    bits, positive = operator.reference(x)
    np.testing.assert_array_equal(bits, x.view(np.uint32))
    np.testing.assert_array_equal(positive, abs(x))


def test_where_is_lazy_at_any_depth():
    @tl.compute
    def operator(x: tl.f32[N], at: tl.i32[M]):
        return tl.tensor(tl.where(at[i] >= 0, tl.where(at[i] < N, x[at[i]], -1), -2) for i in M)

    x = np.array([5, 6], np.float32)
    at = np.array([0, 1, 2, -1], np.int32)
    np.testing.assert_array_equal(operator.reference(x, at), [5, 6, -1, -2])
    np.testing.assert_array_equal(operator.reference(x[:0], at[2:]), [-1, -2])


def test_gathers_are_checked():
    @tl.compute
    def operator(x: tl.f32[N], at: tl.i64[M]):
        return tl.tensor(x[2 * at[i] + 1] for i in M)

    x = np.arange(4, dtype=np.float32)
    np.testing.assert_array_equal(operator.reference(x, np.array([1, 0])), [3, 1])
    for bad in (-1, 2):
        with pytest.raises(IndexError, match=f"index {2 * bad + 1} is out of range for axis 0"):
            operator.reference(x, np.array([0, bad]))


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(-1, 2), st.integers(-1, 2)), min_size=2, max_size=2),
       st.integers(0, 3), st.integers(0, 3))  # fmt: skip
def test_pad(amounts, m, n):
    @tl.compute
    def padded(x: tl.f32[M, N]):
        p = tl.pad(x, amounts, 7)
        return tl.pad(p, {-1: (0, 1)})

    x = np.arange(m * n, dtype=np.float32).reshape(m, n)
    if any(size + low + high < 0 for size, (low, high) in zip(x.shape, amounts, strict=True)):
        with pytest.raises(ValueError, match=r"padded: the extent .* is negative"):
            padded.reference(x)
        return
    cropped = x[tuple([slice(max(-low, 0), size - max(-high, 0))
                       for size, (low, high) in zip(x.shape, amounts, strict=True)])]  # fmt: skip
    added = [(max(low, 0), max(high, 0)) for low, high in amounts]
    expected = np.pad(cropped, added, constant_values=7)
    result = padded.reference(x)
    if min(x.shape) >= 2:  # cropping an array that is too small leaves padding, not x
        np.testing.assert_array_equal(result[:, :-1], expected)
    assert (result[:, -1] == 0).all()


def test_pad_refusals():
    def too_few(x: tl.f32[M, N]):
        return tl.pad(x, [(1, 1)])

    def no_axis(x: tl.f32[M, N]):
        return tl.pad(x, {2: (1, 1)})

    def no_tensor(x: tl.f32[M, N]):
        return tl.pad(3, {0: (1, 1)})

    for function, text in [
        (too_few, "tl.pad of x: 1 pairs are given for 2 axes"),
        (no_axis, "tl.pad of x: there is no axis 2"),
        (no_tensor, "tl.pad takes a tensor, not 3"),
    ]:
        with pytest.raises(DefinitionError, match=text):
            tl.compute(function).definition()
