"""Loads and stores of flat buffers, scalar or in all lanes of a vectorized loop.

How the address moves from lane to lane chooses the instruction:

    0    one scalar load, used by all lanes        store: the last active lane's value
    1    a vector load or store, masked in tails
    -1   the same, reversed
    2    two vector loads and a shuffle; a scatter
    else gather and scatter

Local buffers are never accessed through masked instructions, which would keep them out of
registers: loads read every lane, and stores blend with what is there.
"""

from __future__ import annotations

from tensorlang.backends.llvm.context import OWN_ALIGNMENT, Context
from tensorlang.backends.llvm.conversions import from_memory, passthrough, to_memory
from tensorlang.backends.llvm.indices import (
    constant_bounds,
    emit_index,
    known_alignment,
    lane_stride,
    lane_zero,
)
from tensorlang.backends.llvm.masks import any_lane
from tensorlang.backends.llvm.streaming import store_past_caches
from tensorlang.backends.llvm.types import (
    I64,
    Type,
    Value,
    constant,
    lane_constants,
    memory_type,
    vector,
)
from tensorlang.ir.affine import Affine, substitute
from tensorlang.ir.lowered import Buffer


def emit_load(context: Context, buffer: Buffer, offset: Affine) -> Value:
    """Return an element: a scalar if the address is the same in every lane, else a vector."""
    stride = lane_stride(context, offset)
    if stride == 0:
        raw = _load_uniform(context, buffer, offset)
    elif stride is None:
        raw = _gather(context, buffer, emit_index(context, offset), offset)
    else:
        raw = _load_strided(context, buffer, offset, stride)
    half = context.options.target.half_conversion
    return from_memory(context.builder, raw, buffer.dtype, half)


def emit_store(context: Context, buffer: Buffer, offset: Affine, value: Value) -> None:
    """Store a value of the buffer's evaluation dtype in the active lanes."""
    half = context.options.target.half_conversion
    stored = to_memory(context.builder, value, buffer.dtype, half)
    stride = lane_stride(context, offset)
    if stride == 0:
        _store_uniform(context, buffer, offset, stored)
        return
    stored = context.builder.broadcast(stored, context.lanes)
    if stride is None:
        _scatter(context, buffer, emit_index(context, offset), offset, stored)
    else:
        _store_strided(context, buffer, offset, stride, stored)


def emit_prefetch(context: Context, buffer: Buffer, offset: Affine, locality: int) -> None:
    """Ask for the cache line of an element; the instruction ignores an address that is not ours.

    A line of a result is asked for to be written. What the program allocates may be read by several
    threads, and stays shared.
    """
    address = _address(context, buffer, offset, inbounds=False)
    pointer = address.type
    name = f"@llvm.prefetch.{pointer.suffix}"
    context.writer.module.declare(f"void {name}({pointer.text}, i32, i32, i32)")
    writes = int(buffer not in context.options.inputs and buffer not in context.options.owned)
    context.writer.line(f"call void {name}({address.text}, i32 {writes}, i32 {locality}, i32 1)")


# --- one address for all lanes -------------------------------------------------------------------


def _load_uniform(context: Context, buffer: Buffer, offset: Affine) -> Value:
    type = memory_type(buffer.dtype)

    def load() -> Value:
        return _load(
            context, _address(context, buffer, offset), type, _alignment(context, buffer, offset)
        )

    mask = context.mask
    if mask is None or mask.nonempty or _is_inside(context, buffer, offset, 0):
        return load()
    # Without an active lane the address may lie outside the buffer.
    return context.choose(any_lane(context, mask.value), load, lambda: constant(0, type))


def _store_uniform(context: Context, buffer: Buffer, offset: Affine, value: Value) -> None:
    builder, mask, lanes = context.builder, context.mask, context.lanes
    address = _address(context, buffer, offset, inbounds=mask is None)
    alignment = _alignment(context, buffer, offset)
    if mask is None or (mask.nonempty and value.type.lanes == 1):
        last = builder.extract(value, lanes - 1) if value.type.lanes > 1 else value
        context.writer.line(f"store {last.text}, {address.text}, align {alignment}")
        return
    if value.type.lanes == 1:
        with context.when(any_lane(context, mask.value)):
            context.writer.line(f"store {value.text}, {address.text}, align {alignment}")
        return
    # A scatter to one address stores lane after lane, so that the last active one remains.
    _emit_scatter(context, value, builder.broadcast(address, lanes), alignment)


# --- addresses that move steadily ----------------------------------------------------------------


def _load_strided(context: Context, buffer: Buffer, offset: Affine, stride: int) -> Value:
    lanes, mask = context.lanes, context.mask
    start = lane_zero(context, offset)
    inside = _is_inside(context, buffer, start, stride * (lanes - 1))
    if inside and buffer.scope == "local" and buffer in context.private and abs(stride) != 1:
        return _load_lane_by_lane(context, buffer, start, stride)
    unmasked = mask is None or inside
    if stride in (1, -1):
        lowest = start if stride == 1 else start - (lanes - 1)
        selected = None if mask is None or inside else mask.value
        if selected is not None and stride == -1:
            selected = _reversed(context, selected)
        loaded = _load_vector(context, buffer, lowest, selected)
        return loaded if stride == 1 else _reversed(context, loaded)
    if stride == 2 and lanes % 2 == 0 and (unmasked or _has_masked_loads(context, buffer)):
        selected = None if mask is None or inside else mask.value
        return _load_every_second(context, buffer, start, selected)
    return _gather_steps(context, buffer, start, stride)


