import math
import warnings
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorlang.dtypes import (
    ALL,
    bf16,
    bool_,
    f16,
    f32,
    f64,
    i8,
    i16,
    i32,
    i64,
    integer_range,
    is_float,
    is_integer,
    to_numpy,
    u8,
    u32,
)
from tensorlang.interpreter import arithmetic
from tensorlang.interpreter.arithmetic import apply, bitcast, cast
from tensorlang.ir.functions import FUNCTIONS

INTEGERS = [dtype for dtype in ALL if is_integer(dtype)]
FLOATS = [dtype for dtype in ALL if is_float(dtype)]


def accepts(function, dtype):
    match function.operands:
        case "number":
            return dtype is not bool_
        case "integer":
            return is_integer(dtype)
        case "float":
            return is_float(dtype)
        case "bits":
            return not is_float(dtype)
        case _:
            return True


def special_values(dtype):
    if dtype is bool_:
        return [False, True]
    if is_float(dtype):
        return [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, 1e30, math.inf, -math.inf, math.nan]
    low, high = integer_range(dtype)
    return [value for value in (low, low + 1, -1, 0, 1, 2, 7, 31, high) if low <= value <= high]


def array(values, dtype):
    with np.errstate(all="ignore"):
        return np.array(values).astype(to_numpy(dtype))


def test_every_function_has_an_implementation():
    assert set(arithmetic._IMPLEMENTATIONS) == set(FUNCTIONS)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_array_and_scalar_agree_silently_for_every_value(name):
    function = FUNCTIONS[name]
    tried = 0
    for dtype in filter(lambda d: accepts(function, d), ALL):
        values = array(special_values(dtype), dtype)
        grids = np.meshgrid(*[values] * function.arity, indexing="ij")
        operands = [np.ascontiguousarray(grid.ravel()) for grid in grids]
        result_dtype = bool_ if function.result == "bool" else dtype
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            whole = apply(name, operands, result_dtype)
            one_by_one = [apply(name, args, result_dtype) for args in zip(*operands, strict=True)]
        expected = np.float32 if result_dtype in (f16, bf16) else to_numpy(result_dtype)
        assert whole.dtype == expected
        assert all(
            isinstance(value, np.generic) and value.dtype == expected for value in one_by_one
        )
        # vector and scalar transcendental functions of NumPy may differ in the last bit
        np.testing.assert_allclose(whole, one_by_one, rtol=1e-6 if dtype is not f64 else 1e-14)
        tried += 1
    assert tried


@given(st.sampled_from(INTEGERS), st.integers(), st.integers())
def test_integer_division_is_pythons_and_wraps(dtype, a, b):
    low, high = integer_range(dtype)
    a, b = (low + value % (high - low + 1) for value in (a, b))
    args = [to_numpy(dtype).type(value) for value in (a, b)]
    quotient = apply("floordiv", args, dtype)
    assert int(quotient) == (wrap(a // b, dtype) if b else 0)
    assert int(apply("mod", args, dtype)) == (a % b if b else 0)


def wrap(value, dtype):
    low, high = integer_range(dtype)
    return low + (value - low) % (high - low + 1)


@given(st.sampled_from(INTEGERS), st.integers(), st.integers())
def test_integer_add_sub_mul_neg_wrap(dtype, a, b):
    a, b = wrap(a, dtype), wrap(b, dtype)
    x, y = (to_numpy(dtype).type(value) for value in (a, b))
    assert int(apply("add", (x, y), dtype)) == wrap(a + b, dtype)
    assert int(apply("sub", (x, y), dtype)) == wrap(a - b, dtype)
    assert int(apply("mul", (x, y), dtype)) == wrap(a * b, dtype)
    assert int(apply("neg", (x,), dtype)) == wrap(-a, dtype)
    assert int(apply("popcount", (x,), dtype)) == (a & (2**dtype.bits - 1)).bit_count()


@given(st.sampled_from(INTEGERS), st.integers(), st.integers(-4, 70))
def test_shifts_are_arithmetic_and_never_undefined(dtype, a, count):
    a = wrap(a, dtype)
    count = max(count, integer_range(dtype)[0]) if dtype.kind == "int" else abs(count)
    x, y = (to_numpy(dtype).type(value) for value in (a, count))
    wide = not 0 <= count < dtype.bits
    assert int(apply("shl", (x, y), dtype)) == (0 if wide else wrap(a << count, dtype))
    assert int(apply("shr", (x, y), dtype)) == ((-1 if a < 0 else 0) if wide else a >> count)


@given(st.sampled_from(INTEGERS), st.integers(-9, 9), st.integers(-5, 9))
def test_integer_power(dtype, base, exponent):
    if dtype.kind == "uint":
        base, exponent = abs(base), abs(exponent)
    x, y = (to_numpy(dtype).type(value) for value in (base, exponent))
    if exponent >= 0:
        expected = wrap(base**exponent, dtype)
    else:
        expected = int(Fraction(1, base**-exponent)) if base else 0
    assert int(apply("pow", (x, y), dtype)) == expected


@given(st.sampled_from(INTEGERS), st.floats(), st.sampled_from([f16, bf16, f32, f64]))
def test_float_to_integer_saturates(dtype, value, source):
    with np.errstate(all="ignore"):
        x = np.float64(value).astype(to_numpy(source))
    low, high = integer_range(dtype)
    held = float(x)
    expected = (
        0
        if math.isnan(held)
        else (low if held <= low else high if held >= high else math.trunc(held))
    )
    result = cast(x, source, dtype)
    assert result.dtype == to_numpy(dtype)
    assert int(result) == expected


@pytest.mark.parametrize("dtype", INTEGERS)
def test_float_to_integer_at_the_limits(dtype):
    low, high = integer_range(dtype)
    for source in (f32, f64):
        kind = to_numpy(source).type
        for limit in (low, high, high + 1, low - 1):
            for value in (kind(limit), np.nextafter(kind(limit), kind(0)), kind(limit) - kind(0.5)):
                expected = min(max(math.trunc(float(value)), low), high)
                assert int(cast(value, source, dtype)) == expected


@given(st.sampled_from(INTEGERS), st.sampled_from(INTEGERS), st.integers())
def test_integer_to_integer_wraps(source, dtype, value):
    value = wrap(value, source)
    assert int(cast(to_numpy(source).type(value), source, dtype)) == wrap(value, dtype)


def test_to_bool_is_unequal_zero():
    assert cast(np.array([0.0, -0.0, math.nan, 0.5]), f64, bool_).tolist() == [
        False,
        False,
        True,
        True,
    ]
    assert cast(np.array([256, 0], np.int32), i32, bool_).tolist() == [True, False]


def test_half_types_round_only_when_cast():
    third = apply("div", (np.float16(1), np.float16(3)), f16)
    assert third == np.float32(1) / np.float32(3)
    assert cast(third, f16, f16) == np.float32(np.float16(third))
    assert cast(np.float64(1 / 3), f64, bf16).dtype == np.float32
    assert cast(np.float64(1 / 3), f64, bf16) == np.float32(0.333984375)


@given(st.floats(width=32), st.floats(width=32), st.floats(width=32))
def test_fma_of_f32_rounds_once(a, b, c):
    assert_fma(np.float32(a), np.float32(b), np.float32(c), f32)


@given(st.floats(), st.floats(), st.floats())
def test_fma_of_f64_rounds_once(a, b, c):
    assert_fma(np.float64(a), np.float64(b), np.float64(c), f64)


def assert_fma(a, b, c, dtype):
    result = apply("fma", (a, b, c), dtype)
    if not (np.isfinite(a) and np.isfinite(b) and np.isfinite(c)):
        with np.errstate(all="ignore"):
            np.testing.assert_equal(result, np.float64(a) * np.float64(b) + np.float64(c))
        return
    exact = Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))
    if not np.isfinite(result):
        assert abs(exact) > Fraction(float(np.finfo(result.dtype).max))
        return
    error = abs(Fraction(float(result)) - exact)
    for direction in (np.inf, -np.inf):
        with np.errstate(all="ignore"):
            neighbour = np.nextafter(result, result.dtype.type(direction))
        if np.isfinite(neighbour):
            assert error <= abs(Fraction(float(neighbour)) - exact)


