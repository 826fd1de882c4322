"""The functions of the language: ``tl.exp``, ``tl.where``, ``tl.clip``, ``tl.pad`` and others.

Each takes traced values and Python numbers and makes one expression; ``tl.pad`` makes a stage.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from typing import cast as typed

from tensorlang.dtypes import DType, Element, bool_, evaluation_dtype, i64, is_float
from tensorlang.ir.affine import ZERO, Affine, Var, affine
from tensorlang.ir.definition import Axis
from tensorlang.ir.expr import Bitcast, Call, Cast, Const, Expr, IndexValue, Select
from tensorlang.lang.application import (
    apply,
    as_operand,
    as_value,
    common_type,
    index_form,
    is_index_like,
    power,
)
from tensorlang.lang.conversion import adapt, convert, strengthen
from tensorlang.lang.mistakes import definition_error
from tensorlang.lang.stages import add_map
from tensorlang.lang.tensor import TensorHandle
from tensorlang.lang.trace import current
from tensorlang.lang.values import Value
from tensorlang.source import user_location

inf = float("inf")
nan = float("nan")
pow = power


def minimum(a: Any, b: Any) -> Any:
    """Return the lesser of two values; NaN if either is NaN. Of index expressions, an index."""
    return apply("minimum", a, b)


def maximum(a: Any, b: Any) -> Any:
    """Return the greater of two values; NaN if either is NaN. Of index expressions, an index.

    Examples
    --------
    >>> import numpy as np, tensorlang as tl
    >>> @tl.compute
    ... def relu(x):
    ...     return tl.tensor(tl.maximum(x[i], 0) for i in tl.grid(x.shape))
    >>> relu.reference(np.array([-1.0, 2.0]))
    array([0., 2.])

    """
    return apply("maximum", a, b)


def clip(x: Any, low: Any, high: Any) -> Any:
    """Return ``x`` limited to ``low`` .. ``high``: ``minimum(maximum(x, low), high)``."""
    return minimum(maximum(x, low), high)


def fma(a: Any, b: Any, c: Any) -> Any:
    """Return ``a * b + c`` rounded once."""
    return apply("fma", a, b, c)


def atan2(y: Any, x: Any) -> Any:
    """Return the angle of the point (x, y), in radians from -pi to pi."""
    return apply("atan2", y, x)


def abs(x: Any) -> Any:
    """Return the absolute value; the least signed integer stays as it is."""
    return apply("abs", x)


def sign(x: Any) -> Any:
    """Return -1, 0 or 1; NaN stays NaN."""
    return apply("sign", x)


def isnan(x: Any) -> Any:
    """Tell where a value is NaN (integers never are)."""
    return apply("isnan", x)


def isinf(x: Any) -> Any:
    """Tell where a value is infinite (integers never are)."""
    return apply("isinf", x)


def popcount(x: Any) -> Any:
    """Return how many bits of an integer are set, in the integer's own dtype."""
    return apply("popcount", x)


def _float_function(function: str, x: object) -> Any:
    """Apply a function of floats; integers and lone indices are refused with advice."""
    value = as_operand(x)
    if isinstance(value, Value) and not is_float(value.dtype):
        raise definition_error(
            f"tl.{function} of {value} ({value.dtype.name}): cast to the float that you want "
            f"first, as in tl.{function}(tl.cast(x, tl.f32))"
        )
    return apply(function, float(value) if isinstance(value, int) else value)


def floor(x: Any) -> Any:
    """Return the greatest integer that is not above a float, as a float."""
    return _float_function("floor", x)


def ceil(x: Any) -> Any:
    """Return the least integer that is not below a float, as a float."""
    return _float_function("ceil", x)


def round(x: Any) -> Any:
    """Return the nearest integer as a float, ties to even."""
    return _float_function("round", x)


def trunc(x: Any) -> Any:
    """Return a float without its fraction."""
    return _float_function("trunc", x)


def sqrt(x: Any) -> Any:
    """Return the square root of a float."""
    return _float_function("sqrt", x)


def rsqrt(x: Any) -> Any:
    """Return ``1 / sqrt(x)``."""
    return _float_function("rsqrt", x)


def exp(x: Any) -> Any:
    """Return e to the power of a float.

    Raises
    ------
    DefinitionError
        For integers and index expressions; cast them to the float that is wanted.

    """
    return _float_function("exp", x)