def _store_strided(
    context: Context, buffer: Buffer, offset: Affine, stride: int, value: Value
) -> None:
    lanes, mask, builder = context.lanes, context.mask, context.builder
    start = lane_zero(context, offset)
    inside = _is_inside(context, buffer, start, stride * (lanes - 1))
    if inside and buffer in context.private:
        if mask is not None:
            before = _load_strided(context, buffer, offset, stride)
            value = builder.select(mask.value, value, before)
            mask = None
        if abs(stride) != 1:
            _store_lane_by_lane(context, buffer, start, stride, value)
            return
    if stride not in (1, -1):
        addresses = _addresses_of_steps(context, buffer, start, stride)
        _emit_scatter(context, value, addresses, _alignment(context, buffer, offset))
        return
    selected = None if mask is None else mask.value
    if stride == -1:
        start = start - (lanes - 1)
        value = _reversed(context, value)
        selected = None if selected is None else _reversed(context, selected)
    _store_vector(context, buffer, start, value, selected)


def _load_vector(context: Context, buffer: Buffer, start: Affine, mask: Value | None) -> Value:
    type = memory_type(buffer.dtype, context.lanes)
    alignment = _alignment(context, buffer, start)
    address = _address(context, buffer, start, inbounds=mask is None)
    if mask is None:
        return _load(context, address, type, alignment)
    pointer = address.type
    name = f"@llvm.masked.load.{type.suffix}.{pointer.suffix}"
    signature = f"{pointer.text}, {mask.type.text}, {type.text}"
    context.writer.module.declare(f"{type.text} {name}({signature})")
    operands = (
        f"{pointer.text} align {alignment} {address.ref}, {mask.text}, "
        f"{passthrough(buffer.dtype, context.lanes)}"
    )
    return context.writer.emit(f"call {type.text} {name}({operands})", type)


def _store_vector(
    context: Context, buffer: Buffer, start: Affine, value: Value, mask: Value | None
) -> None:
    alignment = _alignment(context, buffer, start)
    address = _address(context, buffer, start, inbounds=mask is None)
    if mask is None:
        if buffer.streamed:
            store_past_caches(context, value, address, alignment)
        else:
            context.writer.line(f"store {value.text}, {address.text}, align {alignment}")
        return
    pointer = address.type
    name = f"@llvm.masked.store.{value.type.suffix}.{pointer.suffix}"
    signature = f"{value.type.text}, {pointer.text}, {mask.type.text}"
    context.writer.module.declare(f"void {name}({signature})")
    operands = f"{value.text}, {pointer.text} align {alignment} {address.ref}, {mask.text}"
    context.writer.line(f"call void {name}({operands})")


def _load_every_second(
    context: Context, buffer: Buffer, start: Affine, mask: Value | None
) -> Value:
    """Load elements 0, 2, 4, ... through two vectors that read nothing after the last of them.

    Under a ``mask`` they read those elements alone whose lanes are active.
    """
    lanes, builder = context.lanes, context.builder
    lower, upper = None, None
    if mask is not None:
        none = Value("zeroinitializer", mask.type)
        half = lanes // 2
        lower = builder.shuffle(mask, none, [n for lane in range(half) for n in (lane, lanes)])
        upper = builder.shuffle(
            mask, none, [n for lane in range(half, lanes) for n in (lanes, lane)]
        )
    first = _load_vector(context, buffer, start, lower)
    second = _load_vector(context, buffer, start + (lanes - 1), upper)
    even = list(range(0, lanes, 2))
    odd = list(range(lanes + 1, 2 * lanes, 2))
    return builder.shuffle(first, second, even + odd)


def _has_masked_loads(context: Context, buffer: Buffer) -> bool:
    """Tell whether the processor has an instruction for a vector load that leaves lanes out."""
    bits = memory_type(buffer.dtype).bits
    return bits in (32, 64) and context.options.target.vector_bits >= 256


def _load_lane_by_lane(context: Context, buffer: Buffer, start: Affine, stride: int) -> Value:
    type, scalar = memory_type(buffer.dtype, context.lanes), memory_type(buffer.dtype)
    result = Value("poison", type)
    for lane in range(context.lanes):
        offset = start + stride * lane
        address = _address(context, buffer, offset)
        element = _load(context, address, scalar, _alignment(context, buffer, offset))
        result = context.writer.emit(
            f"insertelement {result.text}, {element.text}, i64 {lane}", type
        )
    return result


