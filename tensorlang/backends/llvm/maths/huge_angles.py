"""Angles of any size, less their multiples of pi/2, by whole-number arithmetic.

    |x| = m 2^e,  m of 53 bits;   |x| 2/pi = q + f,  |f| <= 1/2;   r = f pi/2

Of 2/pi only a window of 192 bits matters: bits before it give multiples of 4, which do not change
the quadrant, and what lies behind it is too small. The window begins at a bit that depends on e,
each lane fetches its own, and ``m`` times the window, modulo its length, has q in its two highest
bits and f in the rest. No f64 is so close to a multiple of pi/2 that fewer than 60 bits of r stay
(M. Payne and R. Hanek, "Radian reduction for trigonometric functions", SIGNUM 1983).

Input:  lanes of f64 from 2^17 on, inf too
Output: r in two parts (NaN for inf), and an integer whose two lowest bits are those of q

It is a function of its own, one for each number of lanes, which is called where some lane is so
large.
"""

from __future__ import annotations

from itertools import pairwise

from tensorlang.backends.llvm.builder import Builder
from tensorlang.backends.llvm.maths.extended import Pair, ordered_sum, pair_product
from tensorlang.backends.llvm.types import Value, vector
from tensorlang.backends.llvm.writer import FunctionWriter

TWO_OVER_PI = (
    0xA2F9836E, 0x4E441529, 0xFC2757D1, 0xF534DDC0, 0xDB629599, 0x3C439041, 0xFE5163AB, 0xDEBBC561,
    0xB7246E3A, 0x424DD2E0, 0x06492EEA, 0x09D1921C, 0xFE1DEB1C, 0xB129A73E, 0xE88235F5, 0x2EBB4484,
    0xE99C7026, 0xB45F7E41, 0x3991D639, 0x835339F4, 0x9C845F8B, 0xBDF9283B, 0x1FF897FF, 0xDE05980F,
    0xEF2F118B, 0x5A0A6D1F, 0x6D367ECF, 0x27CB09B7, 0x4F463F66, 0x9E5FEA2D, 0x7527BAC7, 0xEBE5F17B,
    0x3D0739F7, 0x8A5292EA, 0x6BFB5FB1, 0x1F8D5D08, 0x56033046, 0xFC7B6BAB,
)  # fmt: skip
"""The bits of 2/pi, 32 a word."""

_HALF_PI = (float.fromhex("0x1.921fb54442d18p+0"), float.fromhex("0x1.1a62633145c07p-54"))
_TABLE = "@tensorlang.two_over_pi"
_LEADING = 2  # words of zeros before the table, for the smallest exponents
_WORDS = 6
_MASK = 0xFFFF_FFFF


def reduce_huge(builder: Builder, x: Value) -> tuple[Pair, Value]:
    """Return r and q of f64 lanes, all of them at least 2^17 in magnitude."""
    module, type = builder.writer.module, x.type
    integers = vector("i64", type.lanes)
    name = f"@tensorlang.reduce_huge.{type.suffix}"
    result = f"{{ {type.text}, {type.text}, {integers.text} }}"
    if name not in module.helpers:
        module.helper(_TABLE, _table())
        writer = FunctionWriter(module)
        (high, low), quadrant = _reduce(builder.beside(writer), Value("%x", type))
        packed = f"{result} poison"
        for place, part in enumerate((high, low, quadrant)):
            name_of_packed = writer.name("packed")
            writer.line(f"{name_of_packed} = insertvalue {packed}, {part.text}, {place}")
            packed = f"{result} {name_of_packed}"
        writer.line(f"ret {packed}")
        signature = f"internal {result} {name}({type.text} %x)"
        module.helper(name, writer.text(signature, "cold noinline nounwind"))
    writer = builder.writer
    call = writer.name("huge")
    writer.line(f"{call} = call {result} {name}({x.text})")
    high = writer.emit(f"extractvalue {result} {call}, 0", type)
    low = writer.emit(f"extractvalue {result} {call}, 1", type)
    return (high, low), writer.emit(f"extractvalue {result} {call}, 2", integers)


def _table() -> str:
    words = ", ".join(f"i32 {word}" for word in (*[0] * _LEADING, *TWO_OVER_PI))
    count = _LEADING + len(TWO_OVER_PI)
    return f"{_TABLE} = internal constant [{count} x i32] [{words}], align 4\n"


