"""Stores that go past the caches, and the fence that makes other threads see them.

Input:  ``store <8 x float> %v, ptr %p``, to a streamed buffer
Output: ``store <8 x float> %v, ptr %p, align 32, !nontemporal !0``, and ``sfence`` at the end

x86 has such stores for aligned addresses only: where the alignment is not known, it is asked, and
the plain store remains for the other case. They are ordered with nothing, not even with the barrier
at the end of a parallel loop, so each thread ends its share of the work with a fence. What the same
thread reads back it sees in any case.
"""

from __future__ import annotations

from tensorlang.backends.llvm.context import Context
from tensorlang.backends.llvm.types import Value
from tensorlang.ir.lowered import Buffer, Store
from tensorlang.ir.program import Stmt
from tensorlang.ir.walk import iterate

_LEAST_BYTES = 16


def store_past_caches(context: Context, value: Value, address: Value, alignment: int) -> None:
    """Store a whole vector past the caches if the processor can."""
    writer, target = context.writer, context.options.target
    size = value.type.bits * value.type.lanes // 8
    needed = min(size, target.vector_bits // 8) if target.is_x86 else 1
    plain = f"store {value.text}, {address.text}, align {alignment}"
    if size < _LEAST_BYTES or size & (size - 1):
        writer.line(plain)
        return
    writer.module.helper("!streaming", "!0 = !{i32 1}")
    past = f"store {value.text}, {address.text}, align {max(alignment, needed)}, !nontemporal !0"
    if alignment >= needed:
        writer.line(past)
        return
    aligned, other, done = (writer.label(stem) for stem in ("aligned", "other", "done"))
    number = context.builder.convert("ptrtoint", address, "i64")
    low = context.builder.binary("and", number, context.builder.constant(needed - 1, number))
    is_aligned = context.builder.compare("eq", low, context.builder.constant(0, low))
    writer.branch(is_aligned, aligned, other)
    for label, store in ((aligned, past), (other, plain)):
        writer.place(label)
        writer.line(store)
        writer.jump(done)
    writer.place(done)


def emit_fence(context: Context, body: Stmt) -> None:
    """Make what ``body`` has stored past the caches visible to others, if it has."""
    if not any(buffer.streamed for buffer in _stored(body)):
        return
    if context.options.target.is_x86:
        context.writer.module.declare("void @llvm.x86.sse.sfence()")
        context.writer.line("call void @llvm.x86.sse.sfence()")
    else:
        context.writer.line("fence seq_cst")


def _stored(body: Stmt) -> set[Buffer]:
    return {
        buffer for stmt in iterate(body) if isinstance(stmt, Store) for buffer, _ in stmt.targets
    }
