"""tanh, sinh and cosh, from e^x - 1 of the magnitude.

    tanh |x| = E / (E + 2),               E = e^(2|x|) - 1
    sinh |x| = (E + E / (E + 1)) / 2,     E = e^|x| - 1
    cosh x   = 1 + E^2 / (2 (E + 1)),     E = e^|x| - 1

None of them cancels. Errors in units of the last place, tested in f32 and f64: tanh 2.8, sinh 2.6,
cosh 2.6.
"""

from __future__ import annotations

from math import log

from tensorlang.backends.llvm.builder import Builder
from tensorlang.backends.llvm.maths.exponential import emit_exp, expm1_in_range, format_of
from tensorlang.backends.llvm.types import Value


def emit_tanh(builder: Builder, x: Value) -> Value:
    """Return the hyperbolic tangent."""
    # Beyond these bounds the result rounds to 1; clamping keeps NaN.
    magnitude = _at_most(builder, builder.intrinsic("fabs", x), 10.0 if x.type.bits == 32 else 20.0)
    e = expm1_in_range(builder, builder.add(magnitude, magnitude))
    result = builder.divide(e, builder.add(e, builder.constant(2.0, x)))
    return builder.intrinsic("copysign", result, x)


def emit_sinh(builder: Builder, x: Value) -> Value:
    """Return the hyperbolic sine."""
    magnitude = builder.intrinsic("fabs", x)
    inside = _at_most(builder, magnitude, _largest(x))
    e = expm1_in_range(builder, inside)
    fraction = builder.divide(e, builder.add(e, builder.constant(1.0, x)))
    result = builder.multiply(builder.add(e, fraction), builder.constant(0.5, x))
    result = _or_large(builder, magnitude, result)
    return builder.intrinsic("copysign", result, x)


def emit_cosh(builder: Builder, x: Value) -> Value:
    """Return the hyperbolic cosine."""
    magnitude = builder.intrinsic("fabs", x)
    e = expm1_in_range(builder, _at_most(builder, magnitude, _largest(x)))
    one = builder.constant(1.0, x)
    half = builder.multiply(e, builder.constant(0.5, x))
    result = builder.multiply_add(half, builder.divide(e, builder.add(e, one)), one)
    return _or_large(builder, magnitude, result)


def _largest(x: Value) -> float:
    """Return where e^x is close to overflow."""
    return (format_of(x).largest_exponent - 1) * log(2)


def _or_large(builder: Builder, magnitude: Value, result: Value) -> Value:
    """Return e^|x| / 2 where e^|x| may overflow: as the square of e^(|x|/2), halved first."""
    half = builder.constant(0.5, magnitude)
    root = emit_exp(builder, builder.multiply(magnitude, half))
    large = builder.multiply(builder.multiply(root, half), root)
    inside = builder.compare("le", magnitude, builder.constant(_largest(magnitude), magnitude))
    return builder.select(inside, result, large)


def _at_most(builder: Builder, value: Value, limit: float) -> Value:
    """Return the lesser of both, NaN if ``value`` is NaN."""
    bound = builder.constant(limit, value)
    return builder.select(builder.compare("lt", bound, value), bound, value)
