"""Parallel loops: the body becomes a function that threads run, taking iterations as they come.

Input:  ``for i in parallel(M): ...``
Output: a task ``void (ptr data)`` for ``GOMP_parallel``, and a function that it calls with what the
body uses, pointers as ``noalias`` arguments (reloaded from ``data`` they would be plain pointers)

``data`` holds an atomic counter; whoever increments it takes the next few iterations, so that one
call of the task alone completes the loop too: a runtime with one thread is a correct runtime.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tensorlang.backends.llvm.allocation import storage_held
from tensorlang.backends.llvm.builder import Builder
from tensorlang.backends.llvm.context import Context
from tensorlang.backends.llvm.indices import emit_index
from tensorlang.backends.llvm.streaming import emit_fence
from tensorlang.backends.llvm.types import I64, PTR, Value, constant
from tensorlang.backends.llvm.uses import Uses, uses_of
from tensorlang.backends.llvm.writer import FunctionWriter
from tensorlang.ir.program import For, Stmt

_CHUNKS_PER_THREAD = 8


@dataclass(frozen=True, slots=True)
class Field:
    """A value that the body needs: how the caller calls it, and with which attributes."""

    value: Value
    attributes: str = ""


def emit_parallel(context: Context, loop: For, emit_stmt: Callable[[Context, Stmt], None]) -> None:
    """Emit a parallel loop that is not inside another one."""
    options, builder, writer = context.options, context.builder, context.writer
    options.parallel_loops += 1
    name = f"{options.name}.parallel{options.parallel_loops}"
    uses = uses_of(loop.body)
    extent = emit_index(context, loop.extent)
    with context.when(builder.compare("gt", extent, constant(0, I64)), "parallel"):
        assert context.threads is not None
        threads = builder.intrinsic("smin", context.threads, extent)
        threads = builder.intrinsic("smax", threads, constant(1, I64))
        pieces = builder.multiply(threads, constant(_CHUNKS_PER_THREAD, I64))
        chunk = builder.intrinsic("smax", builder.binary("udiv", extent, pieces), constant(1, I64))
        fields = [*_fields(context, uses), Field(extent), Field(chunk)]
        data = _emit_data(context, fields)
        _emit_call(context, name, data, threads)
    writer.module.functions.append(_task_function(context, name, fields))
    _emit_body_function(context, name, fields, loop, uses, emit_stmt)


def _fields(context: Context, uses: Uses) -> list[Field]:
    fields: list[Field] = []
    for buffer, pointer in context.pointers.items():
        if buffer in uses.buffers:
            access = " readonly" if buffer in context.options.inputs else ""
            fields.append(Field(pointer, f" noalias{access}"))
    fields.extend(
        [
            Field(value)
            for variable, value in context.variables.items()
            if variable in uses.variables
        ]
    )
    fields.extend(
        [Field(value) for scalar, value in context.scalars.items() if scalar in uses.scalars]
    )
    assert context.status is not None
    return [*fields, Field(context.status)]


def _struct(fields: list[Field]) -> str:
    """Return the type of the data block: the counter, then the fields."""
    return "{ " + ", ".join(["i64", *[field.value.type.text for field in fields]]) + " }"


def _emit_data(context: Context, fields: list[Field]) -> Value:
    writer, struct = context.writer, _struct(fields)
    data = writer.alloca(struct, 64, PTR)
    writer.line(f"store i64 0, {data.text}")
    for number, field in enumerate(fields, 1):
        place = f"getelementptr {struct}, {data.text}, i32 0, i32 {number}"
        writer.line(f"store {field.value.text}, {writer.emit(place, PTR).text}")
    return data


def _emit_call(context: Context, name: str, data: Value, threads: Value) -> None:
    """Call the task once if there is one thread, else through the OpenMP runtime."""
    writer = context.writer
    writer.module.declare("void @GOMP_parallel(ptr, ptr, i32, i32)")
    several, alone, done = (writer.label(stem) for stem in ("several", "alone", "done"))
    writer.branch(context.builder.compare("gt", threads, constant(1, I64)), several, alone)
    writer.place(several)
    count = context.builder.convert("trunc", threads, "i32")
    writer.line(f"call void @GOMP_parallel(ptr @{name}.task, {data.text}, {count.text}, i32 0)")
    writer.jump(done)
    writer.place(alone)
    writer.line(f"call void @{name}.task({data.text})")
    writer.jump(done)
    writer.place(done)


def _task_function(context: Context, name: str, fields: list[Field]) -> str:
    """Return the function that unpacks the data block."""
    struct, lines, arguments = _struct(fields), list[str](), ["ptr %data"]
    for number, field in enumerate(fields, 1):
        type = field.value.type.text
        lines.append(f"  %p{number} = getelementptr {struct}, ptr %data, i32 0, i32 {number}")
        lines.append(f"  %f{number} = load {type}, ptr %p{number}")
        arguments.append(f"{type} %f{number}")
    lines.append(f"  call void @{name}({', '.join(arguments)})")
    lines.append("  ret void")
    text = "\n".join(lines)
    signature = f"internal void @{name}.task(ptr %data) {context.options.attributes}"
    return f"define {signature} {{\n{text}\n}}\n"


def _emit_body_function(
    outer: Context,
    name: str,
    fields: list[Field],
    loop: For,
    uses: Uses,
    emit_stmt: Callable[[Context, Stmt], None],
) -> None:
    writer = FunctionWriter(outer.writer.module)
    builder = outer.builder.beside(writer)
    arguments = [Value(f"%a{number}", field.value.type) for number, field in enumerate(fields)]
    inner = _inner_context(outer, writer, builder, uses, arguments)
    counter, extent, chunk = Value("%counter", PTR), arguments[-2], arguments[-1]
    with storage_held(inner, loop.body):
        take, work, finished = (writer.label(stem) for stem in ("take", "work", "finished"))
        writer.jump(take)
        writer.place(take)
        first = writer.emit(f"atomicrmw add {counter.text}, {chunk.text} monotonic", I64)
        writer.branch(builder.compare("lt", first, extent), work, finished)
        writer.place(work)
        end = builder.intrinsic("smin", builder.add(first, chunk), extent)
        with inner.scope(), inner.count(first, end, loop.variable.name) as position:
            inner.bind(loop.variable, position, loop.extent)
            emit_stmt(inner, loop.body)
            inner.unbind(loop.variable)
        writer.jump(take)
        writer.place(finished)
    emit_fence(inner, loop.body)
    writer.line("ret void")
    parameters = ", ".join(
        [
            f"{field.value.type.text}{field.attributes} {argument.ref}"
            for field, argument in zip(fields, arguments, strict=True)
        ]
    )
    signature = f"internal void @{name}(ptr noalias {counter.ref}, {parameters})"
    writer.finish(signature, f"noinline {outer.options.attributes}")


def _inner_context(
    outer: Context, writer: FunctionWriter, builder: Builder, uses: Uses, arguments: list[Value]
) -> Context:
    inner = Context(outer.options, writer, builder)
    remaining = iter(arguments)
    for buffer in outer.pointers:
        if buffer in uses.buffers:
            inner.pointers[buffer] = next(remaining)
    for variable in outer.variables:
        if variable in uses.variables:
            inner.bind(variable, next(remaining), outer.extents.get(variable))
    for scalar in outer.scalars:
        if scalar in uses.scalars:
            inner.scalars[scalar] = next(remaining)
    inner.status = next(remaining)
    return inner
