"""Conversions between dtypes, and between registers and memory.

Float to integer saturates and takes NaN to 0; integers wrap; anything to bool is ``x != 0``. bf16
and f16 are ``i16`` in memory and ``float`` in registers; where the machine has no instruction for
them the bits are moved here, so that no support library is needed.
"""

from __future__ import annotations

from tensorlang.backends.llvm.builder import Builder
from tensorlang.backends.llvm.types import Value, memory_type, register_type, vector
from tensorlang.dtypes import DType, bf16, bool_, evaluation_dtype, f16


def convert(builder: Builder, value: Value, source: DType, target: DType, half: bool) -> Value:
    """Return a value of ``source`` in registers as one of ``target``; f16 and bf16 are rounded."""
    rounded = target in (f16, bf16) and source is not target
    from_dtype, to_dtype = evaluation_dtype(source), evaluation_dtype(target)
    if from_dtype is not to_dtype:
        value = _convert(builder, value, from_dtype, to_dtype)
    if rounded:
        return from_memory(builder, to_memory(builder, value, target, half), target, half)
    return value


def _convert(builder: Builder, value: Value, source: DType, target: DType) -> Value:
    element = register_type(target).element
    if target is bool_:
        return builder.compare("ne", value, builder.constant(0, value))
    match source.kind, target.kind:
        case "float", "float":
            return builder.convert(
                "fpext" if target.bits > source.bits else "fptrunc", value, element
            )
        case "float", _:
            operation = "fptosi" if target.kind == "int" else "fptoui"
            return _saturating(builder, operation, value, element)
        case _, "float":
            return builder.convert("sitofp" if source.kind == "int" else "uitofp", value, element)
        case _:
            if target.bits < source.bits:
                return builder.convert("trunc", value, element)
            return builder.convert("sext" if source.kind == "int" else "zext", value, element)


def _saturating(builder: Builder, operation: str, value: Value, element: str) -> Value:
    result = vector(element, value.type.lanes)
    name = f"llvm.{operation}.sat.{result.suffix}.{value.type.suffix}"
    return builder.call(name, result, value)


def to_memory(builder: Builder, value: Value, dtype: DType, half: bool) -> Value:
    """Return a value in registers as it lies in memory."""
    if dtype is bool_:
        return builder.convert("zext", value, "i8")
    if dtype is bf16:
        return _to_bfloat(builder, value)
    if dtype is f16:
        if half:
            return builder.convert("bitcast", builder.convert("fptrunc", value, "half"), "i16")
        return _to_half(builder, value)
    return value


def from_memory(builder: Builder, value: Value, dtype: DType, half: bool) -> Value:
    """Return an element as it lies in memory as a value in registers."""
    if dtype is bool_:
        return builder.compare("ne", value, builder.constant(0, value))
    if dtype is bf16:
        wide = builder.convert("zext", value, "i32")
        return builder.from_bits(builder.binary("shl", wide, builder.constant(16, wide)))
    if dtype is f16:
        if half:
            return builder.convert("fpext", builder.convert("bitcast", value, "half"), "float")
        return _from_half(builder, value)
    return value


def passthrough(dtype: DType, lanes: int) -> str:
    """Return what a masked load puts into the lanes that it skips."""
    return f"{memory_type(dtype, lanes).text} zeroinitializer"


def _to_bfloat(builder: Builder, value: Value) -> Value:
    """Round to the upper 16 bits, ties to even; NaN stays NaN."""
    bits = builder.bits(value)
    upper = builder.binary("lshr", bits, builder.constant(16, bits))
    odd = builder.binary("and", upper, builder.constant(1, bits))
    rounded = builder.add(bits, builder.add(odd, builder.constant(0x7FFF, bits)))
    rounded = builder.binary("lshr", rounded, builder.constant(16, bits))
    quiet = builder.binary("or", upper, builder.constant(0x40, bits))
    return builder.convert("trunc", builder.select(builder.is_nan(value), quiet, rounded), "i16")


def _to_half(builder: Builder, value: Value) -> Value:
    """Round an f32 to the bits of an f16 by integer arithmetic, ties to even."""
    bits = builder.bits(value)

    def literal(number: int) -> Value:
        return builder.constant(number, bits)

    sign = builder.binary("and", builder.binary("lshr", bits, literal(16)), literal(0x8000))
    magnitude = builder.binary("and", bits, literal(0x7FFFFFFF))
    # normal: move the exponent's bias from 127 to 15 and round the 13 bits that go
    odd = builder.binary("and", builder.binary("lshr", magnitude, literal(13)), literal(1))
    rounded = builder.add(magnitude, builder.add(odd, literal(0xFFF - (112 << 23))))
    normal = builder.binary("lshr", rounded, literal(13))
    # subnormal: adding 0.5 lets the hardware round at the place of 2**-24
    small = builder.add(builder.from_bits(magnitude), builder.constant(0.5, value))
    subnormal = builder.subtract(builder.bits(small), literal(0x3F000000))
    is_small = builder.compare("lt", magnitude, literal(0x38800000), signed=False)
    result = builder.select(is_small, subnormal, normal)
    is_large = builder.compare("ge", magnitude, literal(0x47800000), signed=False)
    result = builder.select(is_large, literal(0x7C00), result)
    is_nan = builder.compare("gt", magnitude, literal(0x7F800000), signed=False)
    result = builder.select(is_nan, literal(0x7E00), result)
    return builder.convert("trunc", builder.binary("or", result, sign), "i16")


def _from_half(builder: Builder, value: Value) -> Value:
    """Widen the bits of an f16 to an f32, exactly."""
    wide = builder.convert("zext", value, "i32")

    def literal(number: int) -> Value:
        return builder.constant(number, wide)

    magnitude = builder.binary("shl", builder.binary("and", wide, literal(0x7FFF)), literal(13))
    # scaling by 2**112 moves the bias and makes subnormals normal
    scaled = builder.from_bits(magnitude)
    scaled = builder.multiply(scaled, builder.constant(2.0**112, scaled))
    special = builder.from_bits(builder.binary("or", magnitude, literal(0x7F800000)))
    is_special = builder.compare("ge", magnitude, literal(0x0F800000), signed=False)
    result = builder.bits(builder.select(is_special, special, scaled))
    sign = builder.binary("shl", builder.binary("and", wide, literal(0x8000)), literal(16))
    return builder.from_bits(builder.binary("or", result, sign))
