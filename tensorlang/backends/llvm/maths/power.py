"""pow, as 2^(y log2 |x|) with the logarithm in two parts.

f32 computes in f64, where a logarithm and a short power of two have bits to spare. f64 needs 64
bits of the logarithm, for an exponent up to 1024 magnifies its error:

    log(m) = 2 s + s^3 (2/3 + s^2 Q(s^2)),   s = (m - 1) / (m + 1) and its square in pairs

Error in units of the last place, tested in f32 and f64: 1.8. Special cases as in C: pow(x, 0) =
pow(1, y) = 1 even for NaN, NaN for a negative x and a y that is no integer.
"""

from __future__ import annotations

from math import inf, log, nan

from tensorlang.backends.llvm.builder import Builder
from tensorlang.backends.llvm.maths.exponential import DOUBLE, raise_two, scale_by_any_power
from tensorlang.backends.llvm.maths.extended import (
    Pair,
    exact_product,
    exact_sum,
    ordered_sum,
    pair_product,
)
from tensorlang.backends.llvm.maths.logarithm import decompose, log_of_mantissa
from tensorlang.backends.llvm.maths.polynomial import polynomial
from tensorlang.backends.llvm.maths.rounding import emit_trunc
from tensorlang.backends.llvm.types import Value

_Q = (
    0.4000000000000226, 0.28571428570096796, 0.22222222520446172, 0.1818178431891333,
    0.15386759661633576, 0.13256761022182031, 0.13196876928979984,
)  # fmt: skip
_TWO_THIRDS = (2 / 3, float.fromhex("0x1.5555555555555p-55"))
_LOG2E = (1 / log(2), float.fromhex("0x1.777d0ffda0d24p-56"))


def emit_pow(builder: Builder, x: Value, y: Value) -> Value:
    """Return x to the power of y."""
    wide_x, wide_y = (builder.convert("fpext", value, "double") for value in (x, y))
    magnitude = builder.intrinsic("fabs", wide_x)
    if x.type.bits == 32:
        result = _positive_power_of_singles(builder, magnitude, wide_y)
    else:
        result = _positive_power(builder, magnitude, wide_y)
    result = _with_sign(builder, wide_x, wide_y, result)
    one = builder.constant(1.0, wide_x)
    is_one = builder.binary(
        "or",
        builder.compare("eq", wide_y, builder.constant(0.0, wide_y)),
        builder.compare("eq", wide_x, one),
    )
    result = builder.select(is_one, one, result)
    return result if x.type.bits == 64 else builder.convert("fptrunc", result, "float")


def _positive_power_of_singles(builder: Builder, x: Value, y: Value) -> Value:
    """Return x^y for x >= 0, both f32 in f64: 2^200 and 2^-200 are inf and 0 when rounded."""
    exponent, f = decompose(builder, x)
    logarithm = builder.multiply(log_of_mantissa(builder, f), builder.constant(_LOG2E[0], x))
    logarithm = _log2_with_limits(builder, x, builder.add(exponent, logarithm))
    product = _unless_unit(builder, x, y, builder.multiply(y, logarithm))
    bound = builder.constant(200.0, x)
    high = builder.select(builder.compare("lt", bound, product), bound, product)
    low = builder.constant(-200.0, x)
    inside = builder.select(builder.compare("lt", high, low), low, high)
    return raise_two(builder, inside, DOUBLE.exp2[:8])


def _unless_unit(builder: Builder, x: Value, y: Value, product: Value) -> Value:
    """Return 0 instead of NaN for y log2 x, where x is 1 and y infinite."""
    unit = builder.compare("eq", x, builder.constant(1.0, x))
    endless = builder.compare("eq", builder.intrinsic("fabs", y), builder.constant(inf, y))
    both = builder.binary("and", unit, endless)
    return builder.select(both, builder.constant(0.0, x), product)


def _log2_with_limits(builder: Builder, x: Value, logarithm: Value) -> Value:
    """Return a logarithm that holds for finite x > 0, with -inf, inf and NaN for the others."""
    zero, infinity = builder.constant(0.0, x), builder.constant(inf, x)
    is_zero = builder.compare("eq", x, zero)
    logarithm = builder.select(is_zero, builder.constant(-inf, x), logarithm)
    return builder.select(builder.compare("lt", x, infinity), logarithm, x)


