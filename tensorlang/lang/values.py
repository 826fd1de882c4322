"""What the user's operators act on while an operator is traced: index and value expressions.

Input:  ``A[i, k] * 2 + i``     Output: a ``Value`` around the IR expression of that name

Two kinds exist. An ``Index`` is a quasi-affine form over axes and sizes (``y * stride + r``); it
stays one under ``+ - * // %``, minimum and maximum, and can be iterated when it depends on sizes
alone. A ``Value`` is anything else, with the dtype that the user sees: an expression of f16 is
computed in f32, so the expression inside has dtype f32 while ``Value.dtype`` is f16.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias, cast

import numpy as np

from tensorlang.dtypes import (
    DType,
    bool_,
    evaluation_dtype,
    f64,
    from_numpy,
    i64,
    integer_range,
    is_float,
    is_integer,
    to_numpy,
)
from tensorlang.ir import affine as forms
from tensorlang.ir.affine import Affine, variables_of
from tensorlang.ir.expr import Call, Cast, Const, Expr, IndexValue, Load, Number, Select, loads_of
from tensorlang.ir.functions import FUNCTIONS
from tensorlang.ir.printer import format_expr
from tensorlang.lang.mistakes import definition_error, no_truth_value
from tensorlang.lang.promotion import Operands, result_type

Literal: TypeAlias = int | float


INTEGERS = cast("tuple[type[int], ...]", (int, np.integer))
BOOLS = cast("tuple[type[bool], ...]", (bool, np.bool_))
NUMPY_SCALARS = cast("tuple[type[Any], ...]", (np.generic,))
"""Python's and NumPy's scalars; for a type checker each NumPy scalar is the Python one."""


class Expression:
    """Base of what is traced: Python's operators, each of which makes a larger expression."""

    __slots__ = ()

    def as_value(self) -> Value:
        """Return the expression as a value (an index becomes an i64 that adapts)."""
        raise NotImplementedError

    def __add__(self, other: object) -> Any:
        return apply("add", self, other)

    def __radd__(self, other: object) -> Any:
        return apply("add", other, self)

    def __sub__(self, other: object) -> Any:
        return apply("sub", self, other)

    def __rsub__(self, other: object) -> Any:
        return apply("sub", other, self)

    def __mul__(self, other: object) -> Any:
        return apply("mul", self, other)

    def __rmul__(self, other: object) -> Any:
        return apply("mul", other, self)

    def __truediv__(self, other: object) -> Any:
        return apply("div", self, other)

    def __rtruediv__(self, other: object) -> Any:
        return apply("div", other, self)

    def __floordiv__(self, other: object) -> Any:
        return apply("floordiv", self, other)

    def __rfloordiv__(self, other: object) -> Any:
        return apply("floordiv", other, self)

    def __mod__(self, other: object) -> Any:
        return apply("mod", self, other)

    def __rmod__(self, other: object) -> Any:
        return apply("mod", other, self)

    def __pow__(self, other: object) -> Any:
        return power(self, other)

    def __rpow__(self, other: object) -> Any:
        return power(other, self)

    def __and__(self, other: object) -> Any:
        return apply("and", self, other)

    def __rand__(self, other: object) -> Any:
        return apply("and", other, self)

    def __or__(self, other: object) -> Any:
        return apply("or", self, other)

    def __ror__(self, other: object) -> Any:
        return apply("or", other, self)

    def __xor__(self, other: object) -> Any:
        return apply("xor", self, other)

    def __rxor__(self, other: object) -> Any:
        return apply("xor", other, self)

    def __lshift__(self, other: object) -> Any:
        return apply("shl", self, other)

    def __rlshift__(self, other: object) -> Any:
        return apply("shl", other, self)

    def __rshift__(self, other: object) -> Any:
        return apply("shr", self, other)

    def __rrshift__(self, other: object) -> Any:
        return apply("shr", other, self)

    def __neg__(self) -> Any:
        return apply("neg", self)

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return apply("abs", self)

    def __invert__(self) -> Any:
        return apply("not", self)

    def __lt__(self, other: object) -> Any:
        return apply("lt", self, other)

    def __le__(self, other: object) -> Any:
        return apply("le", self, other)

    def __gt__(self, other: object) -> Any:
        return apply("gt", self, other)

    def __ge__(self, other: object) -> Any:
        return apply("ge", self, other)

    def __eq__(self, other: object) -> Any:
        return apply("eq", self, other)

    def __ne__(self, other: object) -> Any:
        return apply("ne", self, other)

    def __hash__(self) -> int:
        return id(self) >> 4

    def __bool__(self) -> bool:
        raise no_truth_value()

    def __index__(self) -> int:
        raise definition_error(
            f"{self} is used where Python needs an integer (range, a list index, a slice), but its "
            "value is not known while the operator is traced; for a loop write tl.range, for an "
            "element index a tensor parameter"
        )

    def __int__(self) -> int:
        raise definition_error(f"int({self}) has no value while traced; write tl.cast(x, tl.i64)")

    def __float__(self) -> float:
        raise definition_error(
            f"{self} is used where Python needs a number (float(), the math module), but its value "
            "is not known while the operator is traced; use tl.cast, tl.exp, tl.sqrt, ..."
        )

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        """Trace NumPy's own functions, and ``np.float32(2) * x``, as tensorlang's."""
        name = _UFUNCS.get(ufunc.__name__, ufunc.__name__)
        if name not in FUNCTIONS or method != "__call__" or options:
            raise definition_error(f"np.{ufunc.__name__} cannot be traced; use tensorlang's own")
        return power(*inputs) if name == "pow" else apply(name, *inputs)


