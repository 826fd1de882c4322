"""Every function of the expression language as instructions, by one table.

Input:  ``emit_function("floordiv", [a, b], i32, options)``
Output: a guarded ``sdiv`` with its correction toward minus infinity

What each function means is settled in the language's semantics: integers wrap, ``x // 0 = 0``,
over-wide shifts give 0 (or the sign), ``minimum`` and ``maximum`` propagate NaN. Nothing here can
trap, in any lane, whatever the operands are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from tensorlang.backends.llvm import maths
from tensorlang.backends.llvm.builder import Builder
from tensorlang.backends.llvm.maths.division import divide_by_one
from tensorlang.backends.llvm.maths.scaling import REGISTER_BITS
from tensorlang.backends.llvm.types import Value, constant, vector
from tensorlang.dtypes import DType, evaluation_dtype


@dataclass(frozen=True, slots=True)
class Operands:
    """The operands of a call, with one number of lanes, and the dtype that they share."""

    builder: Builder
    values: tuple[Value, ...]
    dtype: DType
    native_extrema: bool

    @property
    def is_float(self) -> bool:
        """Whether the operands are floats."""
        return self.dtype.kind == "float"

    @property
    def signed(self) -> bool:
        """Whether integer operands have a sign."""
        return self.dtype.kind == "int"

    def literal(self, value: float) -> Value:
        """Return a constant of the operands' type."""
        return constant(value, self.values[0].type)


Emit: TypeAlias = Callable[[Operands], Value]


def emit_function(
    builder: Builder, name: str, args: list[Value], dtype: DType, native_extrema: bool = False
) -> Value:
    """Return the call of a function on operands of ``dtype``, in registers.

    ``native_extrema`` says that the machine has NaN-propagating minimum and maximum.
    """
    if name == "div" and builder.scales and _is_one_for_all(*args):
        return divide_by_one(builder, *args)
    values = tuple(builder.unify(*args)) if len(args) > 1 else tuple(args)
    operands = Operands(builder, values, evaluation_dtype(dtype), native_extrema)
    return _TABLE[name](operands)


def _is_one_for_all(dividend: Value, divisor: Value) -> bool:
    """Tell whether whole registers of floats are divided by one number, known at run time."""
    registers = dividend.type.bits * dividend.type.lanes >= REGISTER_BITS
    return (
        registers and dividend.type.is_float and divisor.type.lanes == 1 and not divisor.is_constant
    )


def known_functions() -> frozenset[str]:
    """Return the names that :func:`emit_function` accepts."""
    return frozenset(_TABLE)


# --- the four operations -------------------------------------------------------------------------


def _binary(method: str) -> Emit:
    def emit(o: Operands) -> Value:
        return getattr(o.builder, method)(*o.values)

    return emit


def _intrinsic(name: str) -> Emit:
    return lambda o: o.builder.intrinsic(name, *o.values)


def _negate(o: Operands) -> Value:
    return o.builder.negate(o.values[0])


def _safe_divisor(o: Operands) -> tuple[Value, Value]:
    """Return a divisor that cannot trap, and where the given one is 0.

    It is 1 also for the least integer divided by -1, whose quotient wraps to itself.
    """
    builder, (left, right) = o.builder, o.values
    is_zero = builder.compare("eq", right, o.literal(0))
    unsafe = is_zero
    if o.signed:
        lowest = builder.compare("eq", left, o.literal(-(2 ** (o.dtype.bits - 1))))
        minus_one = builder.compare("eq", right, o.literal(-1))
        unsafe = builder.binary("or", unsafe, builder.binary("and", lowest, minus_one))
    return builder.select(unsafe, o.literal(1), right), is_zero


def _floor_divide(o: Operands) -> Value:
    if o.is_float:
        return _float_floor_divide(o)[0]
    builder, left = o.builder, o.values[0]
    divisor, is_zero = _safe_divisor(o)
    if not o.signed:
        quotient = builder.binary("udiv", left, divisor)
        return builder.select(is_zero, o.literal(0), quotient)
    quotient = builder.binary("sdiv", left, divisor)
    wrong = _has_wrong_sign(o, builder.binary("srem", left, divisor), divisor)
    quotient = builder.add(quotient, builder.convert("sext", wrong, quotient.type.element))
    return builder.select(is_zero, o.literal(0), quotient)


