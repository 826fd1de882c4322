"""Sums and products with their rounding errors: unevaluated pairs of floats.

Input:  ``exact_product(builder, a, b)``      Output: ``(high, low)`` with high + low = a b exactly

Valid without fast-math flags only. Where there is no fused multiply-add, factors are split in
halves (Dekker, "A floating-point technique for extending the available precision", 1971).
"""

from __future__ import annotations

from tensorlang.backends.llvm.builder import Builder
from tensorlang.backends.llvm.types import Value

Pair = tuple[Value, Value]


def exact_sum(builder: Builder, a: Value, b: Value) -> Pair:
    """Return a + b rounded and its error, whichever is larger (Knuth)."""
    total = builder.add(a, b)
    part = builder.subtract(total, a)
    error = builder.add(
        builder.subtract(a, builder.subtract(total, part)), builder.subtract(b, part)
    )
    return total, error


def ordered_sum(builder: Builder, a: Value, b: Value) -> Pair:
    """Return a + b rounded and its error, for |a| >= |b|."""
    total = builder.add(a, b)
    return total, builder.subtract(b, builder.subtract(total, a))


def exact_product(builder: Builder, a: Value, b: Value) -> Pair:
    """Return a b rounded and its error."""
    product = builder.multiply(a, b)
    if builder.fused:
        return product, builder.intrinsic("fma", a, b, builder.negate(product))
    (a_high, a_low), (b_high, b_low) = _halves(builder, a), _halves(builder, b)
    error = builder.subtract(builder.multiply(a_high, b_high), product)
    error = builder.add(error, builder.multiply(a_high, b_low))
    error = builder.add(error, builder.multiply(a_low, b_high))
    return product, builder.add(error, builder.multiply(a_low, b_low))


def pair_product(builder: Builder, a: Pair, b: Pair) -> Pair:
    """Return the product of two pairs, but for the product of their low parts."""
    high, low = exact_product(builder, a[0], b[0])
    low = builder.add(low, builder.multiply(a[0], b[1]))
    low = builder.add(low, builder.multiply(a[1], b[0]))
    return ordered_sum(builder, high, low)


def _halves(builder: Builder, value: Value) -> Pair:
    """Return the nearest float of half the bits, and the rest, so that products are exact.

    f64 has an odd number of bits: rounded, not cut, the rest fits 26 of them and a sign.
    """
    bits = builder.bits(value)
    dropped = 12 if value.type.bits == 32 else 27
    rounded = builder.add(bits, builder.constant(1 << (dropped - 1), bits))
    kept = builder.binary("and", rounded, builder.constant(-(1 << dropped), bits))
    high = builder.from_bits(kept)
    return high, builder.subtract(value, high)
