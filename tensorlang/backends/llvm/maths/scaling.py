"""Products with powers of two by one instruction, where the machine has one (AVX-512).

Input:  ``scale_where(builder, mask, x, n)``, x and n of 16 lanes of f32
Output: ``x * 2^n`` rounded once, infinite where it overflows, and 0 in lanes outside of the mask

The instruction takes a hundred cycles where a result is subnormal or underflows, but not for lanes
outside of its mask.
"""

from __future__ import annotations

from tensorlang.backends.llvm.builder import Builder
from tensorlang.backends.llvm.types import I32, Type, Value, constant, vector

REGISTER_BITS = 512
_CURRENT_ROUNDING = 4  # as the processor's control register says: to nearest


def has_scaling(builder: Builder, type: Type) -> bool:
    """Tell whether values of a type are whole registers of a machine with the instruction."""
    registers, rest = divmod(type.lanes, _lanes(type))
    return builder.scales and registers > 0 and rest == 0 and registers.bit_count() == 1


def scale_where(builder: Builder, mask: Value, value: Value, exponent: Value) -> Value:
    """Return ``value * 2^floor(exponent)`` in the lanes of ``mask``, and 0 in the others."""
    whole = range(value.type.lanes)
    lanes = _lanes(value.type)
    parts = [
        _scale_register(builder, *[_part(builder, v, at, lanes) for v in (mask, value, exponent)])
        for at in whole[::lanes]
    ]
    while len(parts) > 1:
        pairs = zip(parts[::2], parts[1::2], strict=True)
        parts = [builder.shuffle(a, b, range(2 * a.type.lanes)) for a, b in pairs]
    return parts[0]


def _lanes(type: Type) -> int:
    return REGISTER_BITS // type.bits


def _part(builder: Builder, value: Value, at: int, lanes: int) -> Value:
    return (
        value if value.type.lanes == lanes else builder.shuffle(value, None, range(at, at + lanes))
    )


def _scale_register(builder: Builder, mask: Value, value: Value, exponent: Value) -> Value:
    type = value.type
    bits = vector(f"i{type.lanes}", 1)
    lanes = builder.writer.emit(f"bitcast {mask.text} to {bits.text}", bits)
    kind = "ps" if type.bits == 32 else "pd"
    return builder.call(
        f"llvm.x86.avx512.mask.scalef.{kind}.512",
        type,
        value,
        exponent,
        constant(0.0, type),
        lanes,
        constant(_CURRENT_ROUNDING, I32),
    )
