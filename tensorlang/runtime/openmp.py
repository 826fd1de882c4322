"""Find the OpenMP runtime whose threads run parallel loops.

Input:  a process with PyTorch loaded     Output: ``OpenMP("libgomp", "/…/libgomp.so.1", 0x7f…)``

A runtime that is loaded already is preferred: then our threads are those of PyTorch or of the
BLAS, and the processors are not oversubscribed. LLVM's and Intel's runtimes export GNU's entry
``GOMP_parallel`` too. Without any, ``system_threads`` has a function of the same signature.

GNU's threads wait for work by spinning, for milliseconds, which on a machine with other work costs
each call a time slice of the scheduler. Where tensorlang loads the runtime and the user did not say
otherwise (``OMP_WAIT_POLICY``, ``GOMP_SPINCOUNT``), they spin for some 50 microseconds at most,
and not at all where the machine is busy already.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import os
import re
from collections.abc import Generator, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from tensorlang.runtime.system_threads import alone, make_system_threads

ENTRY = "GOMP_parallel"

_LIBRARY = re.compile(r"/lib(gomp|iomp5|omp)\b[^/]*\.(so|dylib)[^/]*$")
_SYSTEM_NAMES = ("libgomp.so.1", "libomp.so.5", "libomp.so", "libiomp5.so", "libomp.dylib")
_MAPPINGS = Path("/proc/self/maps")

_SPINS = 1000  # of about 20 to 50 ns
_SPIN_SETTINGS = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT")


@dataclass(frozen=True, slots=True)
class OpenMP:
    """A runtime: ``entry`` is the address of ``void GOMP_parallel(fn, data, threads, flags)``.

    ``was_loaded`` tells that somebody else brought it into the process, and may have used it.
    ``start_microseconds`` is the work from which several threads pay.
    """

    name: str
    path: str
    entry: int
    is_parallel: bool = True
    was_loaded: bool = False
    start_microseconds: float = 3.0
    keep_alive: object = field(default=None, repr=False, compare=False)


@cache
def find_openmp(wish: str = "auto") -> OpenMP:
    """Return the runtime for ``wish``: "auto", "none", "system", or the path of a library.

    Raises ValueError if the library at that path cannot be loaded, or has no ``GOMP_parallel``.
    """
    if wish == "none":
        return OpenMP("none", "", alone(), is_parallel=False)
    if wish == "system":
        return _system()
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
    return _system()


def _system() -> OpenMP:
    started = make_system_threads()
    return OpenMP("system threads", "", started.entry, start_microseconds=100, keep_alive=started)


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
    # a spinning thread starts at once, a sleeping one in ten microseconds or more
    start = 3.0
    spins = nullcontext()
    if not was_loaded and not any(os.environ.get(name) for name in _SPIN_SETTINGS):
        start, spins = 20.0, _few_spins()
    try:
        with spins:
            library = ctypes.CDLL(path)
        entry = ctypes.cast(getattr(library, ENTRY), ctypes.c_void_p).value
    except (OSError, AttributeError):
        return None
    match = re.search(r"lib(gomp|iomp5|omp)", path)
    name = match.group(0) if match else Path(path).name
    return OpenMP(
        name,
        path,
        entry or 0,
        was_loaded=was_loaded,
        start_microseconds=start,
        keep_alive=library,
    )


@contextmanager
def _few_spins() -> Generator[None]:
    """Let a runtime that is loaded inside spin little; the environment is as before afterwards."""
    os.environ["GOMP_SPINCOUNT"] = "0" if _is_busy() else str(_SPINS)
    try:
        yield
    finally:
        del os.environ["GOMP_SPINCOUNT"]


def _is_busy() -> bool:
    try:
        return os.getloadavg()[0] > (os.cpu_count() or 1)
    except OSError:
        return False
