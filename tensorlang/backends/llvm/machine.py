"""LLVM itself, through llvmlite: from text to optimised module, object and assembly.

Input:  the text of a module and a ``CpuTarget``
Output: the bytes of an object file (position independent, small code model)

One parse, one run of the pass builder's pipeline, one emission.
"""

from __future__ import annotations

import threading
from functools import cache
from typing import Any

from tensorlang.errors import CompileError
from tensorlang.targets.cpu import CpuTarget, host_target
from tensorlang.targets.llvm import llvm_binding


def optimise(text: str, target: CpuTarget, opt_level: int, vectorize: bool) -> Any:
    """Return the module after LLVM's pipeline of ``opt_level``.

    ``vectorize`` lets LLVM look for vectors by itself: of use where the program has none.
    """
    binding = llvm_binding()
    try:
        module: Any = binding.parse_assembly(text)
        module.verify()
    except RuntimeError as error:
        raise CompileError(f"LLVM refuses the code that was made for it: {error}") from error
    machine = target_machine(target, opt_level)
    module.triple = target.triple
    module.data_layout = str(machine.target_data)
    options = binding.create_pipeline_tuning_options(speed_level=opt_level)
    options.loop_vectorization = options.slp_vectorization = vectorize and opt_level >= 2
    options.loop_interleaving = options.loop_vectorization
    builder = binding.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    return module


def object_code(module: Any, target: CpuTarget, opt_level: int) -> bytes:
    """Return an optimised module as an object file."""
    return target_machine(target, opt_level).emit_object(module)


def assembly(module: Any, target: CpuTarget, opt_level: int) -> str:
    """Return an optimised module as assembly."""
    return target_machine(target, opt_level).emit_assembly(module)


def target_machine(target: CpuTarget, opt_level: int) -> Any:
    """Return LLVM's code generator for ``target``."""
    return _machine(target.triple, target.cpu, target.features, opt_level)


@cache
def _machine(triple: str, cpu: str, features: str, opt_level: int) -> Any:
    target = llvm_binding().Target.from_triple(triple)
    return target.create_target_machine(
        cpu=cpu, features=features, opt=opt_level, reloc="pic", codemodel="small"
    )


_linking = threading.Lock()  # LLVM's linker takes one object file at a time


@cache
def jit() -> Any:
    """Return the process-wide linker of object files."""
    machine = target_machine(host_target(), 3)
    return llvm_binding().create_lljit_compiler(machine, use_jit_link=True, suppress_errors=False)


def link(code: bytes, entry: str, symbols: dict[str, int], library: str) -> tuple[int, Any]:
    """Bring an object file into memory; return the entry's address and what keeps it alive."""
    builder: Any = llvm_binding().JITLibraryBuilder()
    builder.add_object_img(code).add_current_process().export_symbol(entry)
    for name, address in symbols.items():
        builder.import_symbol(name, address)
    with _linking:
        tracker = builder.link(jit(), library)
    return int(tracker[entry]), tracker