def exp2(x: Any) -> Any:
    """Return 2 to the power of a float."""
    return _float_function("exp2", x)


def expm1(x: Any) -> Any:
    """Return ``exp(x) - 1``, accurate near 0."""
    return _float_function("expm1", x)


def log(x: Any) -> Any:
    """Return the natural logarithm of a float."""
    return _float_function("log", x)


def log2(x: Any) -> Any:
    """Return the logarithm of a float to base 2."""
    return _float_function("log2", x)


def log1p(x: Any) -> Any:
    """Return ``log(1 + x)``, accurate near 0."""
    return _float_function("log1p", x)


def sin(x: Any) -> Any:
    """Return the sine of an angle in radians."""
    return _float_function("sin", x)


def cos(x: Any) -> Any:
    """Return the cosine of an angle in radians."""
    return _float_function("cos", x)


def tan(x: Any) -> Any:
    """Return the tangent of an angle in radians."""
    return _float_function("tan", x)


def asin(x: Any) -> Any:
    """Return the angle, in radians, whose sine is ``x``."""
    return _float_function("asin", x)


def acos(x: Any) -> Any:
    """Return the angle, in radians, whose cosine is ``x``."""
    return _float_function("acos", x)


def atan(x: Any) -> Any:
    """Return the angle, in radians, whose tangent is ``x``."""
    return _float_function("atan", x)


def sinh(x: Any) -> Any:
    """Return the hyperbolic sine."""
    return _float_function("sinh", x)


def cosh(x: Any) -> Any:
    """Return the hyperbolic cosine."""
    return _float_function("cosh", x)


def tanh(x: Any) -> Any:
    """Return the hyperbolic tangent."""
    return _float_function("tanh", x)


def erf(x: Any) -> Any:
    """Return the error function."""
    return _float_function("erf", x)


def sigmoid(x: Any) -> Any:
    """Return ``1 / (1 + exp(-x))``."""
    return _float_function("sigmoid", x)


# --- selection and conversion ----------------------------------------------------------------


def where(condition: Any, a: Any, b: Any) -> Any:
    """Return ``a`` where ``condition`` holds, ``b`` elsewhere; lazy for loads in the branches.

    A load in a branch happens only where that branch is taken, so that
    ``tl.where(i > 0, X[i - 1], 0)`` never reads ``X[-1]``. Reductions in a branch are computed
    everywhere. ``a`` and ``b`` meet in one dtype, as the operands of ``+`` do.

    Raises
    ------
    DefinitionError
        If ``condition`` is not a bool.

    Examples
    --------
    >>> import numpy as np, tensorlang as tl
    >>> N = tl.dim("N")
    >>> @tl.compute
    ... def previous(x: tl.f64[N]):
    ...     return tl.tensor(tl.where(i > 0, x[i - 1], 0) for i in N)
    >>> previous.reference(np.array([1.0, 2.0]))
    array([0., 1.])

    """
    test = as_value(condition)
    if test.dtype is not bool_:
        raise definition_error(
            f"the condition of tl.where is {test} ({test.dtype.name}); it must be a bool, as a "
            "comparison is: write x != 0"
        )
    then, otherwise = as_operand(a), as_operand(b)
    dtype, weak = common_type([then, otherwise])
    branches = adapt(then, dtype), adapt(otherwise, dtype)
    return Value(Select(test.expr, *branches, evaluation_dtype(dtype)), dtype, weak)


def _dtype(dtype: object, function: str) -> DType:
    if isinstance(dtype, type) and issubclass(dtype, Element):
        return dtype
    raise definition_error(f"tl.{function} takes a dtype such as tl.f32, not {dtype!r}")


def cast(x: Any, dtype: Any) -> Any:
    """Return ``x`` converted to ``dtype``.

    Float to integer truncates, saturates and takes NaN to 0; integers wrap; to bool is ``x != 0``;
    to f16 and bf16 rounds.

    Examples
    --------
    >>> import numpy as np, tensorlang as tl
    >>> N = tl.dim("N")
    >>> @tl.compute
    ... def truncated(x: tl.f32[N]):
    ...     return tl.tensor(tl.cast(x[i], tl.i8) for i in N)
    >>> truncated.reference(np.array([-1.5, 300, np.nan], np.float32))
    array([ -1, 127,   0], dtype=int8)

    """
    target = _dtype(dtype, "cast")
    value = as_value(x)
    if value.dtype is target and not value.weak:
        return value
    if isinstance(value.expr, IndexValue) and value.weak:
        return Value(IndexValue(value.expr.index, evaluation_dtype(target)), target)
    expr: Expr = value.expr
    if isinstance(expr, Const) and is_float(target) and value.weak:
        return strengthen(value, target)
    rounded = expr if expr.dtype is target else Cast(expr, target)
    return Value(convert(rounded, evaluation_dtype(target)), target)