_UFUNCS = {
    "subtract": "sub", "multiply": "mul", "divide": "div", "true_divide": "div",
    "floor_divide": "floordiv", "remainder": "mod", "negative": "neg", "power": "pow",
    "bitwise_and": "and", "bitwise_or": "or", "bitwise_xor": "xor", "invert": "not",
    "left_shift": "shl", "right_shift": "shr", "less": "lt", "less_equal": "le",
    "greater": "gt", "greater_equal": "ge", "equal": "eq", "not_equal": "ne",
    "absolute": "abs", "rint": "round", "arcsin": "asin", "arccos": "acos", "arctan": "atan",
    "arctan2": "atan2", "bitwise_count": "popcount",
}  # fmt: skip


class Index(Expression):
    """A quasi-affine form over axes and sizes; iterable when it depends on sizes alone."""

    __slots__ = ("affine",)

    def __init__(self, index: forms.AffineLike) -> None:
        self.affine: Affine = forms.affine(index)

    def as_value(self) -> Value:
        """Return the index as an i64 that adapts to floats."""
        return Value(IndexValue(self.affine, i64), i64, weak=True)

    @property
    def dtype(self) -> DType:
        """The dtype of an index that is used as a value: i64."""
        return i64

    def __hash__(self) -> int:
        return hash(self.affine)

    def __index__(self) -> int:
        if self.affine.is_constant:
            return self.affine.constant
        return super().__index__()

    __int__ = __index__

    def __iter__(self) -> Iterator[Any]:
        from tensorlang.lang.axes import iterate_extent

        return iterate_extent(self.affine, sys._getframe(1))  # pyright: ignore

    def __repr__(self) -> str:
        _name_axes()
        return str(self.affine)


class Value(Expression):
    """A value expression; ``weak`` if it is made of axes, sizes and literals alone.

    ``truth`` is the answer to a comparison of sizes as Python sees it (see ``compare_indices``).
    """

    __slots__ = ("_expr", "dtype", "truth", "weak")

    def __init__(
        self, expr: Expr | None, dtype: DType, weak: bool = False, truth: bool | None = None
    ) -> None:
        self._expr = expr
        self.dtype = dtype
        self.weak = weak
        self.truth = truth

    @property
    def expr(self) -> Expr:
        """The IR expression, of dtype ``evaluation_dtype(dtype)``."""
        assert self._expr is not None
        return self._expr

    @property
    def loads(self) -> tuple[Load, ...]:
        """The loads in the expression; none for a reduction that has no stage yet."""
        return () if self._expr is None else loads_of(self._expr)

    def as_value(self) -> Value:
        """Return the value itself."""
        return self

    @property
    def shape(self) -> tuple[()]:
        """A value has no axes."""
        return ()

    def __bool__(self) -> bool:
        if self.truth is None:
            raise no_truth_value()
        return self.truth

    __hash__ = Expression.__hash__

    def __repr__(self) -> str:
        _name_axes()
        return format_expr(self.expr)


def _name_axes() -> None:
    """Give axes the names of their loop variables, before they are shown in a message."""
    from tensorlang.lang.trace import active

    trace = active()
    if trace is not None:
        trace.name_open_axes()


# --- application -----------------------------------------------------------------------------


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


# --- conversion ------------------------------------------------------------------------------


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


Combine: TypeAlias = Callable[..., Any]
