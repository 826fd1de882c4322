"""Python's operators on what is traced: each makes a larger expression.

Input:  ``a + b`` in the user's code        Output: ``apply("add", a, b)``

Everything that an operator's body computes with is an ``Expression``: indices, values, tensors
without axes. What has no meaning while the value is unknown (``if``, ``int()``, ``math.exp``) is
refused here, with the cure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorlang.ir.functions import FUNCTIONS
from tensorlang.lang.mistakes import definition_error, no_integer, no_truth_value

if TYPE_CHECKING:
    from tensorlang.lang.values import Value


def apply(function: str, *operands: object) -> Any:
    """Return a function applied to operands (the work is done in ``application``)."""
    from tensorlang.lang import application

    return application.apply(function, *operands)


def power(base: object, exponent: object) -> Any:
    """Return ``base ** exponent``."""
    from tensorlang.lang import application

    return application.power(base, exponent)


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

    def __round__(self, digits: int | None = None) -> Any:
        if digits is not None:
            raise definition_error(
                f"round({self}, {digits}) keeps decimal digits; write tl.round(x * scale) / scale"
            )
        return apply("round", self)

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
        raise no_integer(str(self))

    def __int__(self) -> int:
        raise definition_error(f"int({self}) has no value while traced; write tl.cast(x, tl.i64)")

    def __float__(self) -> float:
        raise definition_error(
            f"{self} is used where Python needs a number (float(), the math module), but its value "
            "is not known while the operator is traced; use tl.cast, tl.exp, tl.sqrt, ..."
        )

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Say what to write instead of a method that arrays have elsewhere."""
            if name in _METHODS:
                raise AttributeError(f"{self} has no {name}; write {_METHODS[name]}")
            kind = type(self).__name__
            raise AttributeError(f"{kind!r} object has no attribute {name!r}", name=name, obj=self)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        """Trace NumPy's own functions, and ``np.float32(2) * x``, as tensorlang's."""
        name = _UFUNCS.get(ufunc.__name__, ufunc.__name__)
        if name not in FUNCTIONS or method != "__call__" or options:
            raise definition_error(_untraceable(ufunc.__name__, method))
        return power(*inputs) if name == "pow" else apply(name, *inputs)


_METHODS = {
    "T": "tl.tensor(x[i, j] for j in N for i in M)",
    "transpose": "tl.tensor(x[i, j] for j in N for i in M)",
    "reshape": "tl.tensor(x[i // N, i % N] for i in M * N)",
    "astype": "tl.cast(x[i], tl.f32)",
    "sum": "tl.sum(x[i, j] for j in N)",
    "prod": "tl.prod(x[i, j] for j in N)",
    "max": "tl.max(x[i, j] for j in N)",
    "min": "tl.min(x[i, j] for j in N)",
    "argmax": "tl.argmax(x[i, j] for j in N)",
    "argmin": "tl.argmin(x[i, j] for j in N)",
    "mean": "tl.sum(x[i, j] for j in N) / N",
    "dot": "tl.sum(a[i, k] * b[k, j] for k in K)",
    "exp": "tl.exp(x[i])",
}
"""What people who know NumPy or PyTorch look for, and what it is here."""


def _untraceable(ufunc: str, method: str) -> str:
    reduction = _REDUCTIONS.get(ufunc) if method == "reduce" else None
    if reduction is not None:
        return f"NumPy cannot reduce what is traced; write tl.{reduction}(x[i] for i in N)"
    called = ufunc if method == "__call__" else f"{ufunc}.{method}"
    return f"np.{called} cannot be traced; use tensorlang's own functions"


_REDUCTIONS = {
    "add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min",
    "logical_and": "all", "logical_or": "any",
}  # fmt: skip

_UFUNCS = {
    "subtract": "sub", "multiply": "mul", "divide": "div", "true_divide": "div",
    "floor_divide": "floordiv", "remainder": "mod", "negative": "neg", "power": "pow",
    "bitwise_and": "and", "bitwise_or": "or", "bitwise_xor": "xor", "invert": "not",
    "left_shift": "shl", "right_shift": "shr", "less": "lt", "less_equal": "le",
    "greater": "gt", "greater_equal": "ge", "equal": "eq", "not_equal": "ne",
    "absolute": "abs", "rint": "round", "arcsin": "asin", "arccos": "acos", "arctan": "atan",
    "arctan2": "atan2", "bitwise_count": "popcount",
}  # fmt: skip
