"""Storage of temporaries: registers and stack for small constant sizes, the heap for others.

Input:  ``Allocate(T[M, 16])`` inside a loop over i
Output: one ``aligned_alloc`` before the loop, for the size does not depend on i, and one ``free``

Each iteration has storage of its own only in so far as it never sees what another one left, so a
loop that runs serially allocates once. Places between rows are zero from the beginning: a vector
that ends beyond its row passes through them, and what an earlier owner of the memory left there may
be subnormal, which processors are a hundred times slower to multiply.

When memory runs out the body is skipped, what was allocated is freed, and the entry function
returns 2.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager

from tensorlang.backends.llvm.checks import emit_out_of_memory
from tensorlang.backends.llvm.context import OWN_ALIGNMENT, Context
from tensorlang.backends.llvm.indices import emit_index
from tensorlang.backends.llvm.types import I1, I64, PTR, Value, constant, memory_type
from tensorlang.ir.affine import variables_of
from tensorlang.ir.lowered import Allocate, Buffer
from tensorlang.ir.program import For, Stmt
from tensorlang.ir.walk import children_of
from tensorlang.lower.data import depends_on_data

_LARGEST_LOCAL = 64 * 1024
_LARGEST_TEMPORARY = 16 * 1024
_LARGEST_FRAME = 256 * 1024


def emit_allocate(
    context: Context, stmt: Allocate, emit_stmt: Callable[[Context, Stmt], None]
) -> None:
    """Emit the body of an allocation with storage for its buffer."""
    buffer = stmt.buffer
    if buffer in context.pointers:  # allocated before the loop around this
        _emit_body(context, stmt, emit_stmt)
    elif _fits_stack(context, buffer):
        with _on_stack(context, buffer):
            _emit_body(context, stmt, emit_stmt)
    else:
        with _on_heap(context, buffer):
            _emit_body(context, stmt, emit_stmt)


def _emit_body(
    context: Context, stmt: Allocate, emit_stmt: Callable[[Context, Stmt], None]
) -> None:
    if stmt.zeroed:
        pointer, size = context.pointers[stmt.buffer], _size_in_bytes(context, stmt.buffer)
        context.writer.line(_set_to_zero(context, pointer, size))
    emit_stmt(context, stmt.body)


def _set_to_zero(context: Context, pointer: Value, size: Value) -> str:
    """Return the instruction that clears ``size`` bytes."""
    context.writer.module.declare("void @llvm.memset.p0.i64(ptr, i8, i64, i1)")
    return (
        f"call void @llvm.memset.p0.i64(ptr align {OWN_ALIGNMENT} {pointer.ref}, i8 0, "
        f"{size.text}, i1 false)"
    )


@contextmanager
def storage_held(context: Context, body: Stmt) -> Generator[None, None, None]:
    """Allocate, around a loop, what its body allocates anew each time with one size."""
    with ExitStack() as stack:
        for buffer in dict.fromkeys(_allocated_in(body, context.threads is not None)):
            known = variables_of(buffer.size) <= context.variables.keys()
            if (
                known
                and not depends_on_data(buffer.size)
                and buffer not in context.pointers
                and not _fits_stack(context, buffer)
            ):
                stack.enter_context(_on_heap(context, buffer))
        yield


def _allocated_in(stmt: Stmt, outlines: bool) -> Iterator[Buffer]:
    """Yield what is allocated below ``stmt``, but for the bodies of functions of their own."""
    if isinstance(stmt, Allocate):
        yield stmt.buffer
    if outlines and isinstance(stmt, For) and stmt.kind == "parallel":
        return
    for child in children_of(stmt):
        yield from _allocated_in(child, outlines)


def _fits_stack(context: Context, buffer: Buffer) -> bool:
    if not buffer.size.is_constant:
        return False
    size = buffer.size.constant * memory_type(buffer.dtype).bits // 8
    limit = _LARGEST_LOCAL if buffer.scope == "local" else _LARGEST_TEMPORARY
    return size <= limit and context.stack_bytes + size <= _LARGEST_FRAME


@contextmanager
def _on_stack(context: Context, buffer: Buffer) -> Generator[None, None, None]:
    count = max(buffer.size.constant, 1)
    element = memory_type(buffer.dtype)
    context.stack_bytes += count * element.bits // 8
    pointer = context.writer.alloca(f"[{count} x {element.text}]", OWN_ALIGNMENT, PTR)
    if buffer.gaps:
        size = constant(count * element.bits // 8, I64)
        with context.writer.at_entry():
            context.writer.line(_set_to_zero(context, pointer, size))
    context.pointers[buffer] = pointer
    context.options.owned.add(buffer)
    context.private.add(buffer)
    yield
    context.private.discard(buffer)
    del context.pointers[buffer]


@contextmanager
def _on_heap(context: Context, buffer: Buffer) -> Generator[None, None, None]:
    writer, builder = context.writer, context.builder
    size = _size_in_bytes(context, buffer)
    writer.module.declare("noalias ptr @aligned_alloc(i64, i64) nounwind")
    writer.module.declare("void @free(ptr) nounwind")
    rounded = builder.binary("add", size, constant(OWN_ALIGNMENT, I64))
    rounded = builder.binary("and", rounded, constant(-OWN_ALIGNMENT, I64))
    pointer = writer.emit(f"call ptr @aligned_alloc(i64 {OWN_ALIGNMENT}, {rounded.text})", PTR)
    usable, exhausted, done = (writer.label(stem) for stem in ("usable", "exhausted", "done"))
    writer.branch(writer.emit(f"icmp ne {pointer.text}, null", I1), usable, exhausted)
    writer.place(exhausted)
    emit_out_of_memory(context)
    writer.jump(done)
    writer.place(usable)
    context.pointers[buffer] = pointer
    context.options.owned.add(buffer)
    if buffer.gaps:
        writer.line(_set_to_zero(context, pointer, size))
    with context.scope():
        yield
    del context.pointers[buffer]
    writer.line(f"call void @free({pointer.text})")
    writer.jump(done)
    writer.place(done)


def _size_in_bytes(context: Context, buffer: Buffer) -> Value:
    """Return the size; a negative one, of a loop that does not run, counts as 0."""
    builder = context.builder
    with context.values.scope():
        size = emit_index(context, buffer.size)
    size = builder.intrinsic("smax", size, constant(0, I64))
    return builder.binary("mul", size, constant(memory_type(buffer.dtype).bits // 8, I64))
