"""What every function of the expression language computes, on NumPy arrays and NumPy scalars.

Input:  ``apply("floordiv", (np.int32(-7), np.int32(0)), i32)``      Output: ``np.int32(0)``

This is the one statement of the scalar semantics that can be run: the NumPy evaluator of
definitions and the interpreter of programs both call it, and the backends are tested against it.
Nothing here warns or raises for any value of its operands:

- integers wrap; ``x // 0 = x % 0 = 0``; ``pow`` with a negative exponent is the exact value
  truncated toward zero (``1`` and ``-1`` stay units, ``0`` gives ``0`` as ``x // 0`` does);
- shifts as wide as the type, or by a negative amount, give 0, and -1 for a negative ``shr``;
- ``minimum`` and ``maximum`` propagate NaN; ``round`` takes ties to even;
- float to integer saturates and takes NaN to 0; anything to bool is ``x != 0``;
- f16 and bf16 are computed in f32 and *stay* f32: only ``cast`` to them, and a store, round.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache
from typing import Any, TypeAlias
from typing import cast as typed

import numpy as np

from tensorlang.dtypes import (
    DType,
    bool_,
    evaluation_dtype,
    integer_range,
    is_float,
    to_numpy,
)

Value: TypeAlias = Any
"""An array of any rank, or a NumPy scalar; pyright knows too little of ufuncs to say more."""

Implementation: TypeAlias = Callable[..., Value]


def apply(function: str, args: Sequence[Value], dtype: DType) -> Value:
    """Return a function of ``functions.FUNCTIONS`` applied to operands that broadcast.

    ``dtype`` is the dtype of the result as the IR states it; f16 and bf16 results come as f32.
    Raises KeyError for an unknown name.
    """
    with np.errstate(all="ignore"):
        result = implementation(function)(*map(widen, args))
        return _as_dtype(result, evaluation_dtype(dtype))


def implementation(function: str) -> Implementation:
    """Return the bare NumPy callable of a function, for operands of the evaluation dtype.

    It may warn: run it under ``np.errstate(all="ignore")``.
    """
    return _IMPLEMENTATIONS[function]


def widen(value: Value) -> Value:
    """Return f16 and bf16 values as the f32 in which they are computed, all others as they are."""
    if value.dtype == np.float16 or value.dtype.name == "bfloat16":
        return value.astype(np.float32)
    return value


def cast(value: Value, source: DType, dtype: DType) -> Value:
    """Return ``value`` (elements of ``source``) converted; f16 and bf16 are rounded, as f32."""
    with np.errstate(all="ignore"):
        return widen(_convert(widen(value), source, dtype))


def round_to_storage(value: Value, dtype: DType) -> Value:
    """Return a value in evaluation dtype as the element that memory holds (f16 stays f16)."""
    with np.errstate(all="ignore"):
        return value.astype(to_numpy(dtype))


def bitcast(value: Value, source: DType, dtype: DType) -> Value:
    """Return the bits of ``value`` read as ``dtype``, which is as wide as ``source``."""
    if source.bits != dtype.bits:
        raise TypeError(f"bitcast of {source.bits} bits to {dtype.bits} bits")
    stored = round_to_storage(value, source)
    return widen(stored.view(to_numpy(dtype)))


def _as_dtype(value: Value, dtype: DType) -> Value:
    wanted = to_numpy(dtype)
    return value if value.dtype == wanted else value.astype(wanted)


def _convert(value: Value, source: DType, dtype: DType) -> Value:
    if dtype is bool_:
        return value != 0
    if is_float(source) and not is_float(dtype):
        return _saturate(value, dtype)
    return value.astype(to_numpy(dtype))


def _saturate(value: Value, dtype: DType) -> Value:
    """Truncate floats to integers of ``dtype``; the limits compared with are powers of two."""
    lowest, highest = integer_range(dtype)
    kind = value.dtype.type
    inside = (value > kind(lowest) - 1) & (value < kind(highest + 1))
    wanted = to_numpy(dtype)
    result = _where(inside, value, kind(0)).astype(wanted)
    result = _where(value >= kind(highest + 1), wanted.type(highest), result)
    return _where(value <= kind(lowest), wanted.type(lowest), result)


def _where(condition: Value, then: Value, otherwise: Value) -> Value:
    """``np.where`` that returns a scalar for scalars."""
    return typed("Value", np.where(condition, then, otherwise))[()]


# --- functions that NumPy does not have, or has otherwise ----------------------------------------


def _integer_power(base: Value, exponent: Value) -> Value:
    if exponent.dtype.kind == "u":
        return np.power(base, exponent)
    zero, one = base.dtype.type(0), base.dtype.type(1)
    result = np.power(base, np.maximum(exponent, zero))
    unit = _where((exponent & one) == one, base, one)  # of -1: the sign of an odd power
    inverse = _where((base == one) | (base == -one), unit, zero)
    return _where(exponent < zero, inverse, result)


def _power(base: Value, exponent: Value) -> Value:
    if base.dtype.kind == "f":
        # NumPy takes x ** 0.5 to be sqrt(x) for a scalar exponent, wrong at -inf and -0.0.
        by_root = (exponent == 0.5) & ((base == 0) | np.isinf(base))
        return np.power(_where(by_root, np.abs(base), base), exponent)
    return _integer_power(base, exponent)


def _reciprocal_square_root(x: Value) -> Value:
    return x.dtype.type(1) / np.sqrt(x)


def _sigmoid(x: Value) -> Value:
    one = x.dtype.type(1)
    return one / (one + np.exp(-x))


def _erf(x: Value) -> Value:
    wide = _error_function()(x.astype(np.float64))
    return np.asarray(wide, dtype=x.dtype)[()]


@cache
def _error_function() -> Callable[[Value], Value]:
    """Return erf on f64: SciPy's where it is installed, else the C library's, one at a time."""
    try:
        from scipy.special import erf  # pyright: ignore
    except ImportError:
        return np.frompyfunc(math.erf, 1, 1)
    return typed("Callable[[Value], Value]", erf)


def _popcount(x: Value) -> Value:
    # bitwise_count counts the bits of |x|, so signed integers are read as unsigned ones.
    unsigned = x.view(f"u{x.dtype.itemsize}")
    return np.bitwise_count(unsigned).astype(x.dtype)


def _is_nan(x: Value) -> Value:
    return np.isnan(x) if x.dtype.kind == "f" else np.zeros(x.shape, bool)[()]


def _is_infinite(x: Value) -> Value:
    return np.isinf(x) if x.dtype.kind == "f" else np.zeros(x.shape, bool)[()]


def _two_sum(a: Value, b: Value) -> tuple[Value, Value]:
    """Return ``a + b`` rounded, and its error exactly (Knuth, TAOCP 2, 4.2.2)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _sum_to_odd(a: Value, b: Value) -> Value:
    """Return ``a + b`` rounded to odd: an inexact sum never ends in an even bit.

    A later rounding to nearest then gives what one rounding of the exact sum would give (Boldo
    and Melquiond, "Emulation of FMA and correctly rounded sums", 2008).
    """
    total, error = _two_sum(a, b)
    even = (np.asarray(total).view(np.int64) & 1) == 0
    inexact = np.isfinite(total) & (error != 0)
    toward = _where((error > 0), np.inf, -np.inf)
    return _where(inexact & even, np.nextafter(total, toward), total)


