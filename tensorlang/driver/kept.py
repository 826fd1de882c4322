"""Kernels that outlive the process: read from the store if they are there, else compiled and kept.

Input:  a definition with its schedule, options, layouts
Output: a ``Kernel``; on a hit, without the rules, the proof, lowering and LLVM's optimiser

What a kernel of the store cannot tell (its loops, LLVM IR and assembly as text) is made again when
somebody asks.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from time import perf_counter
from typing import Any

from tensorlang.backends.base import KeepsCode, backend_for
from tensorlang.driver.keys import Origin, key_of, locations_of, package_version
from tensorlang.driver.options import CompileOptions
from tensorlang.errors import CompileError
from tensorlang.ir.affine import Var
from tensorlang.ir.definition import Definition
from tensorlang.ir.lowered import CheckSite, LoweredProgram
from tensorlang.runtime.cache import the_store
from tensorlang.runtime.callable import Layouts
from tensorlang.runtime.kernel import Caller, CtypesCaller, Kernel, KernelFace, is_parallel
from tensorlang.runtime.store import Record

Keep = Callable[[LoweredProgram, Any], None]
Symbols = Callable[[], dict[str, int]]


def kept_kernel(
    origin: Origin,
    options: CompileOptions,
    layouts: Layouts,
    build: Callable[[Keep | None], Kernel],
    symbols: Symbols,
) -> Kernel:
    """Return the kernel of ``origin``; ``build(keep)`` compiles it where the store has none."""
    store = the_store()
    backend = backend_for(options.target)
    if store is None or not isinstance(backend, KeepsCode):
        return build(None)
    start = perf_counter()
    target = backend.parse_target(options.target)
    bounds = options.check_bounds is not False
    numbers = (options.opt_level, options.fast_math, bounds)
    key = key_of("kernel", origin, layouts, numbers, backend.fingerprint(target))
    if key is None:
        return build(None)

    def restored() -> Kernel | None:
        record = store.read(key)
        if record is None:
            return None
        return _restore(record, backend, target, origin.definition, options, build, symbols, start)

    def keep(program: LoweredProgram, artefact: Any) -> None:
        header = _describe(program, origin.definition)
        if header is not None:
            header["artefact"] = backend.describe(artefact)
            store.write(key, header, artefact.object_code)

    kernel = restored()
    if kernel is None:
        with store.lock(key):
            kernel = restored() or build(keep)  # another process may have made it meanwhile
    return kernel


def kept_proof(origin: Origin, prove: Callable[[], str]) -> str:
    """Return the evidence that a scheduled program is right, from the store if it was proved."""
    store = the_store()
    key = None if store is None else key_of("proof", origin, package_version("islpy"))
    if store is None or key is None:
        return prove()
    record = store.read(key)
    if record is not None and isinstance(record.header.get("evidence"), str):
        return record.header["evidence"]
    evidence = prove()
    store.write(key, {"evidence": evidence, "name": origin.definition.name}, b"")
    return evidence


def _describe(program: LoweredProgram, definition: Definition) -> dict[str, Any] | None:
    """Return what a call must know besides the definition; None if it cannot be told by that."""
    known = len(definition.sizes)
    lines = locations_of(definition)
    if (
        program.name != definition.name
        or program.sizes[:known] != definition.sizes
        or program.scalars != definition.scalars
        or len(program.inputs) != len(definition.inputs)
        or len(program.outputs) != len(definition.outputs)
        or any(site.location not in lines for site in program.check_sites)
    ):
        return None
    return {
        "name": program.name,
        "strides": [size.name for size in program.sizes[known:]],
        "check_sites": [
            [site.tensor, site.axis, lines.index(site.location)] for site in program.check_sites
        ],
        "is_parallel": is_parallel(program),
    }


def _restore(
    record: Record,
    backend: KeepsCode,
    target: Any,
    definition: Definition,
    options: CompileOptions,
    build: Callable[[Keep | None], Kernel],
    symbols: Symbols,
    start: float,
) -> Kernel | None:
    """Return the kernel of a record, or None if this process cannot use it."""
    header = record.header
    lines = locations_of(definition)
    try:
        face = KernelFace(
            name=definition.name,
            sizes=(*definition.sizes, *map(Var, header["strides"])),
            scalars=definition.scalars,
            inputs=definition.inputs,
            outputs=definition.outputs,
            check_sites=tuple(
                CheckSite(str(tensor), int(axis), lines[int(place)])
                for tensor, axis, place in header["check_sites"]
            ),
            is_parallel=bool(header["is_parallel"]),
        )
        artefact = backend.restore(header["artefact"], record.code, target, options.opt_level)
        loaded = backend.load(artefact, symbols())
    except (CompileError, LookupError, TypeError, ValueError):
        return None  # compiling tells what is wrong, if anything is
    caller: Caller = CtypesCaller(face, loaded.address, loaded)
    rebuilt = cache(lambda: build(None))

    def text(kind: str) -> Callable[[], str]:
        return lambda: rebuilt().texts[kind]()

    return Kernel(
        face,
        caller,
        texts={kind: text(kind) for kind in ("loops", "llvm", "asm")},
        seconds={"from the cache": perf_counter() - start},
    )