def bitcast(x: Any, dtype: Any) -> Any:
    """Return the bits of ``x`` read as another dtype of the same width.

    Raises
    ------
    DefinitionError
        If the widths differ.

    """
    target = _dtype(dtype, "bitcast")
    value = strengthen(as_value(x))
    if value.dtype.bits != target.bits or bool_ in (value.dtype, target):
        raise definition_error(
            f"tl.bitcast from {value.dtype.name} to {target.name}: the widths differ, or one is "
            "bool"
        )
    stored = convert(value.expr, value.dtype)
    return Value(convert(Bitcast(stored, target), evaluation_dtype(target)), target)


# --- padding ---------------------------------------------------------------------------------

Amounts = Mapping[int, tuple[Any, Any]] | Sequence[tuple[Any, Any]]


def pad(x: Any, amounts: Amounts, value: Any = 0) -> Any:
    """Return a tensor with elements added before and after: a stage like any other.

    Parameters
    ----------
    x
        A tensor.
    amounts
        ``{axis: (before, after)}``, or one such pair for each axis; integers or expressions over
        dims. Negative amounts take elements away; negative axes count from the end.
    value
        What the new elements are.

    Examples
    --------
    >>> import numpy as np, tensorlang as tl
    >>> @tl.compute
    ... def framed(x):
    ...     return tl.pad(x, {0: (1, 2)}, 9)
    >>> framed.reference(np.array([5]))
    array([9, 5, 9, 9])

    """
    trace = current("tl.pad")
    if not isinstance(x, TensorHandle):
        raise definition_error(f"tl.pad takes a tensor, not {x}")
    pairs = _pad_amounts(x, amounts)
    extents = [e + low + high for e, (low, high) in zip(x.tensor.shape, pairs, strict=True)]
    axes = tuple([Axis(Var(f"i{place}"), extent) for place, extent in enumerate(extents)])
    inside: list[Expr] = []
    indices: list[Affine] = []
    for axis, extent, (low, high) in zip(axes, x.tensor.shape, pairs, strict=True):
        position = affine(axis.variable)
        indices.append(position - low)
        if low != ZERO:
            inside.append(_compare("ge", position, low))
        if high != ZERO:
            inside.append(_compare("lt", position, extent + low))
    element = x[tuple([_index(form) for form in indices])]
    if not inside:
        return add_map(trace, axes, (element,), user_location())[0]
    condition = inside[0]
    for test in inside[1:]:
        condition = Call("and", (condition, test), bool_)
    padding = adapt(as_operand(value), x.dtype)
    chosen = Select(condition, element.expr, padding, evaluation_dtype(x.dtype))
    return add_map(trace, axes, (Value(chosen, x.dtype),), user_location())[0]


def _index(form: Affine) -> Any:
    from tensorlang.lang.values import Index

    return Index(form)


def _compare(function: str, left: Affine, right: Affine) -> Expr:
    return Call(function, (IndexValue(left, i64), IndexValue(right, i64)), bool_)


def _pad_amounts(x: TensorHandle, amounts: object) -> list[tuple[Affine, Affine]]:
    if isinstance(amounts, Mapping):
        given = typed("Mapping[int, tuple[object, object]]", amounts)
    else:
        listed = typed("Sequence[tuple[object, object]]", amounts)
        if len(listed) != x.ndim:
            raise definition_error(
                f"tl.pad of {x}: {len(listed)} pairs are given for {x.ndim} axes; "
                "write {axis: (before, after)} to pad some of them"
            )
        given = dict(enumerate(listed))
    result = [(ZERO, ZERO)] * x.ndim
    for axis, pair in given.items():
        if not -x.ndim <= axis < x.ndim:
            raise definition_error(f"tl.pad of {x}: there is no axis {axis}")
        low, high = pair
        if not is_index_like(low) or not is_index_like(high):
            raise definition_error(f"tl.pad of {x}: {pair} must be integers or expressions of dims")
        result[axis] = (index_form(low), index_form(high))
    return result
