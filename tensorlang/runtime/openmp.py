"""Find the OpenMP runtime whose threads run parallel loops.

Input:  a process with PyTorch loaded     Output: ``OpenMP("libgomp", "/…/libgomp.so.1", 0x7f…)``

A runtime that is loaded already is preferred: then our threads are those of PyTorch or of the
BLAS, and the processors are not oversubscribed. LLVM's and Intel's runtimes export GNU's entry
``GOMP_parallel`` too. Without any, a function of the same signature runs the work on one thread.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

ENTRY = "GOMP_parallel"

_LIBRARY = re.compile(r"/lib(gomp|iomp5|omp)\b[^/]*\.(so|dylib)[^/]*$")
_SYSTEM_NAMES = ("libgomp.so.1", "libomp.so.5", "libomp.so", "libiomp5.so", "libomp.dylib")
_MAPPINGS = Path("/proc/self/maps")

# The tasks of a parallel loop are taken from a counter, so that one call takes them all.
_SERIAL_IR = f"""
define void @{ENTRY}(ptr %function, ptr %data, i32 %num_threads, i32 %flags) {{
  call void %function(ptr %data)
  ret void
}}
"""


@dataclass(frozen=True, slots=True)
class OpenMP:
    """A runtime: ``entry`` is the address of ``void GOMP_parallel(fn, data, threads, flags)``.

    ``was_loaded`` tells that somebody else brought it into the process, and may have used it.
    """

    name: str
    path: str
    entry: int
    is_parallel: bool = True
    was_loaded: bool = False
    keep_alive: object = field(default=None, repr=False, compare=False)


@cache
def find_openmp(wish: str = "auto") -> OpenMP:
    """Return the runtime for ``wish``: "auto", "none", or the path of a library.

    Raises ValueError if the library at that path cannot be loaded, or has no ``GOMP_parallel``.
    """
    if wish == "none":
        return _serial()
    if wish != "auto":
        found = _open(wish, was_loaded=wish in set(_loaded_libraries()))
        if found is None:
            raise ValueError(
                f"TENSORLANG_OPENMP: {wish!r} is not an OpenMP runtime that can be loaded;"
                ' give the path of libgomp, libomp or libiomp5, or "auto" or "none"'
            )
        return found
    for path in _loaded_libraries():
        found = _open(path, was_loaded=True)
        if found is not None:
            return found
    for name in _system_names():
        found = _open(name, was_loaded=False)
        if found is not None:
            return found
    return _serial()


def _system_names() -> Iterator[str]:
    """Yield what may be found by name, and last what a search of 20 ms finds."""
    yield from _SYSTEM_NAMES
    for name in ("gomp", "omp"):
        found = ctypes.util.find_library(name)
        if found is not None:
            yield found


def _loaded_libraries() -> Iterator[str]:
    """Yield the paths of OpenMP runtimes in this process, in the order of their addresses."""
    if _MAPPINGS.exists():
        lines = _MAPPINGS.read_text(errors="replace").splitlines()
        paths = [
            line.split(maxsplit=5)[5] for line in lines if line.count(" ") >= 5 and "/" in line
        ]
        yield from dict.fromkeys(path for path in paths if _LIBRARY.search(path))
        return
    try:  # elsewhere (macOS) the list of loaded libraries needs the help of a library
        entries: list[dict[str, Any]] = import_module("threadpoolctl").threadpool_info()
    except ImportError:
        return
    yield from (str(entry["filepath"]) for entry in entries if entry.get("user_api") == "openmp")


def _open(path: str, *, was_loaded: bool) -> OpenMP | None:
    try:
        library = ctypes.CDLL(path)
        entry = ctypes.cast(getattr(library, ENTRY), ctypes.c_void_p).value
    except (OSError, AttributeError):
        return None
    match = re.search(r"lib(gomp|iomp5|omp)", path)
    name = match.group(0) if match else Path(path).name
    return OpenMP(name, path, entry or 0, was_loaded=was_loaded, keep_alive=library)


def _serial() -> OpenMP:
    """Return the substitute, as machine code: Python here could be interrupted half-way."""
    llvm: Any = import_module("llvmlite.binding")
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine()
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(_SERIAL_IR), machine)
    engine.finalize_object()
    entry = engine.get_function_address(ENTRY)
    return OpenMP("none", "", entry, is_parallel=False, keep_alive=engine)
