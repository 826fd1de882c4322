"""The CPU backend: a lowered program to machine code, and machine code to a callable address.

Input:  ``compile_lowered(program, parse_target("cpu"))``
Output: a ``CpuArtefact`` whose ``object_code`` a cache can keep; ``load`` makes it callable
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tensorlang.backends.llvm import machine
from tensorlang.backends.llvm.debug_lines import Lines, with_debug_lines
from tensorlang.backends.llvm.module import emit_module, entry_name
from tensorlang.errors import CompileError
from tensorlang.ir.lowered import LoweredProgram
from tensorlang.ir.program import For
from tensorlang.ir.walk import iterate
from tensorlang.targets.cpu import CpuTarget, host_target, parse_cpu_target
from tensorlang.targets.llvm import llvm_binding, llvmlite_version

parse_target = parse_cpu_target


@dataclass(frozen=True, slots=True)
class CpuArtefact:
    """An object file, the LLVM IR that it was made from ("" if restored), for which processor."""

    entry: str
    object_code: bytes
    llvm: str
    target: CpuTarget
    opt_level: int
    autovectorized: bool

    @property
    def optimized(self) -> str:
        """The LLVM IR after optimisation, made anew for the asking."""
        return str(self._optimised_module())

    @property
    def assembly(self) -> str:
        """The assembly, made anew for the asking."""
        return machine.assembly(self._optimised_module(), self.target, self.opt_level)

    def _optimised_module(self) -> Any:
        return machine.optimise(self.llvm, self.target, self.opt_level, self.autovectorized)


@dataclass(frozen=True, slots=True)
class LoadedCpuKernel:
    """Code in memory; ``address`` is ``i64 (ptr arguments)`` and valid while this object lives."""

    address: int
    engine: Any


def compile_lowered(
    program: LoweredProgram, target: CpuTarget, *, opt_level: int = 3, fast_math: bool = False
) -> CpuArtefact:
    """Return the machine code of ``program``.

    LLVM looks for vectors by itself only in programs without vectorized loops.
    """
    text = emit_module(program, target, fast_math)
    explicit = any(
        isinstance(stmt, For) and stmt.kind == "vectorized" for stmt in iterate(program.body)
    )
    module = machine.optimise(text, target, opt_level, not explicit)
    code = machine.object_code(module, target, opt_level)
    return CpuArtefact(entry_name(program), code, text, target, opt_level, not explicit)


def fingerprint(target: CpuTarget) -> str:
    """Return all that code depends on besides its program: processors, versions of LLVM."""
    binding = llvm_binding()
    llvm = ".".join(map(str, binding.llvm_version_info))
    return f"{target!r} llvmlite {llvmlite_version()} LLVM {llvm}"


def describe(artefact: CpuArtefact) -> dict[str, Any]:
    """Return what ``restore`` needs besides the object code."""
    return {"entry": artefact.entry, "autovectorized": artefact.autovectorized}


def restore(
    description: Mapping[str, Any], code: bytes, target: CpuTarget, opt_level: int
) -> CpuArtefact:
    """Return an artefact to ``load``; its LLVM IR is not kept."""
    entry, autovectorized = str(description["entry"]), bool(description["autovectorized"])
    return CpuArtefact(entry, code, "", target, opt_level, autovectorized)


_lock = threading.Lock()
_numbers = itertools.count()


def load(artefact: CpuArtefact, symbols: Mapping[str, int]) -> LoadedCpuKernel:
    """Bring an artefact into memory; ``symbols`` are addresses of functions that it may call.

    Functions of the C library are found in the process. Raises CompileError for code that this
    machine cannot run.
    """
    check_runs_here(artefact.target)
    with _lock:
        library = f"tensorlang.{next(_numbers)}"
        try:
            address, engine = machine.link(
                artefact.object_code, artefact.entry, dict(symbols), library
            )
        except RuntimeError as error:
            raise CompileError(f"{artefact.entry} cannot be linked: {error}") from error
    return LoadedCpuKernel(address, engine)


def check_runs_here(target: CpuTarget) -> None:
    """Raise CompileError if ``target`` needs vectors or instructions that this machine lacks."""
    host = host_target()
    lacking = [
        name
        for name, needed, present in (
            (f"{target.vector_bits}-bit vectors", target.vector_bits, host.vector_bits),
            ("fused multiply-add", target.fused_multiply_add, host.fused_multiply_add),
            ("f16 conversion", target.half_conversion, host.half_conversion),
        )
        if needed > present
    ]
    if lacking or target.triple != host.triple:
        reason = ", ".join(lacking) or f"code for {target.triple}"
        raise CompileError(
            f'code for target "{target}" cannot run on this machine ({host.cpu}), '
            f"which lacks {reason}.\n"
            'Its object code can be saved and taken elsewhere; target="cpu" is this machine.'
        )


def assembly_of(llvm: str, target: str, vectorize: bool, lines: Lines) -> str:
    """Return the assembly of LLVM IR, with ``.loc`` directives that name the user's ``lines``."""
    processor = parse_target(target)
    module = machine.optimise(with_debug_lines(llvm, lines), processor, 3, vectorize)
    return machine.assembly(module, processor, 3)