def test_fma_where_two_roundings_differ():
    # 97 * 172961 = 2 ** 24 + 1, half way between two f32; what is added decides, however small
    a, b = np.float32(97), np.float32(172961)
    for sign in (1, -1):
        for addend, expected in ((2.0**-60, 2**24 + 2), (-(2.0**-60), 2**24), (0.0, 2**24)):
            args = (np.float32(sign * a), b, np.float32(sign * addend))
            assert apply("fma", args, f32) == np.float32(sign * expected)


def test_nan_propagates_through_minimum_and_maximum():
    for name in ("minimum", "maximum"):
        for args in ((math.nan, 1.0), (1.0, math.nan)):
            assert np.isnan(apply(name, [np.float32(arg) for arg in args], f32))


def test_round_takes_ties_to_even():
    halves = np.array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5], np.float32)
    assert apply("round", (halves,), f32).tolist() == [-2, -2, 0, 0, 2, 2]


def test_isnan_of_integers_is_false():
    assert apply("isnan", (np.array([0, 5], np.int64),), bool_).tolist() == [False, False]
    assert apply("isinf", (np.int8(3),), bool_) == False  # noqa: E712


@given(st.floats(-6, 6))
def test_erf_agrees_with_the_c_library(x):
    assert apply("erf", (np.float64(x),), f64) == pytest.approx(math.erf(x), rel=1e-15, abs=0)


def test_erf_without_scipy(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "scipy.special", None)
    arithmetic._error_function.cache_clear()
    try:
        x = np.linspace(-4, 4, 9)
        assert apply("erf", (x,), f64).tolist() == [math.erf(v) for v in x]
        assert apply("erf", (np.float32(1),), f32) == np.float32(math.erf(1))
    finally:
        arithmetic._error_function.cache_clear()


@given(st.integers())
def test_bitcast_round_trip(bits):
    bits = wrap(bits, i32)
    value = bitcast(np.int32(bits), i32, f32)
    assert value.dtype == np.float32
    assert int(bitcast(value, f32, i32)) == bits
    assert int(bitcast(np.int32(bits), i32, u32)) == bits % 2**32


def test_bitcast_of_half_types():
    assert bitcast(np.float32(1.0), f16, i16) == 0x3C00
    assert bitcast(np.int16(0x3F80), i16, bf16) == np.float32(1.0)
    with pytest.raises(TypeError, match="bitcast of 8 bits to 64 bits"):
        bitcast(np.int8(1), i8, i64)
    assert bitcast(np.array([255], np.uint8), u8, i8).tolist() == [-1]