def _store_lane_by_lane(
    context: Context, buffer: Buffer, start: Affine, stride: int, value: Value
) -> None:
    for lane in range(context.lanes):
        offset = start + stride * lane
        element = context.builder.extract(value, lane)
        address = _address(context, buffer, offset)
        alignment = _alignment(context, buffer, offset)
        context.writer.line(f"store {element.text}, {address.text}, align {alignment}")


# --- any addresses -------------------------------------------------------------------------------


def _gather(context: Context, buffer: Buffer, offsets: Value, form: Affine) -> Value:
    return _emit_gather(context, buffer, _addresses(context, buffer, offsets), form)


def _gather_steps(context: Context, buffer: Buffer, start: Affine, stride: int) -> Value:
    return _emit_gather(context, buffer, _addresses_of_steps(context, buffer, start, stride), start)


def _emit_gather(context: Context, buffer: Buffer, addresses: Value, form: Affine) -> Value:
    type = memory_type(buffer.dtype, context.lanes)
    mask = _mask_or_all(context)
    name = f"@llvm.masked.gather.{type.suffix}.{addresses.type.suffix}"
    signature = f"{addresses.type.text}, {mask.type.text}, {type.text}"
    context.writer.module.declare(f"{type.text} {name}({signature})")
    alignment = min(_alignment(context, buffer, form), type.bits // 8)
    operands = (
        f"{addresses.type.text} align {alignment} {addresses.ref}, {mask.text}, "
        f"{passthrough(buffer.dtype, context.lanes)}"
    )
    return context.writer.emit(f"call {type.text} {name}({operands})", type)


def _scatter(context: Context, buffer: Buffer, offsets: Value, form: Affine, value: Value) -> None:
    addresses = _addresses(context, buffer, offsets)
    _emit_scatter(
        context, value, addresses, min(_alignment(context, buffer, form), value.type.bits // 8)
    )


def _emit_scatter(context: Context, value: Value, addresses: Value, alignment: int) -> None:
    mask = _mask_or_all(context)
    name = f"@llvm.masked.scatter.{value.type.suffix}.{addresses.type.suffix}"
    signature = f"{value.type.text}, {addresses.type.text}, {mask.type.text}"
    context.writer.module.declare(f"void {name}({signature})")
    operands = f"{value.text}, {addresses.type.text} align {alignment} {addresses.ref}, {mask.text}"
    context.writer.line(f"call void {name}({operands})")


def _addresses(context: Context, buffer: Buffer, offsets: Value) -> Value:
    element = memory_type(buffer.dtype).text
    pointer = context.pointers[buffer]
    type = vector(pointer.type.element, context.lanes)
    return context.writer.emit(f"getelementptr {element}, {pointer.text}, {offsets.text}", type)


def _addresses_of_steps(context: Context, buffer: Buffer, start: Affine, stride: int) -> Value:
    """Return addresses as a base and constant steps, which need no 64-bit arithmetic a lane."""
    element = memory_type(buffer.dtype).text
    base = _address(context, buffer, start, inbounds=False)
    type = vector(base.type.element, context.lanes)
    steps = lane_constants(range(0, stride * context.lanes, stride), "i64")
    return context.writer.emit(f"getelementptr {element}, {base.text}, {steps.text}", type)


# --- shared --------------------------------------------------------------------------------------


def _address(context: Context, buffer: Buffer, offset: Affine, inbounds: bool = True) -> Value:
    """Return the address of an element; a masked access may name one outside the buffer."""
    pointer = context.pointers[buffer]
    if offset.is_constant and offset.constant == 0:
        return pointer
    element = memory_type(buffer.dtype).text
    position = emit_index(context, offset)
    word = "inbounds " if inbounds else ""
    return context.writer.emit(
        f"getelementptr {word}{element}, {pointer.text}, {I64.text} {position.ref}", pointer.type
    )


def _load(context: Context, address: Value, type: Type, alignment: int) -> Value:
    return context.writer.emit(f"load {type.text}, {address.text}, align {alignment}", type)


def _alignment(context: Context, buffer: Buffer, offset: Affine) -> int:
    options = context.options
    promised = OWN_ALIGNMENT if buffer in options.owned else options.alignment
    if options.facts:  # N = 4 * n: then N * i + 4 * j is a multiple of 4
        offset = substitute(offset, options.facts)
    base = max(buffer.alignment, promised)
    return known_alignment(offset, memory_type(buffer.dtype).bits // 8, base)


def _is_inside(context: Context, buffer: Buffer, start: Affine, span: int) -> bool:
    """Whether all of ``start .. start + span`` lies in a buffer of constant size, for certain."""
    if not buffer.size.is_constant:
        return False
    limits = constant_bounds(context, start)
    if limits is None:
        return False
    return limits[0] + min(span, 0) >= 0 and limits[1] + max(span, 0) < buffer.size.constant


def _mask_or_all(context: Context) -> Value:
    if context.mask is not None:
        return context.mask.value
    return constant(True, vector("i1", context.lanes))


def _reversed(context: Context, value: Value) -> Value:
    return context.builder.shuffle(value, None, range(context.lanes - 1, -1, -1))
