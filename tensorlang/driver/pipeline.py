"""From a schedule to a callable: prove what was written by hand, then compile on demand.

Input:  a ``Schedule``, ``CompileOptions``
Output: a ``CompiledFunction`` that lowers and compiles a version per layout of its arrays

The heavy parts are imported where they are used: LLVM with the first compilation, isl with the
first proof. ``import tensorlang`` loads neither.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache, partial
from time import perf_counter
from typing import Any

from tensorlang.driver.kept import Keep, kept_kernel, kept_proof
from tensorlang.driver.keys import Origin as KeyOrigin
from tensorlang.driver.options import CompileOptions
from tensorlang.driver.versions import DefaultVersions, OnlyVersion, Versions
from tensorlang.ir.printer import format_lowered, format_program
from tensorlang.ir.program import Program
from tensorlang.lang.binding import bind_sizes
from tensorlang.lang.compute import Operator
from tensorlang.lang.parameters import MISSING
from tensorlang.runtime.callable import CompiledFunction, Layouts, Origin
from tensorlang.runtime.kernel import Caller, CtypesCaller, Kernel, UnavailableCaller
from tensorlang.runtime.threads import openmp
from tensorlang.schedule.schedule import Schedule


def compile_schedule(schedule: Schedule, options: CompileOptions) -> CompiledFunction:
    """Return the callable of a schedule as it stands; later steps do not change it.

    A schedule with steps of the user's own is proved first, unless the options say not to.
    Raises ScheduleError, with the evidence, if that fails.
    """
    origin = KeyOrigin(schedule.definition, schedule.trace, format_program(schedule.program))
    proof = _prove(schedule, options, origin)
    schedule = schedule.fork()
    only = OnlyVersion(origin, schedule.program)
    return _function(schedule, options, only, proof, compile_schedule)


def compile_default(schedule: Schedule, options: CompileOptions) -> CompiledFunction:
    """Return the callable of an untouched schedule's operator, scheduled by the rules.

    Where sizes are symbolic there may be versions, of which a call runs the one that its sizes
    want. The rules run when a program is needed: not where the code was kept by another process.
    """
    return _function(
        schedule.fork(),
        options,
        DefaultVersions(schedule.fork(), options.target),
        "not needed: every step was taken by a rule",
        compile_default,
    )


def _function(
    schedule: Schedule,
    options: CompileOptions,
    versions: Versions,
    proof: str,
    compile_again: Callable[[Schedule, CompileOptions], CompiledFunction],
) -> CompiledFunction:
    """Return the callable of the versions of one operator."""

    def build(layouts: Layouts, choice: object) -> Kernel:
        def compile_now(keep: Keep | None) -> Kernel:
            return build_kernel(versions.program(choice), options, layouts, keep)

        return kept_kernel(versions.origin(choice), options, layouts, compile_now, symbols)

    return CompiledFunction(
        schedule.definition,
        build,
        bind_sizes,
        choose=versions.choose,
        conditions=schedule.program.conditions,
        origin=Origin(options.target, versions.text, proof),
        defaults=_defaults(schedule.operator),
        recipe=(compile_again, (schedule, options)),
    )


def _defaults(operator: Operator | None) -> dict[str, Any]:
    """Return the defaults of scalars and sizes, which a definition does not know."""
    parameters = () if operator is None else operator.parameters
    return {
        parameter.name: parameter.default
        for parameter in parameters
        if parameter.kind in ("scalar", "dim") and parameter.default is not MISSING
    }


def _prove(schedule: Schedule, options: CompileOptions, origin: KeyOrigin) -> str:
    if not schedule.is_hand_written:
        return "not needed: every step was taken by a rule"
    if not options.verify:
        return "skipped: verify=False"
    return kept_proof(origin, lambda: str(schedule.verify()))


def build_kernel(
    program: Program,
    options: CompileOptions,
    layouts: Layouts,
    keep: Keep | None = None,
) -> Kernel:
    """Return the machine code for arrays that lie in memory as ``layouts`` says.

    ``keep`` is given the code, for other processes to use.
    """
    from tensorlang.backends.base import DeviceUnavailable, backend_for
    from tensorlang.lower.pipeline import lower

    backend = backend_for(options.target)
    tensors = program.definition.inputs + program.definition.outputs
    start = perf_counter()
    lowered = lower(
        program,
        dict(zip(tensors, layouts, strict=True)),
        check_bounds=options.check_bounds is not False,
    )
    after_lowering = perf_counter()
    artefact: Any = backend.compile_lowered(
        lowered,
        backend.parse_target(options.target),
        opt_level=options.opt_level,
        fast_math=options.fast_math,
    )
    after_compiling = perf_counter()
    if keep is not None:
        keep(lowered, artefact)
    caller: Caller
    try:
        loaded = backend.load(artefact, symbols())
        caller = CtypesCaller(lowered, loaded.address, loaded)
    except DeviceUnavailable as reason:
        caller = UnavailableCaller(str(reason))
    return Kernel(
        lowered,
        caller,
        texts={
            "loops": lambda: format_lowered(lowered),
            "llvm": lambda: artefact.llvm,
            "asm": lambda: artefact.assembly,
            **{kind: partial(str, text) for kind, text in getattr(artefact, "texts", {}).items()},
        },
        notes=getattr(artefact, "notes", tuple),
        seconds={
            "lower": after_lowering - start,
            "compile": after_compiling - after_lowering,
            "load": perf_counter() - after_compiling,
        },
    )


@cache
def symbols() -> dict[str, int]:
    """Return the addresses of what machine code calls: threads and memory."""
    process: Any = ctypes.CDLL(None)
    names = ("aligned_alloc", "free")
    found = {name: ctypes.cast(process[name], ctypes.c_void_p).value or 0 for name in names}
    return {"GOMP_parallel": openmp().entry, **found}
