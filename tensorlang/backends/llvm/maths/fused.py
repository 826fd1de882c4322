"""a b + c rounded once, where the machine has no instruction for it.

f32: the product is exact in f64, and the sum there is rounded to odd (inexact results end in 1), so
that rounding once more, to f32, is right: f64 has more than twice the bits.

f64: product and sum are pairs, and what their low parts add up to is rounded to odd before it is
added to the high part (S. Boldo and G. Melquiond, "Emulation of a FMA and correctly rounded sums",
IEEE Transactions on Computers 57, 2008). Pairs need room: lanes with operands so large or small
that a part could overflow or vanish are the C library's, on a path of their own.
"""

from __future__ import annotations

from tensorlang.backends.llvm.builder import Builder
from tensorlang.backends.llvm.maths.extended import exact_product, exact_sum
from tensorlang.backends.llvm.maths.rare_lanes import with_rare_lanes
from tensorlang.backends.llvm.types import Value


def emit_fma(builder: Builder, a: Value, b: Value, c: Value) -> Value:
    """Return a b + c, rounded once."""
    if builder.fused:
        return builder.intrinsic("fma", a, b, c)
    if a.type.bits == 32:
        return _single(builder, a, b, c)
    return _double(builder, a, b, c)


def _single(builder: Builder, a: Value, b: Value, c: Value) -> Value:
    a, b, c = (builder.convert("fpext", value, "double") for value in (a, b, c))
    total, error = exact_sum(builder, builder.multiply(a, b), c)
    return builder.convert("fptrunc", _to_odd(builder, total, error), "float")


def _double(builder: Builder, a: Value, b: Value, c: Value) -> Value:
    product, product_low = exact_product(builder, a, b)
    total, total_low = exact_sum(builder, c, product_low)
    high, high_low = exact_sum(builder, product, total)
    low = _to_odd(builder, *exact_sum(builder, total_low, high_low))
    return _with_extreme_lanes(builder, (a, b, c), product, builder.add(high, low))


def _to_odd(builder: Builder, total: Value, error: Value) -> Value:
    """Return total + error rounded to odd: the neighbour toward the error, if total is even."""
    zero = builder.constant(0.0, total)
    bits = builder.bits(total)
    one, none = builder.constant(1, bits), builder.constant(0, bits)
    even = builder.compare("eq", builder.binary("and", bits, one), none)
    inexact = builder.binary(
        "or", builder.compare("lt", error, zero), builder.compare("gt", error, zero)
    )
    # the next number away from zero has the next bits, toward zero the ones before
    same_sign = builder.binary("xor", bits, builder.bits(error))
    outward = builder.compare("ge", same_sign, none)
    step = builder.select(outward, one, builder.constant(-1, bits))
    moved = builder.select(builder.binary("and", even, inexact), builder.add(bits, step), bits)
    return builder.from_bits(moved)


def _with_extreme_lanes(
    builder: Builder, operands: tuple[Value, Value, Value], product: Value, result: Value
) -> Value:
    """Return ``result``, but the C library's where its parts had no room."""
    zero = builder.constant(0.0, product)
    safe = None
    for value, least, greatest in (
        (operands[0], -400, 400),
        (operands[1], -400, 400),
        (operands[2], -900, 1000),
    ):
        magnitude = builder.intrinsic("fabs", value)
        is_zero = builder.compare("eq", magnitude, zero)
        low = builder.compare("ge", magnitude, builder.constant(2.0**least, value))
        high = builder.compare("le", magnitude, builder.constant(2.0**greatest, value))
        fits = builder.binary("and", high, builder.binary("or", low, is_zero))
        safe = fits if safe is None else builder.binary("and", safe, fits)
    assert safe is not None
    extreme = builder.binary("xor", safe, builder.constant(True, safe))
    (chosen,) = with_rare_lanes(
        builder, extreme, [result], lambda: [builder.intrinsic("fma", *operands)], "extreme"
    )
    return chosen
