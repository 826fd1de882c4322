"""Dtypes of expressions: NumPy 2's, with weak literals and indices."""

from __future__ import annotations

import operator
from functools import partial

import numpy as np
import pytest

import tensorlang as tl
from tensorlang.dtypes import ALL, from_numpy, to_numpy
from tensorlang.errors import DefinitionError
from tensorlang.lang.promotion import promote

NUMPY_TYPES = [dtype for dtype in ALL if dtype.name != "bf16"]
NUMBERS = [dtype for dtype in NUMPY_TYPES if dtype.name != "bool"]
N = tl.dim("N")


def result_of(function, *dtypes):
    """The dtype of an elementwise expression over tensors of the given dtypes."""
    if len(dtypes) == 1:

        def operator(x: dtypes[0][N]):
            return tl.tensor(function(x[i]) for i in N)

    else:

        def operator(x: dtypes[0][N], y: dtypes[1][N]):
            return tl.tensor(function(x[i], y[i]) for i in N)

    operator.__annotations__ = dict(zip("xy", [dtype[N] for dtype in dtypes], strict=False))
    return tl.compute(operator).definition().outputs[0].dtype


@pytest.mark.parametrize("left", NUMPY_TYPES, ids=lambda dtype: dtype.name)
def test_strong_operands_meet_as_in_numpy(left):
    for right in NUMPY_TYPES:
        expected = np.promote_types(to_numpy(left), to_numpy(right))
        assert promote(left, right) is from_numpy(expected)
        assert promote(left, right) is promote(right, left)


@pytest.mark.parametrize("dtype", NUMBERS, ids=lambda dtype: dtype.name)
def test_literals_adapt_as_in_numpy(dtype):
    array = np.ones(1, to_numpy(dtype))
    for number in (2, 2.5, True):
        added, multiplied = partial(operator.add, number), partial(operator.mul, number)
        assert to_numpy(result_of(added, dtype)) == (number + array).dtype
        assert to_numpy(result_of(multiplied, dtype)) == (number * array).dtype
    assert to_numpy(result_of(lambda x: x / 2, dtype)) == (
        (array / 2).dtype if dtype.kind == "float" else np.float64
    )


def test_bools_meet_literals_as_numbers():
    assert result_of(lambda x: tl.where(x, 1, 0), tl.bool) is tl.i64
    assert result_of(lambda x: x * 1, tl.bool) is tl.i64
    assert result_of(lambda x: x * 1.0, tl.bool) is tl.f64
    assert result_of(lambda x: x & True, tl.bool) is tl.bool


@pytest.mark.parametrize("dtype", [tl.f16, tl.bf16, tl.f32, tl.f64], ids=lambda d: d.name)
def test_indices_are_weak_beside_floats(dtype):
    def operator(x: dtype[N]):
        return tl.tensor((i * 2 + 1) * x[i] / N + (i / N) * x[i] for i in N)

    operator.__annotations__ = {"x": dtype[N]}
    assert tl.compute(operator).definition().outputs[0].dtype is dtype


def test_a_weak_expression_is_computed_in_the_float_beside_it():
    @tl.compute
    def ramp(x: tl.f32[N]):
        return tl.tensor(x[i] + (i + 0.1) / N for i in N)

    number = np.arange(3, dtype=np.float32)
    expected = (number + np.float32(0.1)) / np.float32(3)
    np.testing.assert_array_equal(ramp.reference(np.zeros(3, "f")), expected)


def test_indices_are_i64_beside_integers_and_alone():
    assert result_of(lambda x: x + N, tl.i32) is tl.i64
    assert result_of(lambda x: N * 0.5, tl.i32) is tl.f64

    @tl.compute
    def counts(x: tl.i32[N]):
        return tl.tensor(i for i in N), tl.tensor(x[i] + i for i in N), tl.tensor(i / N for i in N)

    assert [output.dtype for output in counts.definition().outputs] == [tl.i64, tl.i64, tl.f64]


def test_numpy_scalars_are_strong():
    assert result_of(lambda x: np.float32(2) * x, tl.i16) is tl.f32
    assert result_of(lambda x: x + np.float64(2), tl.f32) is tl.f64
    assert result_of(lambda x: x + np.int64(2), tl.i32) is tl.i64


def test_bf16_meets_others():
    assert promote(tl.bf16, tl.i32) is tl.bf16
    assert promote(tl.bf16, tl.f16) is tl.f32
    assert promote(tl.f64, tl.bf16) is tl.f64


@pytest.mark.parametrize(
    ("function", "dtype", "text"),
    [
        (lambda x: x + 300, tl.u8, "300 is out of the range of u8 (0 to 255)"),
        (lambda x: x - (-1), tl.u16, "-1 is out of the range of u16"),
        (lambda x: x * 1e300, tl.f32, "1e+300 is out of the range of f32"),
        (lambda x: tl.exp(x), tl.i32, "tl.exp of x[i] (i32): cast to the float"),
        (lambda x: tl.sqrt(N), tl.f32, "tl.sqrt of N (i64): cast to the float"),
        (lambda x: x + x, tl.bool, "+ of x[i], x[i] (bool) is not defined: it takes numbers"),
        (lambda x: x & 1, tl.f32, "& of x[i], 1 (f32) is not defined: it takes integers and bools"),
        (lambda x: x << x, tl.bool, "<< of x[i], x[i] (bool) is not defined: it takes integers"),
        (lambda x: x**-1, tl.i32, "an integer to the power -1 is not an integer"),
        (lambda x: tl.where(x, 1, 2), tl.f32, "the condition of tl.where is x[i] (f32)"),
        (lambda x: tl.bitcast(x, tl.i32), tl.f64, "tl.bitcast from f64 to i32: the widths differ"),
        (lambda x: x + "a", tl.f32, "'a' (str) cannot be part of an expression"),
        (lambda x: x + np.ones(3), tl.f32, "a NumPy array is used inside a definition"),
    ],
)
def test_refusals(function, dtype, text):
    with pytest.raises(DefinitionError) as error:
        result_of(function, dtype)
    assert text in str(error.value)
    assert __file__ in str(error.value)