def _modulo(o: Operands) -> Value:
    if o.is_float:
        return _float_floor_divide(o)[1]
    builder, left = o.builder, o.values[0]
    divisor, _ = _safe_divisor(o)  # x % 1 = 0 is what x % 0 is
    if not o.signed:
        return builder.binary("urem", left, divisor)
    remainder = builder.binary("srem", left, divisor)
    wrong = _has_wrong_sign(o, remainder, divisor)
    return builder.select(wrong, builder.add(remainder, divisor), remainder)


def _has_wrong_sign(o: Operands, remainder: Value, divisor: Value) -> Value:
    """Whether a remainder of C's division must move to the divisor's sign."""
    builder = o.builder
    differs = builder.compare("lt", builder.binary("xor", remainder, divisor), o.literal(0))
    return builder.binary("and", builder.compare("ne", remainder, o.literal(0)), differs)


def _float_floor_divide(o: Operands) -> tuple[Value, Value]:
    """Return Python's ``divmod``: ``fmod`` first, so that 1 // 0.1 is 9.

    ``fmod`` is the C library's, one call a lane: exact remainders of floats have no short form.
    """
    builder, (left, right) = o.builder, o.values
    zero = o.literal(0.0)
    with builder.exact():
        remainder = builder.binary("frem", left, right)
        quotient = builder.divide(builder.subtract(left, remainder), right)
        nonzero = builder.compare("ne", remainder, zero)
        negative = builder.compare("lt", remainder, zero)
        differs = builder.binary("xor", negative, builder.compare("lt", right, zero))
        wrong = builder.binary("and", nonzero, differs)
        remainder = builder.select(wrong, builder.add(remainder, right), remainder)
        signed_zero = builder.intrinsic("copysign", zero, right)
        nonzero = builder.compare("ne", remainder, zero)
        nonzero = builder.binary("or", nonzero, builder.is_nan(remainder))
        remainder = builder.select(nonzero, remainder, signed_zero)
        adjusted = builder.subtract(quotient, o.literal(1.0))
        quotient = builder.select(wrong, adjusted, quotient)
        floor = maths.FUNCTIONS["floor"](builder, quotient)
        above = builder.compare("gt", builder.subtract(quotient, floor), o.literal(0.5))
        floor = builder.select(above, builder.add(floor, o.literal(1.0)), floor)
        exact = builder.divide(left, right)
        signed_zero = builder.intrinsic("copysign", zero, exact)
        floor = builder.select(builder.compare("eq", quotient, zero), signed_zero, floor)
        by_zero = builder.compare("eq", right, zero)
        return builder.select(by_zero, exact, floor), builder.select(
            by_zero, o.literal(float("nan")), remainder
        )


# --- order ---------------------------------------------------------------------------------------


def _extremum(predicate: str, integer: str, bitwise: str, native: str) -> Emit:
    def emit(o: Operands) -> Value:
        builder, (left, right) = o.builder, o.values
        if o.dtype.kind == "bool":
            return builder.binary(bitwise, left, right)
        if not o.is_float:
            return builder.intrinsic(f"{'s' if o.signed else 'u'}{integer}", left, right)
        if o.native_extrema:
            return builder.intrinsic(native, left, right)
        # One instruction on x86, which gives ``right`` if either is NaN; then left's own NaN.
        result = builder.select(builder.compare(predicate, left, right), left, right)
        if "reassoc" in builder.flags:
            return result
        return builder.select(builder.is_nan(left), left, builder.freeze(result))

    return emit


def _comparison(predicate: str) -> Emit:
    return lambda o: o.builder.compare(predicate, *o.values, signed=o.signed)


def _is_nan(o: Operands) -> Value:
    if not o.is_float:
        return constant(False, vector("i1", o.values[0].type.lanes))
    return o.builder.is_nan(o.values[0])


def _is_infinite(o: Operands) -> Value:
    if not o.is_float:
        return constant(False, vector("i1", o.values[0].type.lanes))
    magnitude = o.builder.intrinsic("fabs", o.values[0])
    return o.builder.compare("eq", magnitude, o.literal(float("inf")))


def _absolute(o: Operands) -> Value:
    if o.is_float:
        return o.builder.intrinsic("fabs", o.values[0])
    if not o.signed:
        return o.values[0]
    value = o.values[0]
    negative = o.builder.compare("lt", value, o.literal(0))
    return o.builder.select(negative, o.builder.negate(value), value)


