"""What a generated expression is: its text, and how far two right evaluations of it may differ.

Input:  ``x`` (f32, at most 4, whole numbers) and ``tl.sin(x)``
Output: ``Value("tl.sin(x)", "f32", bound=1, error=2.4e-07, step=0)``

A float is *exact* while all its values are multiples of ``step`` that fit into the significand:
then every order of evaluation gives the same bits, and results are compared for equality. Otherwise
``error`` bounds the difference, so that a sum that cancels is not taken for a wrong one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

FLOATS = ("f32", "f64", "f16", "bf16")
HALVES = ("f16", "bf16")
UNSIGNED = ("u8", "u16", "u32", "u64")
INTEGERS = ("i32", "i64", "i8", "i16", *UNSIGNED)
UNIT = {"f32": 2.0**-24, "f64": 2.0**-53, "f16": 2.0**-11, "bf16": 2.0**-8}
LARGEST = {name: 2.0 ** (int(name[1:]) - (name[0] == "i")) for name in INTEGERS}


@dataclass(frozen=True)
class Value:
    """An expression of the language, as text; ``bound`` limits its absolute value."""

    text: str
    dtype: str
    bound: float = 1.0
    error: float = 0.0
    step: float = 1.0

    @property
    def is_exact(self) -> bool:
        return self.error == 0

    @property
    def is_float(self) -> bool:
        return self.dtype in FLOATS


def rounded(text: str, dtype: str, bound: float, error: float, step: float) -> Value:
    """Return the value of one operation, rounded to ``dtype`` if it does not fit."""
    if dtype not in FLOATS:
        wraps = dtype in INTEGERS and bound >= LARGEST[dtype]
        return Value(text, dtype, LARGEST[dtype] if wraps else bound, 0.0, 1.0)
    unit = UNIT[dtype]
    if error == 0 and step and bound / step < 1 / (4 * unit):
        return Value(text, dtype, bound, 0.0, step)
    return Value(text, dtype, bound, error + 2 * unit * bound, 0.0)


def add(a: Value, b: Value, sign: str = "+") -> Value:
    text = f"({a.text} {sign} {b.text})"
    if sign == "-" and a.dtype in UNSIGNED:
        return Value(text, a.dtype, LARGEST[a.dtype])
    return rounded(text, a.dtype, a.bound + b.bound, a.error + b.error, min(a.step, b.step))


def multiply(a: Value, b: Value) -> Value:
    error = a.error * b.bound + b.error * a.bound
    return rounded(f"({a.text} * {b.text})", a.dtype, a.bound * b.bound, error, a.step * b.step)


def smooth(text: str, x: Value, bound: float, slope: float = 1.0, operations: float = 4.0) -> Value:
    """Return a function of ``x`` with a known greatest slope, off by a few roundings."""
    error = slope * x.error + operations * 2 * UNIT[x.dtype] * bound
    return Value(text, x.dtype, bound, error, 0.0)


def either(text: str, a: Value, b: Value) -> Value:
    """Return what is one of two values (a minimum, a choice)."""
    step = min(a.step, b.step)
    return Value(text, a.dtype, max(a.bound, b.bound), max(a.error, b.error), step)


def clipped(x: Value, bound: int) -> Value:
    text = f"tl.clip({x.text}, {-bound}, {bound})"
    return replace(x, text=text, bound=min(x.bound, float(bound)))
