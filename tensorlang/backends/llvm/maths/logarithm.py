"""log, log2 and log1p.

    x = 2^e m,  sqrt(1/2) <= m < sqrt(2),  f = m - 1,  s = f / (2 + f)
    log(1 + f) = 2 atanh(s) = f - (h - s (h + R(s^2))),  h = f^2 / 2

The last form, fdlibm's, loses nothing when f is small. ``e ln 2`` is added in two parts, the first
of which is exact. Errors in units of the last place, tested in f32 and f64: log 0.85, log2 1.4,
log1p 0.9. log(0) is -inf, of negative numbers NaN.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf, nan

from tensorlang.backends.llvm.builder import Builder
from tensorlang.backends.llvm.maths.exponential import format_of
from tensorlang.backends.llvm.maths.extended import exact_product, ordered_sum
from tensorlang.backends.llvm.maths.polynomial import Coefficients, polynomial
from tensorlang.backends.llvm.maths.rare_lanes import is_not_normal, with_rare_lanes
from tensorlang.backends.llvm.types import Value


@dataclass(frozen=True, slots=True)
class Format:
    """``root_bits`` are the bits of sqrt(1/2); ``tail`` is R(z) / z."""

    root_bits: int
    least_normal: float
    tail: Coefficients


SINGLE = Format(
    root_bits=0x3F3504F3,
    least_normal=2.0**-126,
    tail=(0.6666666269302368, 0.40000972151756287, 0.2849879264831543, 0.2427908331155777),
)
DOUBLE = Format(
    root_bits=0x3FE6A09E667F3BCD,
    least_normal=2.0**-1022,
    tail=(
        0.6666666666666735, 0.3999999999940935, 0.2857142874368664, 0.2222219842894459,
        0.18183572357825936, 0.15313832052624163, 0.14798260377200806,
    ),
)  # fmt: skip
_LOG2E_HIGH = float.fromhex("0x1.7154765200000p+0")
_LOG2E_LOW = float.fromhex("0x1.705fc2eefa200p-33")
_LOG2E = 1.4426950216293335  # in f32
_LOG2_REST = (
    1.9201035428295654e-08, -0.7213473320007324, 0.4808982312679291, -0.3606986701488495,
    0.28856998682022095, -0.23956620693206787, 0.20451466739177704, -0.1914295107126236,
    0.1869172751903534, -0.10994353145360947,
)  # fmt: skip
"""P of ``log2(1 + f) = f log2 e + f P(f)``, in f32."""


def emit_log(builder: Builder, x: Value) -> Value:
    """Return the natural logarithm."""
    return _with_any_lanes(builder, x, _log_of)


def emit_log2(builder: Builder, x: Value) -> Value:
    """Return the logarithm to base 2, exact for powers of two."""
    return _with_any_lanes(builder, x, _log2_of_single if x.type.bits == 32 else _log2_of_double)


def _with_any_lanes(
    builder: Builder, x: Value, of: Callable[[Builder, Value, Value], Value]
) -> Value:
    """Return a logarithm ``of(builder, e, m - 1)``: also of what is not positive and normal."""
    usual = of(builder, *decompose_normal(builder, x))
    (result,) = with_rare_lanes(
        builder,
        is_not_normal(builder, x),
        [usual],
        lambda: [_with_limits(builder, x, of(builder, *decompose(builder, x)))],
    )
    return result


def _log_of(builder: Builder, exponent: Value, f: Value) -> Value:
    """Return e ln 2 + log(1 + f)."""
    ln2 = format_of(f)
    low = builder.multiply(exponent, builder.constant(ln2.ln2_low, f))
    result = log_of_mantissa(builder, f, low)
    return builder.multiply_add(exponent, builder.constant(ln2.ln2_high, f), result)


def _log2_of_double(builder: Builder, exponent: Value, f: Value) -> Value:
    """Return e + log2(1 + f), the logarithm of 1 + f in two parts."""
    # log(1 + f) = high + low, high with half the bits, so that its product with log2 e is exact.
    h = _half_square(builder, f)
    high = builder.subtract(f, h)
    keep = builder.constant(-(1 << 32), builder.bits(f))
    high = builder.from_bits(builder.binary("and", builder.bits(high), keep))
    correction = builder.subtract(builder.subtract(f, high), h)
    low = builder.add(correction, _tail(builder, f, h))
    factor = builder.constant(_LOG2E_HIGH, f)
    small = builder.multiply(builder.add(high, low), builder.constant(_LOG2E_LOW, f))
    small = builder.multiply_add(low, factor, small)
    large = builder.multiply(high, factor)
    total = builder.add(exponent, large)
    rest = builder.add(builder.subtract(exponent, total), large)
    return builder.add(total, builder.add(rest, small))


def _log2_of_single(builder: Builder, exponent: Value, f: Value) -> Value:
    """Return e + log2(1 + f) as e + f log2 e + f P(f): ten terms are faster than a division."""
    factor = builder.constant(_LOG2E, f)
    rest = builder.multiply(f, polynomial(builder, f, _LOG2_REST))
    if builder.fused:
        return builder.add(exponent, builder.intrinsic("fma", f, factor, rest))
    high, low = exact_product(builder, f, factor)
    total, lost = ordered_sum(builder, exponent, high)
    near = builder.add(high, builder.add(low, rest))
    far = builder.add(total, builder.add(lost, builder.add(low, rest)))
    is_near = builder.compare("eq", exponent, builder.constant(0.0, f))
    return builder.select(is_near, near, far)


def emit_log1p(builder: Builder, x: Value) -> Value:
    """Return log(1 + x) without cancellation near 0."""
    one = builder.constant(1.0, x)
    u = builder.add(one, x)
    exponent, f = decompose(builder, u)
    # What 1 + x lost by rounding, relative to u; x itself serves where u needs no scaling.
    is_large = builder.compare("gt", x, one)
    lost = builder.select(
        is_large,
        builder.subtract(one, builder.subtract(u, x)),
        builder.subtract(x, builder.subtract(u, one)),
    )
    correction = builder.divide(lost, u)
    unscaled = builder.compare("eq", exponent, builder.constant(0.0, x))
    f = builder.select(unscaled, x, f)
    correction = builder.select(unscaled, builder.constant(0.0, x), correction)
    ln2 = format_of(x)
    low = builder.multiply_add(exponent, builder.constant(ln2.ln2_low, x), correction)
    result = log_of_mantissa(builder, f, low)
    result = builder.multiply_add(exponent, builder.constant(ln2.ln2_high, x), result)
    result = _with_limits(builder, u, result)
    is_zero = builder.compare("eq", x, builder.constant(0.0, x))
    return builder.select(is_zero, x, result)  # the sign of -0


def decompose(builder: Builder, x: Value) -> tuple[Value, Value]:
    """Return e and m - 1 of ``x = 2^e m`` for positive finite x, subnormal ones too."""
    form = SINGLE if x.type.bits == 32 else DOUBLE
    mantissa_bits = format_of(x).mantissa_bits
    is_subnormal = builder.compare("lt", x, builder.constant(form.least_normal, x))
    scaled = builder.multiply(x, builder.constant(2.0 ** (mantissa_bits + 1), x))
    exponent, f = decompose_normal(builder, builder.select(is_subnormal, scaled, x))
    shifted = builder.subtract(exponent, builder.constant(float(mantissa_bits + 1), x))
    return builder.select(is_subnormal, shifted, exponent), f


def decompose_normal(builder: Builder, x: Value) -> tuple[Value, Value]:
    """Return e and m - 1 of ``x = 2^e m`` for positive normal x."""
    form = SINGLE if x.type.bits == 32 else DOUBLE
    mantissa_bits = format_of(x).mantissa_bits
    bits = builder.bits(x)
    root = builder.constant(form.root_bits, bits)
    offset = builder.subtract(bits, root)
    shift = builder.constant(mantissa_bits, bits)
    whole = builder.binary("ashr", offset, shift)
    mantissa = builder.subtract(bits, builder.binary("shl", whole, shift))
    f = builder.subtract(builder.from_bits(mantissa), builder.constant(1.0, x))
    return _to_float(builder, whole, x), f


def _to_float(builder: Builder, whole: Value, like: Value) -> Value:
    """Convert small integers; for f64 by their bits, as vectors lack an instruction for i64."""
    if like.type.bits == 32:
        return builder.convert("sitofp", whole, "float")
    magic = 1.5 * 2.0**52
    base = builder.bits(builder.constant(magic, like))
    return builder.subtract(
        builder.from_bits(builder.add(whole, base)), builder.constant(magic, like)
    )


def _half_square(builder: Builder, f: Value) -> Value:
    return builder.multiply(builder.multiply(f, builder.constant(0.5, f)), f)


def _tail(builder: Builder, f: Value, h: Value) -> Value:
    """Return ``s (h + R)``."""
    form = SINGLE if f.type.bits == 32 else DOUBLE
    s = builder.divide(f, builder.add(f, builder.constant(2.0, f)))
    z = builder.multiply(s, s)
    r = builder.multiply_add(z, polynomial(builder, z, form.tail), h)
    return builder.multiply(s, r)


def log_of_mantissa(builder: Builder, f: Value, low: Value | None = None) -> Value:
    """Return log(1 + f) + low, low being small."""
    h = _half_square(builder, f)
    tail = _tail(builder, f, h)
    if low is not None:
        tail = builder.add(tail, low)
    return builder.subtract(f, builder.subtract(h, tail))


def _with_limits(builder: Builder, x: Value, result: Value) -> Value:
    infinity = builder.constant(inf, x)
    result = builder.select(builder.compare("eq", x, infinity), x, result)
    is_zero = builder.compare("eq", x, builder.constant(0.0, x))
    other = builder.select(is_zero, builder.constant(-inf, x), builder.constant(nan, x))
    return builder.select(builder.compare("gt", x, builder.constant(0.0, x)), result, other)