def _sign(o: Operands) -> Value:
    builder, value = o.builder, o.values[0]
    zero, one = o.literal(0), o.literal(1)
    positive = builder.compare("gt", value, zero, signed=o.signed)
    if not o.is_float and not o.signed:
        return builder.select(positive, one, zero)
    negative = builder.compare("lt", value, zero)
    result = builder.select(positive, one, builder.select(negative, o.literal(-1), zero))
    return builder.select(builder.is_nan(value), value, result) if o.is_float else result


# --- bits ----------------------------------------------------------------------------------------


def _bitwise(operation: str) -> Emit:
    return lambda o: o.builder.binary(operation, *o.values)


def _invert(o: Operands) -> Value:
    ones = o.literal(True) if o.dtype.kind == "bool" else o.literal(-1)
    return o.builder.binary("xor", o.values[0], ones)


def _shift_left(o: Operands) -> Value:
    builder, (value, amount) = o.builder, o.values
    fits = builder.compare("lt", amount, o.literal(o.dtype.bits), signed=False)
    shifted = builder.binary("shl", value, builder.select(fits, amount, o.literal(0)))
    return builder.select(fits, shifted, o.literal(0))


def _shift_right(o: Operands) -> Value:
    builder, (value, amount) = o.builder, o.values
    fits = builder.compare("lt", amount, o.literal(o.dtype.bits), signed=False)
    if o.signed:  # over-wide shifts leave the sign
        widest = o.literal(o.dtype.bits - 1)
        return builder.binary("ashr", value, builder.select(fits, amount, widest))
    shifted = builder.binary("lshr", value, builder.select(fits, amount, o.literal(0)))
    return builder.select(fits, shifted, o.literal(0))


def _popcount(o: Operands) -> Value:
    return o.builder.intrinsic("ctpop", o.values[0])


# --- floats --------------------------------------------------------------------------------------


def _reciprocal_square_root(o: Operands) -> Value:
    builder = o.builder
    return builder.divide(o.literal(1.0), builder.intrinsic("sqrt", o.values[0]))


def _maths(name: str) -> Emit:
    def emit(o: Operands) -> Value:
        with o.builder.exact():
            return maths.FUNCTIONS[name](o.builder, *o.values)

    return emit


def _power(o: Operands) -> Value:
    if o.is_float:
        return _maths("pow")(o)
    return _integer_power(o)


def _integer_power(o: Operands) -> Value:
    """Square and multiply over every bit of the exponent, which wraps as multiplication does.

    A negative exponent gives the exact value truncated: units stay, all else is 0.
    """
    builder, (base, exponent) = o.builder, o.values
    one, zero = o.literal(1), o.literal(0)
    result, square = one, base
    for bit in range(o.dtype.bits - (1 if o.signed else 0)):
        chosen = builder.binary("and", exponent, o.literal(1 << bit))
        factor = builder.select(builder.compare("ne", chosen, zero), square, one)
        result = builder.multiply(result, factor)
        square = builder.multiply(square, square)
    if not o.signed:
        return result
    odd = builder.compare("ne", builder.binary("and", exponent, one), zero)
    unit = builder.select(odd, base, one)
    is_unit = builder.binary(
        "or",
        builder.compare("eq", base, one),
        builder.compare("eq", base, o.literal(-1)),
    )
    inverse = builder.select(is_unit, unit, zero)
    return builder.select(builder.compare("lt", exponent, zero), inverse, result)


_TABLE: dict[str, Emit] = {
    "add": _binary("add"),
    "sub": _binary("subtract"),
    "mul": _binary("multiply"),
    "div": _binary("divide"),
    "floordiv": _floor_divide,
    "mod": _modulo,
    "neg": _negate,
    "pow": _power,
    "minimum": _extremum("lt", "min", "and", "minimum"),
    "maximum": _extremum("gt", "max", "or", "maximum"),
    "and": _bitwise("and"),
    "or": _bitwise("or"),
    "xor": _bitwise("xor"),
    "not": _invert,
    "shl": _shift_left,
    "shr": _shift_right,
    **{name: _comparison(name) for name in ("lt", "le", "gt", "ge", "eq", "ne")},
    "isnan": _is_nan,
    "isinf": _is_infinite,
    "abs": _absolute,
    "sign": _sign,
    "sqrt": _intrinsic("sqrt"),
    "rsqrt": _reciprocal_square_root,
    "popcount": _popcount,
    **{name: _maths(name) for name in maths.FUNCTIONS if name != "pow"},
}
