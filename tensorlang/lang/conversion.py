"""Brings operands to a dtype: literals and weak expressions adapt, others are cast.

Input:  the literal ``2`` beside an f32     Output: ``Const(2.0, f32)``
Input:  ``i / N`` beside an f32             Output: the division in f32
"""

from __future__ import annotations

import numpy as np

from tensorlang.dtypes import DType, bool_, evaluation_dtype, f64, integer_range, is_float, to_numpy
from tensorlang.ir.expr import Call, Cast, Const, Expr, IndexValue, Number, Select
from tensorlang.lang.mistakes import definition_error
from tensorlang.lang.values import Literal, Value


def adapt(value: Value | Literal, dtype: DType) -> Expr:
    """Return the expression of an operand in ``evaluation_dtype(dtype)``."""
    target = evaluation_dtype(dtype)
    if not isinstance(value, Value):
        return literal(value, dtype)
    if value.weak:
        return _retype(value.expr, target)
    return convert(value.expr, target)


def literal(number: Number, dtype: DType) -> Const:
    """Return a Python number as a constant that ``dtype`` can represent."""
    target = evaluation_dtype(dtype)
    if is_float(dtype):
        return Const(_rounded(number, dtype, target), target)
    if isinstance(number, float):
        raise definition_error(f"{number} cannot stand for a value of dtype {dtype.name}")
    lowest, highest = integer_range(dtype)
    if not lowest <= number <= highest:
        raise definition_error(
            f"{number} is out of the range of {dtype.name} ({lowest} to {highest}); "
            "cast the other operand to a wider type first"
        )
    return Const(bool(number) if dtype is bool_ else int(number), dtype)


def _rounded(number: Number, dtype: DType, target: DType) -> float:
    with np.errstate(over="ignore"):
        try:
            rounded = float(to_numpy(target).type(number))
        except OverflowError:
            rounded = np.inf
    if np.isinf(rounded) and not (isinstance(number, float) and np.isinf(number)):
        raise definition_error(f"{number} is out of the range of {dtype.name}")
    return rounded


def convert(expr: Expr, dtype: DType) -> Expr:
    """Return ``expr`` cast to ``dtype`` unless it has that dtype."""
    if expr.dtype is dtype:
        return expr
    if isinstance(expr, Const) and is_float(dtype) and not is_float(expr.dtype):
        return Const(float(to_numpy(dtype).type(expr.value)), dtype)
    return Cast(expr, dtype)


def _retype(expr: Expr, dtype: DType) -> Expr:
    """Rebuild a weak expression in ``dtype``: its literals and indices adapt, as one literal would.

    Only floats are computed in the new type; integer parts keep their i64 and are cast.
    """
    if expr.dtype is dtype:
        return expr
    match expr:
        case Const() if is_float(dtype):
            return literal(expr.value, dtype)
        case IndexValue():
            return IndexValue(expr.index, dtype)
        case Cast(operand=operand) if expr.dtype is f64 and is_float(dtype):
            return _retype(operand, dtype)
        case Call() if expr.dtype is f64 and is_float(dtype):
            return Call(expr.function, tuple([_retype(arg, dtype) for arg in expr.args]), dtype)
        case Select() if is_float(dtype):
            then, otherwise = _retype(expr.then, dtype), _retype(expr.otherwise, dtype)
            return Select(expr.condition, then, otherwise, dtype)
        case _:
            return convert(expr, dtype)


def strengthen(value: Value, dtype: DType | None = None) -> Value:
    """Return ``value`` with a dtype of its own, or cast to ``dtype``."""
    wanted = value.dtype if dtype is None else dtype
    return Value(adapt(value, wanted), wanted)
