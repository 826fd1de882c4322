"""Random expressions over loads, constants and axes.

Input:  ways to load something of each dtype
Output: ``tl.where((x[i] > 0), (x[i] * 2), tl.sin(y[i, j]))``

Functions that jump (comparisons, floor, casts to integers, argmax) are only applied to exact
values, so that rounding never decides a branch.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from tests.fuzz.values import (
    FLOATS,
    HALVES,
    INTEGERS,
    LARGEST,
    UNSIGNED,
    Value,
    add,
    clipped,
    either,
    multiply,
    rounded,
    smooth,
)

Load = Callable[[str], Value]
"""Returns something of a dtype to start from: a load, a scalar, an axis, a constant."""

FLOAT_LIMIT = {"f32": 1000.0, "f64": 1000.0, "f16": 60.0, "bf16": 60.0}
DTYPES = (
    *["f32", "f64", "i32", "i64"] * 3, "f16", "bf16", "i8", "i16", "u8", "u16", "u32", "u64"
)  # fmt: skip
"""The dtypes of numbers, the usual ones more often."""


def expression(random: Random, load: Load, dtype: str, depth: int) -> Value:
    if depth <= 0:
        return load(dtype)
    if dtype == "bool":
        return _bool(random, load, depth)
    if random.random() < 0.15:
        condition = expression(random, load, "bool", depth - 1)
        a, b = (expression(random, load, dtype, depth - 1) for _ in range(2))
        return either(f"tl.where({condition.text}, {a.text}, {b.text})", a, b)
    if random.random() < 0.1:
        return convert(random, expression(random, load, _other(random, dtype), depth - 1), dtype)
    found = (
        _float(random, load, dtype, depth)
        if dtype in FLOATS
        else _integer(random, load, dtype, depth)
    )
    if dtype in FLOATS and found.bound > FLOAT_LIMIT[dtype]:
        return clipped(found, 8)
    return found


def exact(random: Random, load: Load, dtype: str, depth: int) -> Value:
    """Return an expression that every evaluation gives the same bits for."""
    for _ in range(4):
        found = expression(random, load, dtype, depth)
        if found.is_exact:
            return found
    for _ in range(20):
        found = load(dtype)
        if found.is_exact:
            return found
    return literal(random, dtype)


def literal(random: Random, dtype: str) -> Value:
    if dtype == "bool":
        condition = random.choice(["tl.cast(1, tl.bool)", "tl.cast(0, tl.bool)"])
        return Value(condition, dtype)
    number = random.choice([-3, -2, -1, 0, 1, 2, 3, 7])
    number = abs(number) if dtype in UNSIGNED else number
    text = f"tl.cast({number}, tl.{dtype})"
    return Value(text, dtype, float(max(abs(number), 1)))


def convert(random: Random, x: Value, dtype: str) -> Value:
    """Return ``x`` in another dtype, in a way that cannot lose its error bound."""
    if x.dtype == dtype:
        return x
    if dtype == "bool":
        return Value(f"({x.text} > 0)", dtype) if x.is_exact else literal(random, dtype)
    if x.dtype == "bool":
        return Value(f"tl.cast({x.text}, tl.{dtype})", dtype)
    if x.is_float and dtype in INTEGERS:
        if not x.is_exact:
            return literal(random, dtype)
        bound = LARGEST[dtype] if dtype in UNSIGNED else min(max(x.bound, 1.0), LARGEST[dtype])
        return Value(f"tl.cast({x.text}, tl.{dtype})", dtype, bound)
    if dtype in FLOATS and x.dtype in INTEGERS and x.bound > FLOAT_LIMIT[dtype]:
        x = Value(f"({x.text} % 7)", x.dtype, 7.0)
    if dtype in HALVES and x.bound > FLOAT_LIMIT[dtype]:
        x = clipped(x, 8)
    if dtype in INTEGERS and (
        x.bound >= LARGEST[dtype] or (dtype in UNSIGNED and x.dtype not in UNSIGNED)
    ):
        return Value(f"tl.cast({x.text}, tl.{dtype})", dtype, LARGEST[dtype])
    return rounded(f"tl.cast({x.text}, tl.{dtype})", dtype, x.bound, x.error, x.step)


def _other(random: Random, dtype: str) -> str:
    return random.choice([d for d in (*DTYPES, "bool", "bool") if d != dtype])


def _float(random: Random, load: Load, dtype: str, depth: int) -> Value:
    x = expression(random, load, dtype, depth - 1)
    match random.choice(
        ["add", "sub", "mul", "div", "extreme", "clip", "smooth", "smooth", "jump"]
    ):
        case "add":
            return add(x, expression(random, load, dtype, depth - 1))
        case "sub":
            return add(x, expression(random, load, dtype, depth - 1), "-")
        case "mul":
            return multiply(x, expression(random, load, dtype, depth - 1))
        case "div":
            y = expression(random, load, dtype, depth - 1)
            text = f"({x.text} / (abs({y.text}) + 1))"
            error = x.error + x.bound * y.error
            return smooth(text, Value("", dtype, x.bound, error), x.bound)
        case "extreme":
            y = expression(random, load, dtype, depth - 1)
            name = random.choice(["minimum", "maximum"])
            return either(f"tl.{name}({x.text}, {y.text})", x, y)
        case "clip":
            return clipped(x, random.choice([1, 2, 5]))
        case "smooth":
            return _smooth(random, x)
        case _:
            x = exact(random, load, dtype, depth - 1)
            text, bound = random.choice(
                [
                    (f"tl.floor({x.text} / 2)", x.bound + 1),
                    (f"tl.ceil({x.text} / 2)", x.bound + 1),
                    (f"tl.round({x.text} / 2)", x.bound + 1),
                    (f"tl.trunc({x.text} / 4)", x.bound + 1),
                    (f"tl.sign({x.text})", 1.0),
                    (f"({x.text} // 3)", x.bound + 1),
                    (f"({x.text} % 3)", 3.0),
                    (f"(-{x.text})", x.bound),
                    (f"abs({x.text})", x.bound),
                ]
            )
            step = x.step if "%" in text or "abs" in text or "(-" in text else 1.0
            return Value(text, dtype, bound, 0.0, min(step, 1.0))


def _smooth(random: Random, x: Value) -> Value:
    t, b = x.text, x.bound
    table = [
        (f"tl.sin({t})", 1.0, 1.0),
        (f"tl.cos({t})", 1.0, 1.0),
        (f"tl.tanh({t})", 1.0, 1.0),
        (f"tl.atan({t})", 1.6, 1.0),
        (f"tl.atan2({t}, 2)", 1.6, 1.0),
        (f"tl.sigmoid({t})", 1.0, 1.0),
        (f"tl.erf({t})", 1.0, 1.2),
        (f"tl.exp(tl.minimum({t}, 1))", 2.8, 2.8),
        (f"tl.exp2(tl.minimum({t}, 1))", 2.0, 2.0),
        (f"tl.expm1(tl.minimum({t}, 1))", 2.0, 2.8),
        (f"tl.log(abs({t}) + 1)", b + 1, 1.0),
        (f"tl.log2(abs({t}) + 1)", 2 * b + 1, 1.5),
        (f"tl.log1p(abs({t}))", b + 1, 1.0),
        (f"tl.sqrt(abs({t}) + 1)", b + 1, 0.5),
        (f"tl.rsqrt(abs({t}) + 1)", 1.0, 0.5),
        (f"tl.sinh(tl.clip({t}, -1, 1))", 1.2, 1.6),
        (f"tl.cosh(tl.clip({t}, -1, 1))", 1.6, 1.2),
        (f"tl.tan(tl.clip({t}, -1, 1))", 1.6, 3.5),
        (f"tl.asin(tl.clip({t}, -1, 1) / 2)", 0.6, 0.6),
        (f"tl.acos(tl.clip({t}, -1, 1) / 2)", 2.1, 0.6),
        (f"tl.pow(abs({t}) + 1, 0.5)", b + 1, 0.5),
        (f"tl.fma({t}, 0.5, 0.25)", b + 1, 0.5),
        (f"({t} * 0.3)", b, 0.3),
    ]
    text, bound, slope = random.choice(table)
    return smooth(text, x, bound, slope, operations=8.0)


def _integer(random: Random, load: Load, dtype: str, depth: int) -> Value:
    x = expression(random, load, dtype, depth - 1)
    wide = LARGEST[dtype]

    def again() -> Value:
        return expression(random, load, dtype, depth - 1)

    match random.choice(["add", "sub", "mul", "div", "mod", "bits", "shift", "extreme", "one"]):
        case "add":
            return add(x, again())
        case "sub":
            return add(x, again(), "-")
        case "mul":
            return multiply(x, again())
        case "div":
            numbers = [2, 3, 8] if dtype in UNSIGNED else [-3, -2, -1, 2, 3, 8]
            y = random.choice([str(random.choice(numbers)), again().text])
            return Value(f"({x.text} // {y})", dtype, min(x.bound + 1, wide))
        case "mod":
            y = random.choice(["3", "4", "7" if dtype in UNSIGNED else "-5", again().text])
            bound = 7.0 if y in ("3", "4", "-5", "7") else wide
            return Value(f"({x.text} % {y})", dtype, bound)
        case "bits":
            return Value(f"({x.text} {random.choice('&|^')} {again().text})", dtype, wide)
        case "shift":
            amount = random.choice(["1", "3", "7", f"({again().text} & 15)", again().text])
            return Value(f"({x.text} {random.choice(['<<', '>>'])} {amount})", dtype, wide)
        case "extreme":
            y = again()
            name = random.choice(["minimum", "maximum"])
            return either(f"tl.{name}({x.text}, {y.text})", x, y)
        case _:
            form = random.choice(["(-{})", "abs({})", "(~{})", "tl.sign({})", "tl.popcount({})"])
            if "popcount" in form:
                return Value(f"tl.cast(tl.popcount({x.text}), tl.{dtype})", dtype, 64.0)
            bound = wide if dtype in UNSIGNED else min(x.bound + 1, wide)
            return Value(form.format(x.text), dtype, bound)


def _bool(random: Random, load: Load, depth: int) -> Value:
    kind = random.choice(["compare", "compare", "logic", "not", "load", "nan"])
    if kind == "load":
        return load("bool")
    if kind == "not":
        return Value(f"(~{expression(random, load, 'bool', depth - 1).text})", "bool")
    if kind == "logic":
        a, b = (expression(random, load, "bool", depth - 1).text for _ in range(2))
        return Value(f"({a} {random.choice('&|^')} {b})", "bool")
    dtype = random.choice(DTYPES)
    a = exact(random, load, dtype, depth - 1)
    if kind == "nan" and a.is_float:
        return Value(f"tl.{random.choice(['isnan', 'isinf'])}({a.text})", "bool")
    b = exact(random, load, dtype, depth - 1)
    return Value(f"({a.text} {random.choice(['<', '<=', '>', '>=', '==', '!='])} {b.text})", "bool")
