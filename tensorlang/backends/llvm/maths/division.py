"""Lanes divided by one number, through its reciprocal: AVX-512 takes 16 cycles for a division.

Input:  ``divide_by_one(builder, x, d)``, x of 16 lanes of f32 and d of one
Output: ``x / d``, rounded as the division itself rounds

A row is divided by its total like this. The quotient ``q = x r``, ``r = 1 / d``, is off by two
units in the last place at most; ``q + (x - q d) r`` is next to the exact one, and the same step
once more gives what a division would: P. Markstein, "Computation of elementary functions on the IBM
RISC System/6000 processor" (1990). It holds where nothing over- or underflows on the way and zeros
are positive; a test of exponents sends other vectors to the division.
"""

from __future__ import annotations

from tensorlang.backends.llvm.builder import Builder
from tensorlang.backends.llvm.types import I1, Value, constant

_BIAS = {32: 127, 64: 1023}
_MANTISSA_BITS = {32: 23, 64: 52}
_REACH = {32: 60, 64: 500}
"""Both operands lie between two to minus this power and two to this power."""


def divide_by_one(builder: Builder, x: Value, divisor: Value) -> Value:
    """Return the lanes of ``x``, each divided by the scalar ``divisor``."""
    writer = builder.writer
    fast, slow, done = (writer.label(stem) for stem in ("multiply", "divide", "done"))
    writer.branch(_is_safe(builder, x, divisor), fast, slow)
    writer.place(fast)
    by_reciprocal, after_fast = _multiply(builder, x, divisor), writer.block
    writer.jump(done)
    writer.place(slow)
    divided, after_slow = builder.divide(x, divisor), writer.block
    writer.jump(done)
    writer.place(done)
    choices = f"[{by_reciprocal.ref}, %{after_fast}], [{divided.ref}, %{after_slow}]"
    return writer.emit(f"phi {x.type.text} {choices}", x.type)


def _is_safe(builder: Builder, x: Value, divisor: Value) -> Value:
    """Tell whether all lanes and the divisor, a positive one, are far from the range's ends."""
    reach = 2.0 ** _REACH[x.type.bits]
    above = builder.compare("ge", divisor, builder.constant(1 / reach, divisor))
    below = builder.compare("le", divisor, builder.constant(reach, divisor))
    bits = builder.bits(x)
    magnitude = builder.binary("and", bits, constant((1 << (x.type.bits - 1)) - 1, bits.type))
    least, greatest = (_bits_of_power(x, sign * _REACH[x.type.bits]) for sign in (-1, 1))
    distance = builder.subtract(magnitude, constant(least, bits.type))
    inside = builder.compare("lt", distance, constant(greatest - least, bits.type), signed=False)
    usable = builder.binary("or", inside, builder.compare("eq", bits, constant(0, bits.type)))
    every = builder.call(f"llvm.vector.reduce.and.v{x.type.lanes}i1", I1, usable)
    return builder.binary("and", every, builder.binary("and", above, below))


def _bits_of_power(like: Value, power: int) -> int:
    """Return the bits of a power of two."""
    return power + _BIAS[like.type.bits] << _MANTISSA_BITS[like.type.bits]


def _multiply(builder: Builder, x: Value, divisor: Value) -> Value:
    with builder.exact():
        reciprocal = builder.divide(builder.constant(1.0, divisor), divisor)
        less = builder.broadcast(builder.negate(divisor), x.type.lanes)
        r = builder.broadcast(reciprocal, x.type.lanes)
        quotient = builder.multiply(x, r)
        for _ in range(2):
            remainder = builder.intrinsic("fma", less, quotient, x)
            quotient = builder.intrinsic("fma", remainder, r, quotient)
        return quotient
