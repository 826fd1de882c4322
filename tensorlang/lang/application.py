"""Applies functions to traced operands: dtypes meet, index arithmetic stays index arithmetic.

Input:  ``apply("mul", A[i, k], 2)``        Output: ``Value(A[i, k] * 2, f32)``
Input:  ``apply("add", i, 1)``              Output: ``Index(i + 1)``
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorlang.dtypes import (
    DType,
    bool_,
    evaluation_dtype,
    f64,
    from_numpy,
    i64,
    is_float,
    is_integer,
)
from tensorlang.ir import affine as forms
from tensorlang.ir.affine import Affine, variables_of
from tensorlang.ir.expr import Call, Const
from tensorlang.ir.functions import FUNCTIONS
from tensorlang.lang.conversion import adapt, literal
from tensorlang.lang.expression import Expression
from tensorlang.lang.mistakes import definition_error
from tensorlang.lang.promotion import Operands, result_type
from tensorlang.lang.values import BOOLS, INTEGERS, NUMPY_SCALARS, Index, Literal, Value


def apply(function: str, *operands: object) -> Expression:
    """Return a function of ``functions.FUNCTIONS`` applied to traced operands and literals."""
    if all(is_index_like(operand) for operand in operands):
        result = _apply_to_indices(function, *map(index_form, operands))
        if result is not None:
            return result
    return call(function, *operands)


def is_index_like(operand: object) -> bool:
    """Tell whether an operand is an index expression or a plain integer."""
    if isinstance(operand, Index):
        return True
    return isinstance(operand, INTEGERS) and not isinstance(operand, BOOLS)


def index_form(operand: object) -> Affine:
    """Return what :func:`is_index_like` accepted as a form."""
    return operand.affine if isinstance(operand, Index) else Affine(int(operand))  # pyright: ignore[reportArgumentType]


def _apply_to_indices(function: str, left: Affine, right: Affine | None = None) -> Index | None:
    if right is None:
        return Index(-left) if function == "neg" else None
    match function:
        case "add":
            return Index(left + right)
        case "sub":
            return Index(left - right)
        case "mul":
            return Index(left * right)
        case "minimum":
            return Index(forms.minimum(left, right))
        case "maximum":
            return Index(forms.maximum(left, right))
        case "floordiv" | "mod":
            return _divide_indices(function, left, right)
        case _:
            return None


def _divide_indices(function: str, left: Affine, right: Affine) -> Index | None:
    if right == forms.ZERO:
        raise definition_error("an index expression is divided by zero")
    if not right.is_constant and not _depends_on_sizes_alone(right):
        return None  # an axis may be 0: a value, for which x // 0 is 0
    return Index(left // right if function == "floordiv" else left % right)


def _depends_on_sizes_alone(form: Affine) -> bool:
    from tensorlang.lang.trace import active

    trace = active()
    return trace is None or variables_of(form) <= trace.size_set


def call(function: str, *operands: object) -> Value:
    """Return a call whose operands have been brought to one dtype."""
    row = FUNCTIONS[function]
    values = [as_operand(operand) for operand in operands]
    dtype, weak = common_type(values)
    if function == "div" and not is_float(dtype):
        dtype = f64
    _check_operands(function, row.operands, dtype, values)
    args = tuple([adapt(value, dtype) for value in values])
    if row.result == "bool":
        expr = Call(function, args, bool_)
        return Value(expr, bool_, truth=_decide(function, operands))
    return Value(Call(function, args, evaluation_dtype(dtype)), dtype, weak)


def _decide(function: str, operands: tuple[object, ...]) -> bool | None:
    """Return what ``if`` may take as the answer to a comparison of index expressions.

    A difference that is constant decides it. Sizes compare equal by what they are, not by what
    they may turn out to be: that is how ``x.shape == y.shape`` is meant in Python code.
    """
    if len(operands) != 2 or not all(is_index_like(operand) for operand in operands):
        return None
    difference = index_form(operands[0]) - index_form(operands[1])
    if difference.is_constant:
        number = difference.constant
        return {
            "lt": number < 0, "le": number <= 0, "gt": number > 0,
            "ge": number >= 0, "eq": number == 0, "ne": number != 0,
        }.get(function)  # fmt: skip
    if function in ("eq", "ne") and _depends_on_sizes_alone(difference):
        return function == "ne"
    return None


def as_operand(operand: object) -> Value | Literal:
    """Return a traced value or a Python literal; NumPy scalars are values of their dtype."""
    if isinstance(operand, Value):
        return operand
    if isinstance(operand, Expression):
        return operand.as_value()
    if isinstance(operand, bool):
        return Value(Const(operand, bool_), bool_)
    if isinstance(operand, NUMPY_SCALARS):
        return _numpy_scalar(operand)
    if isinstance(operand, int | float):
        return operand
    kind = type(operand).__name__
    if isinstance(operand, np.ndarray):
        raise definition_error(
            "a NumPy array is used inside a definition; make it a parameter of the operator"
        )
    raise definition_error(f"{operand!r} ({kind}) cannot be part of an expression")


def _numpy_scalar(scalar: Any) -> Value:
    dtype = from_numpy(scalar.dtype)
    if dtype is None:
        raise definition_error(f"a NumPy scalar of dtype {scalar.dtype} cannot be used")
    return Value(Const(scalar.item(), evaluation_dtype(dtype)), dtype)


def as_value(operand: object) -> Value:
    """Return any operand as a value; a Python literal becomes a weak i64 or f64."""
    value = as_operand(operand)
    if isinstance(value, Value):
        return value
    dtype = f64 if isinstance(value, float) else i64
    return Value(literal(value, dtype), dtype, weak=True)


def common_type(operands: list[Value | Literal]) -> tuple[DType, bool]:
    """Return the dtype in which operands meet, and whether it is weak."""
    values = [operand for operand in operands if isinstance(operand, Value)]
    weak = [value.dtype for value in values if value.weak]
    literals = [operand for operand in operands if not isinstance(operand, Value)]
    return result_type(
        Operands(
            strong=tuple([value.dtype for value in values if not value.weak]),
            weak_float=f64 in weak or any(isinstance(number, float) for number in literals),
            weak_index=i64 in weak,
            literal_int=any(isinstance(number, int) for number in literals),
        )
    )


_ADVICE = {
    "number": "numbers; cast the bool first: tl.cast(x, tl.i32)",
    "integer": "integers; cast first: tl.cast(x, tl.i32)",
    "float": "floats; cast first: tl.cast(x, tl.f32)",
    "bits": "integers and bools; cast first: tl.cast(x, tl.i32)",
}


def _check_operands(
    function: str, accepted: str, dtype: DType, values: list[Value | Literal]
) -> None:
    fits = {
        "number": dtype is not bool_,
        "integer": is_integer(dtype),
        "float": is_float(dtype),
        "bits": not is_float(dtype),
        "any": True,
    }[accepted]
    if not fits:
        shown = ", ".join(str(value) for value in values)
        raise definition_error(
            f"{FUNCTIONS[function].symbol or function} of {shown} ({dtype.name}) is not defined: "
            f"it takes {_ADVICE[accepted]}"
        )


def power(base: object, exponent: object) -> Expression:
    """Return ``base ** exponent``; a literal 2 is a product, as NumPy computes it."""
    if isinstance(exponent, int) and not isinstance(exponent, bool):
        if exponent == 2 and isinstance(base, Expression):
            return apply("mul", base, base)
        if exponent < 0:
            dtype, _ = common_type([as_operand(base), exponent])
            if not is_float(dtype):
                raise definition_error(
                    f"an integer to the power {exponent} is not an integer; cast the base first: "
                    "tl.cast(x, tl.f64)"
                )
    return apply("pow", base, exponent)
