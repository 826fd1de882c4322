"""asin, acos, atan and atan2.

    asin x = x + x^3 A(x^2),                        |x| <= 1/2
           = pi/2 - 2 asin sqrt((1 - x) / 2),       x > 1/2, and odd
    atan t = t + t^3 T(t^2),                        |t| <= tan(pi/8)
    atan n/d = pi/4 + atan (n - d) / (n + d),       n/d above tan(pi/8)
             = pi/2 - atan d/n,                     n/d above tan(3 pi/8)

Both ranges of asin are computed and one chosen; atan chooses its fraction first, so that there is
one division. Multiples of pi are in two parts. Errors in units of the last place, tested in f32
and f64: asin 1.3, acos 1.3, atan 2.2, atan2 2.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

from tensorlang.backends.llvm.builder import Builder
from tensorlang.backends.llvm.maths.polynomial import Coefficients, polynomial
from tensorlang.backends.llvm.types import Value


@dataclass(frozen=True, slots=True)
class Format:
    """``asin`` and ``atan`` are A and T; twice ``largest`` is finite."""

    half_pi: float
    half_pi_low: float
    asin: Coefficients
    atan: Coefficients
    largest: float


SINGLE = Format(
    half_pi=float.fromhex("0x1.921fb6p+0"),
    half_pi_low=float.fromhex("-0x1.777a5cp-25"),
    asin=(
        0.16666752099990845, 0.07495306432247162, 0.04546977952122688,
        0.024180693551898003, 0.04216660559177399,
    ),
    atan=(
        -0.33333316445350647, 0.19998526573181152, -0.14244344830513,
        0.10598728060722351, -0.06088735908269882,
    ),
    largest=2.0**126,
)  # fmt: skip
DOUBLE = Format(
    half_pi=float.fromhex("0x1.921fb54442d18p+0"),
    half_pi_low=float.fromhex("0x1.1a62633145c07p-54"),
    asin=(
        0.1666666666666676, 0.07499999999970808, 0.04464285717464917, 0.030381942704522606,
        0.02237221511075942, 0.01735160935215923, 0.013980856974280153, 0.011398582139182479,
        0.010782262397429934, 0.0036982725353454753, 0.021728462591187377,
        -0.02103040717144948, 0.032649167657173725,
    ),
    atan=(
        -0.3333333333333319, 0.1999999999995217, -0.1428571428005179, 0.11111110776151735,
        -0.09090897546009416, 0.07692056425026506, -0.06663060716445815, 0.05847572193420876,
        -0.05037867717553636, 0.038027845917751636, -0.017866779751428277,
    ),
    largest=2.0**1022,
)  # fmt: skip


def emit_asin(builder: Builder, x: Value) -> Value:
    """Return the arc sine; NaN outside [-1, 1]."""
    form = _format(x)
    magnitude, steep, s, tail = _asin_parts(builder, x)
    inner = builder.add(s, tail)
    # pi/2 - 2 s - 2 tail, smallest first
    low = builder.multiply_add(
        tail, builder.constant(-2.0, x), builder.constant(form.half_pi_low, x)
    )
    twice = builder.add(s, s)
    high = builder.subtract(builder.constant(form.half_pi, x), twice)
    lost = builder.subtract(builder.subtract(builder.constant(form.half_pi, x), high), twice)
    outer = builder.add(high, builder.add(lost, low))
    result = builder.select(steep, outer, inner)
    return builder.intrinsic("copysign", _nan_beyond_one(builder, magnitude, result), x)


def emit_acos(builder: Builder, x: Value) -> Value:
    """Return the arc cosine; NaN outside [-1, 1]."""
    form = _format(x)
    magnitude, steep, s, tail = _asin_parts(builder, x)
    half_pi = builder.constant(form.half_pi, x)
    low = builder.constant(form.half_pi_low, x)
    # flat: pi/2 - asin x
    signed = builder.intrinsic("copysign", s, x)
    signed_tail = builder.intrinsic("copysign", tail, x)
    high = builder.subtract(half_pi, signed)
    lost = builder.subtract(builder.subtract(half_pi, high), signed)
    flat = builder.add(high, builder.add(lost, builder.subtract(low, signed_tail)))
    # steep: 2 asin sqrt((1 - x) / 2), or pi minus that of -x
    near_one = builder.multiply(builder.add(s, tail), builder.constant(2.0, x))
    pi, pi_low = builder.constant(2 * form.half_pi, x), builder.constant(2 * form.half_pi_low, x)
    twice = builder.add(s, s)
    high = builder.subtract(pi, twice)
    lost = builder.subtract(builder.subtract(pi, high), twice)
    rest = builder.multiply_add(tail, builder.constant(-2.0, x), pi_low)
    near_minus_one = builder.add(high, builder.add(lost, rest))
    negative = builder.compare("lt", x, builder.constant(0.0, x))
    outer = builder.select(negative, near_minus_one, near_one)
    return _nan_beyond_one(builder, magnitude, builder.select(steep, outer, flat))


def _asin_parts(builder: Builder, x: Value) -> tuple[Value, Value, Value, Value]:
    """Return |x|, whether it is above 1/2, and asin of |x| or of sqrt((1 - |x|) / 2) in parts."""
    half = builder.constant(0.5, x)
    magnitude = builder.intrinsic("fabs", x)
    steep = builder.compare("gt", magnitude, half)
    z = builder.multiply_add(magnitude, builder.constant(-0.5, x), half)
    z = builder.select(steep, z, builder.multiply(magnitude, magnitude))
    s = builder.select(steep, builder.intrinsic("sqrt", z), magnitude)
    tail = builder.multiply(builder.multiply(s, z), polynomial(builder, z, _format(x).asin))
    return magnitude, steep, s, tail


def _nan_beyond_one(builder: Builder, magnitude: Value, result: Value) -> Value:
    inside = builder.compare("le", magnitude, builder.constant(1.0, magnitude))
    return builder.select(inside, result, builder.constant(float("nan"), magnitude))


def emit_atan(builder: Builder, x: Value) -> Value:
    """Return the arc tangent."""
    magnitude = builder.intrinsic("fabs", x)
    result = _atan_of_fraction(builder, magnitude, builder.constant(1.0, x))
    return builder.intrinsic("copysign", result, x)


def emit_atan2(builder: Builder, y: Value, x: Value) -> Value:
    """Return the angle of the point (x, y), from -pi to pi."""
    form = _format(y)
    above, below = builder.intrinsic("fabs", y), builder.intrinsic("fabs", x)
    above, below = _scaled_down(builder, above, below)
    result = _atan_of_fraction(builder, above, below)
    zero = builder.constant(0.0, y)
    is_zero = builder.compare("eq", above, zero)
    nan = builder.is_nan(below)
    result = builder.select(is_zero, builder.select(nan, below, zero), result)
    pi = builder.constant(2 * form.half_pi, y)
    left = builder.subtract(pi, builder.subtract(result, builder.constant(2 * form.half_pi_low, y)))
    sign = builder.compare("lt", builder.bits(x), builder.constant(0, builder.bits(x)))
    result = builder.select(sign, left, result)
    return builder.intrinsic("copysign", result, y)


def _scaled_down(builder: Builder, above: Value, below: Value) -> tuple[Value, Value]:
    """Divide both by 4 where their sum may overflow."""
    largest = builder.constant(_format(above).largest, above)
    large = builder.binary(
        "or", builder.compare("gt", above, largest), builder.compare("gt", below, largest)
    )
    factor = builder.select(large, builder.constant(0.25, above), builder.constant(1.0, above))
    return builder.multiply(above, factor), builder.multiply(below, factor)


def _atan_of_fraction(builder: Builder, above: Value, below: Value) -> Value:
    """Return atan(above / below) for two numbers that are not negative."""
    form = _format(above)
    zero = builder.constant(0.0, above)
    steep = builder.compare(
        "gt", above, builder.multiply(below, builder.constant(sqrt(2) + 1, above))
    )
    middle = builder.compare(
        "gt", above, builder.multiply(below, builder.constant(sqrt(2) - 1, above))
    )
    equal = builder.compare("eq", above, below)  # inf / inf too
    middle = builder.binary("or", middle, equal)
    numerator = builder.select(
        steep,
        builder.negate(below),
        builder.select(middle, builder.subtract(above, below), above),
    )
    denominator = builder.select(
        steep, above, builder.select(middle, builder.add(above, below), below)
    )
    t = builder.divide(numerator, denominator)
    t = builder.select(equal, zero, t)
    angle = builder.select(
        steep,
        builder.constant(form.half_pi, above),
        builder.select(middle, builder.constant(form.half_pi / 2, above), zero),
    )
    low = builder.select(
        steep,
        builder.constant(form.half_pi_low, above),
        builder.select(middle, builder.constant(form.half_pi_low / 2, above), zero),
    )
    z = builder.multiply(t, t)
    cube = builder.multiply(z, t)
    tail = builder.multiply_add(cube, polynomial(builder, z, form.atan), low)
    return builder.add(angle, builder.add(t, tail))


def _format(value: Value) -> Format:
    return SINGLE if value.type.bits == 32 else DOUBLE