def _positive_power(builder: Builder, x: Value, y: Value) -> Value:
    """Return x^y for x >= 0, both f64."""
    logarithm = _log2(builder, x)
    zero, infinity = builder.constant(0.0, x), builder.constant(inf, x)
    y = _unless_unit(builder, x, y, y)
    # log2 of 0 and inf, and an infinite y, need no second part.
    estimate = builder.multiply(y, logarithm[0])
    high, low = exact_product(builder, y, logarithm[0])
    low = builder.multiply_add(y, logarithm[1], low)
    bound = builder.constant(1100.0, x)
    ordinary = builder.compare("lt", builder.intrinsic("fabs", estimate), bound)
    high = builder.select(ordinary, high, zero)
    low = builder.select(ordinary, low, zero)
    result = _raise_two(builder, high, low)
    total = builder.select(ordinary, builder.add(high, low), estimate)
    below = builder.compare("le", total, builder.constant(-1075.0, x))
    result = builder.select(below, zero, result)
    above = builder.compare("ge", total, builder.constant(1024.0, x))
    result = builder.select(above, infinity, result)
    return builder.select(builder.is_nan(estimate), estimate, result)


def _log2(builder: Builder, x: Value) -> Pair:
    """Return log2 x as a pair for finite x > 0, and -inf, inf or NaN in the first part."""
    exponent, f = decompose(builder, x)
    two = builder.constant(2.0, x)
    below, below_low = ordered_sum(builder, two, f)
    reciprocal = builder.divide(builder.constant(1.0, x), below)
    s = builder.multiply(f, reciprocal)
    product, product_low = exact_product(builder, s, below)
    rest = builder.subtract(builder.subtract(f, product), product_low)
    rest = builder.subtract(rest, builder.multiply(s, below_low))
    pair = s, builder.multiply(rest, reciprocal)
    square = pair_product(builder, pair, pair)
    tail = builder.multiply(square[0], polynomial(builder, square[0], _Q))
    third, third_low = ordered_sum(builder, builder.constant(_TWO_THIRDS[0], x), tail)
    third_low = builder.add(third_low, builder.constant(_TWO_THIRDS[1], x))
    cubic = pair_product(builder, pair_product(builder, pair, square), (third, third_low))
    double = builder.multiply(pair[0], two), builder.multiply(pair[1], two)
    high, low = ordered_sum(builder, double[0], cubic[0])
    natural = ordered_sum(builder, high, builder.add(low, builder.add(double[1], cubic[1])))
    log2e = builder.constant(_LOG2E[0], x), builder.constant(_LOG2E[1], x)
    scaled = pair_product(builder, natural, log2e)
    high, low = exact_sum(builder, exponent, scaled[0])
    high, low = ordered_sum(builder, high, builder.add(low, scaled[1]))
    return _log2_with_limits(builder, x, high), low


def _raise_two(builder: Builder, high: Value, low: Value) -> Value:
    """Return 2^(high + low)."""
    magic = builder.constant(DOUBLE.magic, high)
    shifted = builder.add(high, magic)
    r = builder.subtract(high, builder.subtract(shifted, magic))
    r = builder.add(r, low)
    one = builder.constant(1.0, r)
    power = builder.multiply_add(polynomial(builder, r, DOUBLE.exp2), r, one)
    small = builder.compare("lt", high, builder.constant(DOUBLE.least_exponent + 1, high))
    return scale_by_any_power(builder, power, shifted, small)


def _with_sign(builder: Builder, x: Value, y: Value, result: Value) -> Value:
    """Return the power of |x| as that of x: negative for odd y, NaN for y that is no integer."""
    half = builder.multiply(y, builder.constant(0.5, y))
    integer = builder.compare("eq", emit_trunc(builder, y), y)
    even = builder.compare("eq", emit_trunc(builder, half), half)
    bits = builder.bits(x)
    negative = builder.compare("lt", bits, builder.constant(0, bits))
    negated = builder.negate(result)
    flip = builder.binary("and", negative, integer)
    flip = builder.binary("and", flip, _not(builder, even))
    result = builder.select(flip, negated, result)
    # a negative finite x, not -0
    below = builder.compare("lt", x, builder.constant(0.0, x))
    finite = builder.compare("gt", x, builder.constant(-inf, x))
    invalid = builder.binary("and", builder.binary("and", below, finite), _not(builder, integer))
    return builder.select(invalid, builder.constant(nan, x), result)


def _not(builder: Builder, condition: Value) -> Value:
    return builder.binary("xor", condition, builder.constant(True, condition))
