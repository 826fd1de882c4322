"""Conversions of single values, made once per pair of dtypes, as cheap as Python allows.

Input:  f32, i32      Output: a function that takes ``np.float32(-2.7)`` to ``np.int32(-2)``

They give what ``arithmetic`` gives on arrays (a test compares them), without arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from tensorlang.dtypes import (
    DType,
    bf16,
    bool_,
    evaluation_dtype,
    f16,
    i64,
    integer_range,
    is_float,
    is_integer,
    to_numpy,
)
from tensorlang.interpreter import arithmetic
from tensorlang.interpreter.failures import POISON
from tensorlang.ir.expr import Number


def value_scalar(value: object, dtype: DType) -> Any:
    """Return a Python or NumPy number as the scalar in which expressions hold it."""
    return arithmetic.widen(np.asarray(value).astype(to_numpy(dtype))[()])


def constant_scalar(value: Number, dtype: DType) -> Any:
    """Return a literal as a scalar; an integer beyond i64 keeps its bits."""
    if is_integer(dtype):
        return to_numpy(dtype).type(int(value))
    return value_scalar(value, dtype)


@cache
def index_scalar(dtype: DType) -> Callable[[int], Any]:
    """Return the conversion of an index to a value: i64, then cast."""
    if dtype is i64:
        return np.int64
    convert = scalar_cast(i64, dtype)
    return lambda index: convert(np.int64(index))


@cache
def scalar_cast(source: DType, dtype: DType) -> Callable[[Any], Any]:
    """Return ``arithmetic.cast`` for scalars, without the cost of arrays."""
    wanted = to_numpy(dtype).type
    if dtype is bool_:
        return lambda value: value != 0
    if is_float(source) and is_integer(dtype):
        return _saturating(dtype)
    if dtype in (f16, bf16):
        return lambda value: value.astype(to_numpy(dtype)).astype(np.float32)
    if evaluation_dtype(source) is dtype:
        return lambda value: value
    return lambda value: value.astype(wanted)


def _saturating(dtype: DType) -> Callable[[Any], Any]:
    wanted = to_numpy(dtype).type
    lowest, highest = map(wanted, integer_range(dtype))
    bottom, top = float(lowest), float(int(highest) + 1)  # powers of two: exact

    def convert(value: Any) -> Any:
        number = float(value)
        if number != number:
            return wanted(0)
        if number >= top:
            return highest
        return lowest if number <= bottom else wanted(int(number))

    return convert


@cache
def scalar_bitcast(source: DType, dtype: DType) -> Callable[[Any], Any]:
    """Return ``arithmetic.bitcast`` for given dtypes."""
    return lambda value: arithmetic.bitcast(value, source, dtype)


@cache
def rounding_to(dtype: DType) -> Callable[[Any], Any]:
    """Return the conversion of an evaluated value to what memory holds; poison stays poison."""
    return lambda value: value if value is POISON else arithmetic.round_to_storage(value, dtype)


def widen(value: Any) -> Any:
    """Return what memory holds as it is evaluated; poison stays poison."""
    return value if value is POISON else arithmetic.widen(value)
