"""floor, ceil, trunc and round to even, one instruction where the machine has it.

Elsewhere 2^23 (f32; 2^52 in f64) is added to the magnitude and subtracted: what is left is the
nearest integer, ties to even, from which the others are a comparison away. Larger numbers are
integers already. Exact; the sign of zero is that of the operand.
"""

from __future__ import annotations

from tensorlang.backends.llvm.builder import Builder
from tensorlang.backends.llvm.types import Value


def emit_round(builder: Builder, x: Value) -> Value:
    """Return the nearest integer, ties to even."""
    if builder.rounds:
        return builder.intrinsic("roundeven", x)
    limit = builder.constant(2.0 ** (23 if x.type.bits == 32 else 52), x)
    magnitude = builder.intrinsic("fabs", x)
    rounded = builder.subtract(builder.add(magnitude, limit), limit)
    has_fraction = builder.compare("lt", magnitude, limit)
    result = builder.select(has_fraction, rounded, magnitude)
    return builder.intrinsic("copysign", result, x)


def emit_floor(builder: Builder, x: Value) -> Value:
    """Return the greatest integer that is not above x."""
    if builder.rounds:
        return builder.intrinsic("floor", x)
    return _corrected(builder, x, emit_round(builder, x), "gt", -1.0)


def emit_ceil(builder: Builder, x: Value) -> Value:
    """Return the least integer that is not below x."""
    if builder.rounds:
        return builder.intrinsic("ceil", x)
    return _corrected(builder, x, emit_round(builder, x), "lt", 1.0)


def emit_trunc(builder: Builder, x: Value) -> Value:
    """Return the integer part."""
    if builder.rounds:
        return builder.intrinsic("trunc", x)
    magnitude = builder.intrinsic("fabs", x)
    rounded = emit_round(builder, magnitude)
    return builder.intrinsic("copysign", _corrected(builder, magnitude, rounded, "gt", -1.0), x)


def _corrected(builder: Builder, x: Value, rounded: Value, predicate: str, by: float) -> Value:
    """Add ``by`` where ``rounded`` lies on the wrong side of x."""
    wrong = builder.compare(predicate, rounded, x)
    result = builder.add(rounded, builder.constant(by, x))
    return builder.intrinsic("copysign", builder.select(wrong, result, rounded), x)
