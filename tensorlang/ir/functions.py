"""The functions that a ``Call`` may name: arity, operands, result, and how they print.

One table serves tracing (promotion, error messages), the printer, the interpreter and the
backends; a test asserts that each of them knows every name in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Operands = Literal["number", "integer", "float", "bits", "any"]
"""What is accepted: numbers (no bool), integers, floats, integers and bool, anything."""

Result = Literal["same", "bool"]


@dataclass(frozen=True, slots=True)
class Function:
    """A row of the table. All operands of a call have one dtype; ``result`` derives from it."""

    name: str
    arity: int
    operands: Operands
    result: Result = "same"
    symbol: str = ""
    summary: str = ""


_ROWS = (
    Function("add", 2, "number", symbol="+"),
    Function("sub", 2, "number", symbol="-"),
    Function("mul", 2, "number", symbol="*"),
    Function("div", 2, "float", symbol="/"),
    Function(
        "floordiv", 2, "number", symbol="//", summary="floor division; x // 0 = 0 for integers"
    ),
    Function(
        "mod", 2, "number", symbol="%", summary="remainder with the divisor's sign; x % 0 = 0"
    ),
    Function("neg", 1, "number", symbol="-"),
    Function("pow", 2, "number", symbol="**"),
    Function("fma", 3, "float", summary="a * b + c, rounded once"),
    Function("minimum", 2, "any", summary="the lesser; NaN if either is NaN"),
    Function("maximum", 2, "any", summary="the greater; NaN if either is NaN"),
    Function("and", 2, "bits", symbol="&"),
    Function("or", 2, "bits", symbol="|"),
    Function("xor", 2, "bits", symbol="^"),
    Function("not", 1, "bits", symbol="~"),
    Function("shl", 2, "integer", symbol="<<", summary="0 when the shift is as wide as the type"),
    Function("shr", 2, "integer", symbol=">>", summary="arithmetic for signed types"),
    Function("lt", 2, "any", "bool", "<"),
    Function("le", 2, "any", "bool", "<="),
    Function("gt", 2, "any", "bool", ">"),
    Function("ge", 2, "any", "bool", ">="),
    Function("eq", 2, "any", "bool", "=="),
    Function("ne", 2, "any", "bool", "!="),
    Function("isnan", 1, "number", "bool"),
    Function("isinf", 1, "number", "bool"),
    Function("abs", 1, "number"),
    Function("sign", 1, "number", summary="-1, 0 or 1; NaN stays NaN"),
    Function("floor", 1, "float"),
    Function("ceil", 1, "float"),
    Function("round", 1, "float", summary="to the nearest integer, ties to even"),
    Function("trunc", 1, "float"),
    Function("sqrt", 1, "float"),
    Function("rsqrt", 1, "float", summary="1 / sqrt(x)"),
    Function("exp", 1, "float"),
    Function("exp2", 1, "float"),
    Function("expm1", 1, "float"),
    Function("log", 1, "float"),
    Function("log2", 1, "float"),
    Function("log1p", 1, "float"),
    Function("sin", 1, "float"),
    Function("cos", 1, "float"),
    Function("tan", 1, "float"),
    Function("asin", 1, "float"),
    Function("acos", 1, "float"),
    Function("atan", 1, "float"),
    Function("atan2", 2, "float"),
    Function("sinh", 1, "float"),
    Function("cosh", 1, "float"),
    Function("tanh", 1, "float"),
    Function("erf", 1, "float"),
    Function("sigmoid", 1, "float", summary="1 / (1 + exp(-x))"),
    Function("popcount", 1, "integer", summary="how many bits are set"),
)

ANYWHERE = "anywhere"
"""The name of the call that stands for every position at once, in the loads of a routine."""

FUNCTIONS: dict[str, Function] = {function.name: function for function in _ROWS}

PRECEDENCE: dict[str, int] = {
    "or": 2, "xor": 3, "and": 4,
    "lt": 1, "le": 1, "gt": 1, "ge": 1, "eq": 1, "ne": 1,
    "shl": 5, "shr": 5, "add": 6, "sub": 6,
    "mul": 7, "div": 7, "floordiv": 7, "mod": 7,
    "neg": 8, "not": 8, "pow": 9,
}  # fmt: skip
"""How tightly the functions with a symbol bind when printed, as in Python."""