def _fma(a: Value, b: Value, c: Value) -> Value:
    """Return ``a * b + c`` with one rounding."""
    if a.dtype == np.float32:
        product = a.astype(np.float64) * b.astype(np.float64)  # exact: 24 + 24 bits
        return _sum_to_odd(product, c.astype(np.float64)).astype(np.float32)
    exact = np.frompyfunc(_fma_of_f64, 3, 1)
    return np.asarray(exact(a, b, c), dtype=np.float64)[()]


def _fma_of_f64(a: float, b: float, c: float) -> float:
    a, b, c = float(a), float(b), float(c)
    if not (math.isfinite(a) and math.isfinite(b) and math.isfinite(c)) or a == 0 or b == 0:
        return float(np.float64(a) * np.float64(b) + np.float64(c))
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact == 0:  # of two cancelling numbers that are not 0
        return 0.0
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


_IMPLEMENTATIONS: dict[str, Implementation] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.true_divide,
    "floordiv": np.floor_divide, "mod": np.remainder, "neg": np.negative, "pow": _power,
    "fma": _fma, "minimum": np.minimum, "maximum": np.maximum,
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor, "not": np.invert,
    "shl": np.left_shift, "shr": np.right_shift,
    "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
    "eq": np.equal, "ne": np.not_equal, "isnan": _is_nan, "isinf": _is_infinite,
    "abs": np.absolute, "sign": np.sign,
    "floor": np.floor, "ceil": np.ceil, "round": np.rint, "trunc": np.trunc,
    "sqrt": np.sqrt, "rsqrt": _reciprocal_square_root,
    "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1,
    "log": np.log, "log2": np.log2, "log1p": np.log1p,
    "sin": np.sin, "cos": np.cos, "tan": np.tan,
    "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "atan2": np.arctan2,
    "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh,
    "erf": _erf, "sigmoid": _sigmoid, "popcount": _popcount,
}  # fmt: skip
