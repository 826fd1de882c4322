"""A lowered program as the text of an LLVM module.

Input:  a ``LoweredProgram``
Output: ``define i64 @NAME(ptr %arguments)`` and the functions that it calls

``arguments`` is an array of slots of 8 bytes: inputs, outputs, scalars (in the low bytes of their
slots), sizes, the number of threads, and a pointer to a status block of 4 words: site, index and
extent of a failed check, and a word of our own. The entry returns 0, or 1 after a failed check, or
2 when memory ran out. It loads the slots and calls the kernel, whose pointers are ``noalias``.
"""

from __future__ import annotations

from tensorlang.backends.llvm.builder import Builder
from tensorlang.backends.llvm.context import Context, Options
from tensorlang.backends.llvm.conversions import from_memory
from tensorlang.backends.llvm.statements import emit_stmt
from tensorlang.backends.llvm.streaming import emit_fence
from tensorlang.backends.llvm.types import I64, PTR, Type, Value, constant, memory_type
from tensorlang.backends.llvm.writer import FunctionWriter, ModuleWriter, identifier
from tensorlang.ir.lowered import LoweredProgram
from tensorlang.targets.cpu import CpuTarget


def entry_name(program: LoweredProgram) -> str:
    """Return the symbol of the entry function."""
    return f"tensorlang_{identifier(program.name)}"


def emit_module(program: LoweredProgram, target: CpuTarget, fast_math: bool = False) -> str:
    """Return the LLVM IR of ``program``."""
    module = ModuleWriter()
    name = entry_name(program)
    options = Options(name, target, fast_math, module, frozenset(program.inputs))
    parameters = _emit_kernel(program, options)
    _emit_entry(options, parameters)
    return module.text()


def _emit_kernel(program: LoweredProgram, options: Options) -> list[tuple[Type, str]]:
    """Emit the function that does the work; return its parameters' types and attributes."""
    writer = FunctionWriter(options.module)
    target = options.target
    builder = Builder(
        writer,
        options.flags,
        fused=target.fused_multiply_add,
        rounds=target.native_rounding,
        scales=target.scales_by_powers,
    )
    context = Context(options, writer, builder)
    parameters: list[tuple[Type, str]] = []

    def parameter(type: Type, attributes: str = "") -> Value:
        parameters.append((type, attributes))
        return Value(f"%a{len(parameters) - 1}", type)

    for buffer in program.inputs:
        context.pointers[buffer] = parameter(PTR, " noalias readonly")
    for buffer in program.outputs:
        context.pointers[buffer] = parameter(PTR, " noalias")
    half = options.target.half_conversion
    for scalar in program.scalars:
        stored = parameter(memory_type(scalar.dtype))
        context.scalars[scalar] = from_memory(context.builder, stored, scalar.dtype, half)
    for size in program.sizes:
        context.bind(size, parameter(I64))
    context.threads = parameter(I64)
    context.status = parameter(PTR)
    emit_stmt(context, program.body)
    emit_fence(context, program.body)
    writer.line("ret void")
    text = ", ".join(
        [f"{type.text}{extra} %a{number}" for number, (type, extra) in enumerate(parameters)]
    )
    writer.finish(f"internal void @{options.name}.kernel({text})", f"noinline {options.attributes}")
    return parameters


def _emit_entry(options: Options, parameters: list[tuple[Type, str]]) -> None:
    writer = FunctionWriter(options.module)
    arguments: list[Value] = []
    for number, (type, _) in enumerate(parameters):
        place = writer.emit(f"getelementptr i64, ptr %arguments, i64 {number}", PTR)
        arguments.append(writer.emit(f"load {type.text}, {place.text}, align 8", type))
    result = constant(0, I64)
    operands = ", ".join([argument.text for argument in arguments])
    call = f"call void @{options.name}.kernel({operands})"
    if options.uses_status:
        place = writer.emit(f"getelementptr i64, {arguments[-1].text}, i64 3", PTR)
        writer.line(f"store i64 0, {place.text}")
        writer.line(call)
        result = writer.emit(f"load i64, {place.text}", I64)
    else:
        writer.line(call)
    writer.line(f"ret {result.text}")
    writer.finish(f"i64 @{options.name}(ptr %arguments)", options.attributes)
