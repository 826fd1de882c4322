"""A kernel as the text of an LLVM module for NVIDIA GPUs.

Input:  a ``Kernel``
Output: ``define ptx_kernel void @NAME(ptr addrspace(1) noalias readonly align 16 %a0, ...)``

The parameters are the input pointers, the output pointers, the scalars, the sizes (i64) and, where
indices are checked, a pointer to the status block of ``module``. Statements and expressions are
emitted by the code that emits those of CPUs; what differs is where storage lives and where the
variables of blocks and threads come from.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tensorlang.backends.llvm.builder import Builder
from tensorlang.backends.llvm.context import Context, Options
from tensorlang.backends.llvm.conversions import from_memory
from tensorlang.backends.llvm.statements import emit_stmt
from tensorlang.backends.llvm.types import (
    GLOBAL_PTR,
    I32,
    I64,
    PTR,
    SHARED_PTR,
    Type,
    Value,
    constant,
    memory_type,
)
from tensorlang.backends.llvm.writer import FunctionWriter, ModuleWriter, identifier
from tensorlang.ir.affine import Affine, Var
from tensorlang.ir.lowered import Buffer
from tensorlang.lower.kernel import Kernel
from tensorlang.lower.known import facts_of
from tensorlang.lower.shared_memory import SHARED_ALIGNMENT, SharedMemory
from tensorlang.targets.gpu import GpuTarget

POINTER_ALIGNMENT = 16
"""A promise for every array: what allocators of GPU memory give, and 128-bit accesses need."""


@dataclass(frozen=True, slots=True)
class KernelText:
    """The module's text and the name of its kernel."""

    name: str
    text: str


def kernel_name(kernel: Kernel) -> str:
    """Return the symbol of the kernel: a name that PTX takes."""
    return f"tensorlang_{identifier(kernel.name).replace('.', '_')}"


def emit_kernel(
    kernel: Kernel, memory: SharedMemory, target: GpuTarget, fast_math: bool = False
) -> KernelText:
    """Return the LLVM IR of ``kernel``."""
    module = ModuleWriter()
    name = kernel_name(kernel)
    options = Options(
        name,
        target,
        fast_math,
        module,
        frozenset(kernel.inputs),
        alignment=POINTER_ALIGNMENT,
        facts=facts_of(kernel.conditions),
    )
    writer = FunctionWriter(module)
    builder = Builder(
        writer,
        options.flags,
        fused=target.fused_multiply_add,
        rounds=target.native_rounding,
        scales=target.scales_by_powers,
    )
    context = Context(options, writer, builder)
    signature = _bind_parameters(context, kernel)
    _bind_places(context, kernel)
    _bind_shared(context, memory)
    emit_stmt(context, kernel.body)
    writer.line("ret void")
    threads = ",".join(map(str, kernel.block))
    writer.finish(f"ptx_kernel void @{name}({signature})", f'nounwind "nvvm.maxntid"="{threads}"')
    return KernelText(name, module.text())


def _bind_parameters(context: Context, kernel: Kernel) -> str:
    """Give the parameters to the context; return the signature."""
    texts: list[str] = []

    def parameter(type: Type, attributes: str = "") -> Value:
        value = Value(f"%a{len(texts)}", type)
        texts.append(f"{type.text}{attributes} {value.ref}")
        return value

    aligned = f" noalias align {POINTER_ALIGNMENT}"
    for buffer in kernel.inputs:
        context.pointers[buffer] = parameter(GLOBAL_PTR, f"{aligned} readonly")
    for buffer in kernel.outputs:
        context.pointers[buffer] = parameter(GLOBAL_PTR, aligned)
    half = context.options.target.half_conversion
    for scalar in kernel.scalars:
        stored = parameter(memory_type(scalar.dtype))
        context.scalars[scalar] = from_memory(context.builder, stored, scalar.dtype, half)
    for size in kernel.sizes:
        context.bind(size, parameter(I64))
    if kernel.check_sites:
        status = parameter(GLOBAL_PTR)
        context.status = context.writer.emit(f"addrspacecast {status.text} to ptr", PTR)
    return ", ".join(texts)


def _bind_places(context: Context, kernel: Kernel) -> None:
    """Give the variables of blocks and threads their values, from the special registers."""
    extents: Mapping[Var, Affine] = kernel.extents
    for register, variables in (("ctaid", kernel.blocks), ("tid", kernel.threads)):
        for axis, variable in zip("xyz", variables, strict=True):
            if extents[variable] == Affine(1):
                context.bind(variable, constant(0, I64), extents[variable])
                continue
            function = f"@llvm.nvvm.read.ptx.sreg.{register}.{axis}"
            context.writer.module.declare(f"i32 {function}()")
            place = context.writer.emit(f"call i32 {function}()", I32)
            wide = context.writer.emit(f"zext nneg {place.text} to i64", I64)
            context.bind(variable, wide, extents[variable])


def _bind_shared(context: Context, memory: SharedMemory) -> None:
    """Give shared buffers their memory: variables of their own, or parts of what launch adds."""
    module = context.writer.module
    context.options.owned.update(memory.offsets)
    if not memory.is_dynamic:
        for number, buffer in enumerate(memory.offsets):
            name = f"@shared{number}_{_plain(buffer)}"
            element = memory_type(buffer.dtype)
            module.helper(
                name,
                f"{name} = internal addrspace(3) global "
                f"[{max(buffer.size.constant, 1)} x {element.text}] poison, "
                f"align {SHARED_ALIGNMENT}",
            )
            context.pointers[buffer] = Value(name, SHARED_PTR)
        return
    name = "@shared_memory"
    module.helper(name, f"{name} = external addrspace(3) global [0 x i8], align {SHARED_ALIGNMENT}")
    from tensorlang.backends.llvm.indices import emit_index

    for buffer, offset in memory.offsets.items():
        start = emit_index(context, offset)
        place = f"getelementptr i8, ptr addrspace(3) {name}, {start.text}"
        context.pointers[buffer] = context.writer.emit(place, SHARED_PTR)


def _plain(buffer: Buffer) -> str:
    return identifier(buffer.name).replace(".", "_")
