"""From a scheduled program to a callable: place inits, prove, then lower and compile on demand.

Input:  a ``Program``, ``CompileOptions``
Output: a ``CompiledFunction`` that compiles a version per layout of its arrays

The heavy parts are imported where they are used: LLVM with the first compilation, isl with the
first proof. ``import tensorlang`` loads neither.
"""

from __future__ import annotations

import ctypes
from functools import cache
from time import perf_counter
from typing import Any

from tensorlang.driver.options import CompileOptions
from tensorlang.errors import ScheduleError
from tensorlang.ir.printer import format_program
from tensorlang.ir.program import Program
from tensorlang.lang.binding import bind_sizes
from tensorlang.runtime.callable import CompiledFunction, Layouts, Origin
from tensorlang.runtime.kernel import CtypesCaller, Kernel
from tensorlang.runtime.threads import openmp


def compile_program(program: Program, options: CompileOptions, *, prove: bool) -> CompiledFunction:
    """Return the callable of a scheduled program.

    ``prove`` asks for the whole-program proof (unless the options switch it off). Raises
    ScheduleError, with the evidence, if it fails.
    """
    from tensorlang.schedule.place_inits import place_inits

    placed = place_inits(program)
    proof = _prove(placed, options) if prove else "a default schedule, not proved again"

    def build(layouts: Layouts) -> Kernel:
        return build_kernel(placed, options, layouts)

    return CompiledFunction(
        program.definition,
        build,
        bind_sizes,
        conditions=program.conditions,
        origin=Origin(options.target, format_program(program), proof),
    )


def _prove(placed: Program, options: CompileOptions) -> str:
    if not options.verify:
        return "skipped (verify=False)"
    from tensorlang.poly.proof import prove

    start = perf_counter()
    evidence = prove(placed)
    if not evidence.ok:
        raise ScheduleError(str(evidence))
    return f"proved in {1e3 * (perf_counter() - start):.0f} ms"


def build_kernel(placed: Program, options: CompileOptions, layouts: Layouts) -> Kernel:
    """Return the machine code for arrays that lie in memory as ``layouts`` says."""
    from tensorlang.backends.cpu import compile_lowered, load
    from tensorlang.lower.pipeline import lower
    from tensorlang.targets.cpu import parse_cpu_target

    target = parse_cpu_target(options.target)
    start = perf_counter()
    definition = placed.definition
    tensors = definition.inputs + definition.outputs
    lowered = lower(placed, dict(zip(tensors, layouts, strict=True)))
    lowering = perf_counter()
    artefact = compile_lowered(
        lowered, target, opt_level=options.opt_level, fast_math=options.fast_math
    )
    loaded = load(artefact, symbols())
    done = perf_counter()
    return Kernel(
        lowered,
        CtypesCaller(lowered, loaded.address, loaded),
        texts={"llvm": lambda: artefact.llvm, "asm": lambda: artefact.assembly},
        seconds={"lower": lowering - start, "compile": done - lowering},
    )


@cache
def symbols() -> dict[str, int]:
    """Return the addresses of what machine code calls: threads and memory."""
    process: Any = ctypes.CDLL(None)
    names = ("aligned_alloc", "free")
    found = {name: ctypes.cast(process[name], ctypes.c_void_p).value or 0 for name in names}
    return {"GOMP_parallel": openmp().entry, **found}
