"""sin, cos and tan.

    x = q pi/2 + r,  |r| <= pi/4;   sin x is +-sin r or +-cos r by q mod 4

``q`` pi/2 is subtracted in three parts of 33 bits, whose products with ``q`` are exact, and what r
loses by rounding is kept beside it, so that results near multiples of pi have all their bits. f32
does the same with three parts of 24 bits and fused products, and in f64 where there are none. From
2^20 on (2^17 in f32; inf included) ``q`` has too many bits for that: such lanes are reduced by
whole-number arithmetic (``huge_angles.py``), on a path of their own.

Errors in units of the last place, tested in f32 and f64: sin and cos 0.9, tan 2.6.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import pi

from tensorlang.backends.llvm.builder import Builder
from tensorlang.backends.llvm.maths.extended import Pair, exact_product, exact_sum, ordered_sum
from tensorlang.backends.llvm.maths.huge_angles import reduce_huge
from tensorlang.backends.llvm.maths.polynomial import Coefficients, polynomial
from tensorlang.backends.llvm.maths.rare_lanes import with_rare_lanes
from tensorlang.backends.llvm.types import Value

_LIMIT = 2.0**20
_LIMIT_SINGLE = 2.0**17  # beyond, 2/pi has too few bits in f32 for r to stay below pi/4
_MAGIC = 1.5 * 2.0**52
_PI_2 = (
    float.fromhex("0x1.921fb54400000p+0"),
    float.fromhex("0x1.0b4611a600000p-34"),
    float.fromhex("0x1.3198a2e037073p-69"),
)
_MAGIC_SINGLE = 1.5 * 2.0**23
_PI_2_SINGLE = (
    float.fromhex("0x1.921fb6p+0"),
    float.fromhex("-0x1.777a5cp-25"),
    float.fromhex("-0x1.ee59dap-50"),
)


@dataclass(frozen=True, slots=True)
class Format:
    """``sin r = r + r^3 S(r^2)``, ``cos r = 1 - r^2 / 2 + r^4 C(r^2)``."""

    sine: Coefficients
    cosine: Coefficients


SINGLE = Format(
    sine=(-0.16666655242443085, 0.008332187309861183, -0.00019517897453624755),
    cosine=(0.04166664555668831, -0.0013887309469282627, 2.4432327336398885e-05),
)
DOUBLE = Format(
    sine=(
        -0.1666666666666663, 0.008333333333321842, -0.00019841269829360867,
        2.755731353956646e-06, -2.50507345830147e-08, 1.5895445867103466e-10,
    ),
    cosine=(
        0.041666666666666595, -0.0013888888888873307, 2.4801587288965406e-05,
        -2.755731420319302e-07, 2.087570316349735e-09, -1.1358618657598083e-11,
    ),
)  # fmt: skip


def emit_sin(builder: Builder, x: Value) -> Value:
    """Return the sine."""
    r, quadrant = _reduce(builder, x)
    return _signed_zero(builder, x, _of_quadrant(builder, r, quadrant))


def emit_cos(builder: Builder, x: Value) -> Value:
    """Return the cosine."""
    r, quadrant = _reduce(builder, x)
    quadrant = builder.add(quadrant, builder.constant(1, quadrant))
    return _of_quadrant(builder, r, quadrant)


def emit_tan(builder: Builder, x: Value) -> Value:
    """Return the tangent."""
    r, quadrant = _reduce(builder, x)
    sine, cosine = _sine(builder, r), _cosine(builder, r)
    odd = _has_bit(builder, quadrant, 1)
    above = builder.select(odd, builder.negate(cosine), sine)
    below = builder.select(odd, sine, cosine)
    return _signed_zero(builder, x, builder.divide(above, below))


def _reduce(builder: Builder, x: Value) -> tuple[Pair, Value]:
    """Return r in two parts, and q in the low bits of an integer of any higher bits."""
    if x.type.bits == 32 and builder.fused:
        near = _reduce_single(builder, x)
    else:
        wide = builder.convert("fpext", x, "double")
        near = _narrow(builder, *_reduce_double(builder, wide), x)
    return _with_huge_lanes(builder, x, *near)


def _reduce_double(builder: Builder, x: Value) -> tuple[Pair, Value]:
    """Return r and q of f64 lanes, right below 2^20."""
    magic = builder.constant(_MAGIC, x)
    shifted = builder.multiply_add(x, builder.constant(2 / pi, x), magic)
    q = builder.subtract(shifted, magic)
    first, second, third = (builder.multiply(q, builder.constant(-part, x)) for part in _PI_2)
    high, error = exact_sum(builder, builder.add(x, first), second)
    r = ordered_sum(builder, high, builder.add(error, third))
    return r, builder.bits(shifted)


def _reduce_single(builder: Builder, x: Value) -> tuple[Pair, Value]:
    """Return r and q of f32 lanes, right below 2^17, by products that are rounded with their sum.

    The first difference is exact, and what the second loses is kept.
    """
    magic = builder.constant(_MAGIC_SINGLE, x)
    shifted = builder.multiply_add(x, builder.constant(2 / pi, x), magic)
    q = builder.subtract(shifted, magic)
    first, second, third = (builder.constant(-part, x) for part in _PI_2_SINGLE)
    begun = builder.intrinsic("fma", q, first, x)
    product, product_low = exact_product(builder, q, second)
    high, lost = exact_sum(builder, begun, product)
    low = builder.add(lost, builder.intrinsic("fma", q, third, product_low))
    return ordered_sum(builder, high, low), builder.bits(shifted)


def _narrow(builder: Builder, r: Pair, quadrant: Value, x: Value) -> tuple[Pair, Value]:
    """Return r and q in the type of x."""
    if x.type.bits == 64:
        return r, quadrant
    high = builder.convert("fptrunc", r[0], "float")
    rest = builder.subtract(r[0], builder.convert("fpext", high, "double"))
    low = builder.convert("fptrunc", rest, "float")
    return (high, low), builder.convert("trunc", quadrant, "i32")


def _with_huge_lanes(builder: Builder, x: Value, r: Pair, quadrant: Value) -> tuple[Pair, Value]:
    """Return r and q as they are, but for lanes from the limit on; NaN is not among them."""
    in_single = x.type.bits == 32 and builder.fused
    limit = builder.constant(_LIMIT_SINGLE if in_single else _LIMIT, x)
    huge = builder.compare("ge", builder.intrinsic("fabs", x), limit)

    def reduce() -> tuple[Value, Value, Value]:
        # the other lanes too need a number for which the table has bits
        wide = builder.convert("fpext", builder.select(huge, x, limit), "double")
        far_r, far_quadrant = _narrow(builder, *reduce_huge(builder, wide), x)
        return (*far_r, far_quadrant)

    high, low, quadrant = with_rare_lanes(builder, huge, (*r, quadrant), reduce, "huge")
    return (high, low), quadrant


def _of_quadrant(builder: Builder, r: Pair, quadrant: Value) -> Value:
    """Return sin of r plus quadrants."""
    odd = _has_bit(builder, quadrant, 1)
    result = builder.select(odd, _cosine(builder, r), _sine(builder, r))
    sign = builder.binary("and", quadrant, builder.constant(2, quadrant))
    sign = builder.binary("shl", sign, builder.constant(quadrant.type.bits - 2, sign))
    return builder.from_bits(builder.binary("xor", builder.bits(result), sign))


def _has_bit(builder: Builder, value: Value, bit: int) -> Value:
    masked = builder.binary("and", value, builder.constant(bit, value))
    return builder.compare("ne", masked, builder.constant(0, value))


def _sine(builder: Builder, r: Pair) -> Value:
    """Return sin(high + low) = sin(high) + low cos(high), the latter roughly."""
    high, low = r
    form = SINGLE if high.type.bits == 32 else DOUBLE
    z = builder.multiply(high, high)
    cube = builder.multiply(z, high)
    half = builder.constant(-0.5, z)
    low = builder.multiply_add(builder.multiply(z, half), low, low)
    tail = builder.multiply_add(cube, polynomial(builder, z, form.sine), low)
    return builder.add(high, tail)


def _cosine(builder: Builder, r: Pair) -> Value:
    """Return cos(high + low) = cos(high) - high low; 1 - z / 2 keeps its rounding error."""
    high, low = r
    form = SINGLE if high.type.bits == 32 else DOUBLE
    z = builder.multiply(high, high)
    half = builder.multiply(z, builder.constant(0.5, z))
    one = builder.constant(1.0, z)
    main = builder.subtract(one, half)
    error = builder.subtract(builder.subtract(one, main), half)
    square = builder.multiply(z, z)
    tail = builder.multiply_add(square, polynomial(builder, z, form.cosine), error)
    tail = builder.subtract(tail, builder.multiply(high, low))
    return builder.add(main, tail)


def _signed_zero(builder: Builder, x: Value, result: Value) -> Value:
    """Return x where it is 0: the reduction loses the sign of -0."""
    is_zero = builder.compare("eq", x, builder.constant(0.0, x))
    return builder.select(is_zero, x, result)