def _reduce(builder: Builder, x: Value) -> tuple[Pair, Value]:
    bits = builder.bits(x)

    def shifted(value: Value, operation: str, by: int) -> Value:
        return builder.binary(operation, value, builder.constant(by, value))

    def low_word(value: Value) -> Value:
        return builder.binary("and", value, builder.constant(_MASK, value))

    # m as two words, and the place of the window: its first bit has the weight 2 after m 2^e
    biased = shifted(shifted(bits, "shl", 1), "lshr", 53)
    fraction = builder.binary("and", bits, builder.constant((1 << 52) - 1, bits))
    mantissa = builder.binary("or", fraction, builder.constant(1 << 52, bits))
    factor_low, factor_high = low_word(mantissa), shifted(mantissa, "lshr", 32)
    place = builder.add(biased, builder.constant(32 * _LEADING - 2 - 1075, biased))
    window = _window(builder, place)

    # the product's words from the lowest on; each sum fits 64 bits
    product = list[Value]()
    carry = builder.constant(0, bits)
    before = None
    for word in window:
        part = builder.multiply(factor_low, word)
        total = builder.add(low_word(part), carry)
        if before is not None:
            total = builder.add(total, builder.multiply(factor_high, before))
        product.append(low_word(total))
        carry = builder.add(shifted(total, "lshr", 32), shifted(part, "lshr", 32))
        before = word

    # q is rounded, and the rest is a signed fraction of 2^62
    top = builder.binary("or", shifted(product[5], "shl", 32), product[4])
    quadrant = shifted(builder.add(top, builder.constant(1 << 61, top)), "lshr", 62)
    rest = builder.subtract(top, shifted(quadrant, "shl", 62))
    words = (shifted(rest, "ashr", 32), low_word(rest), product[3], product[2])
    parts = [
        builder.multiply(
            _small_to_float(builder, word, x), builder.constant(2.0 ** (-30 - 32 * place_), x)
        )
        for place_, word in enumerate(words)
    ]
    high, error = ordered_sum(builder, parts[0], parts[1])
    high, error_below = ordered_sum(builder, high, parts[2])
    low = builder.add(builder.add(error, error_below), parts[3])
    turn = ordered_sum(builder, high, low)
    half_pi = builder.constant(_HALF_PI[0], x), builder.constant(_HALF_PI[1], x)
    high, low = pair_product(builder, turn, half_pi)

    # the sign of x, and NaN for inf
    sign = builder.binary("and", bits, builder.constant(-(2**63), bits))
    high, low = (
        builder.from_bits(builder.binary("xor", builder.bits(part), sign)) for part in (high, low)
    )
    high = builder.add(high, builder.subtract(x, x))
    negative = builder.compare("lt", bits, builder.constant(0, bits))
    return (high, low), builder.select(negative, builder.negate(quadrant), quadrant)


def _window(builder: Builder, place: Value) -> list[Value]:
    """Return 192 bits of the table from bit ``place`` on, 32 a lane, the lowest first."""
    index = builder.binary("lshr", place, builder.constant(5, place))
    offset = builder.binary("and", place, builder.constant(31, place))
    words = [
        _fetch(builder, builder.add(index, builder.constant(k, index))) for k in range(_WORDS + 1)
    ]
    shift = builder.subtract(builder.constant(32, offset), offset)
    mask = builder.constant(_MASK, offset)
    result = list[Value]()
    for first, second in pairwise(words):
        upper = builder.binary("shl", first, builder.constant(32, first))
        both = builder.binary("lshr", builder.binary("or", upper, second), shift)
        result.append(builder.binary("and", both, mask))
    return result[::-1]


def _fetch(builder: Builder, index: Value) -> Value:
    """Return a word of the table for each lane, as i64; one load a lane, which any target has."""
    writer, lanes = builder.writer, index.type.lanes
    word, words, pointer = vector("i32", 1), vector("i32", lanes), vector("ptr", 1)
    result = Value("poison", words)
    for lane in range(lanes):
        place = builder.extract(index, lane) if lanes > 1 else index
        address = writer.emit(f"getelementptr i32, ptr {_TABLE}, {place.text}", pointer)
        loaded = writer.emit(f"load i32, {address.text}, align 4", word)
        if lanes == 1:
            return builder.convert("zext", loaded, "i64")
        result = writer.emit(f"insertelement {result.text}, {loaded.text}, i64 {lane}", words)
    return builder.convert("zext", result, "i64")


def _small_to_float(builder: Builder, value: Value, like: Value) -> Value:
    """Return integers of at most 33 bits as f64, through the mantissa of a large number."""
    magic = builder.constant(1.5 * 2.0**52, like)
    sum_ = builder.add(value, builder.bits(magic))
    return builder.subtract(builder.from_bits(sum_), magic)
