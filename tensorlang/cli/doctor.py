"""``tensorlang doctor``: what this machine has, what is missing, and what to do about it.

Input:  the machine.
Output: a table of parts, each "ok", "optional" (missing, and everything else works) or "missing";
the exit status is 1 if a part that is needed is missing, or if a small compiled program is wrong.
"""

from __future__ import annotations

import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal
from uuid import uuid4

from tensorlang.cli.console import make_display


@dataclass(frozen=True, slots=True)
class Finding:
    """One part of what tensorlang needs or can use."""

    part: str
    state: Literal["ok", "optional", "missing"]
    detail: str


NEEDED = ("numpy", "llvmlite", "islpy", "ml_dtypes", "platformdirs", "rich", "typer")
_FEATURES = (
    "sse4.2", "avx", "f16c", "fma", "avx2", "avx512f", "avx512bw", "avx512vl", "avx512bf16",
    "avx512fp16", "amx-tile", "neon", "sve", "sve2", "fullfp16", "bf16", "dotprod",
)  # fmt: skip
USEFUL = (
    ("scikit-image", "the demo's photograph"),
    ("scipy", "what the demo is checked against"),
    ("pillow", "the demo's PNG"),
    ("numba", "calling compiled operators from @njit functions"),
    ("torch", "calling operators with PyTorch tensors"),
)


def run() -> int:
    """Print the findings and return the exit status."""
    findings = list(find_all())
    display = make_display()
    display.table(
        "tensorlang on this machine",
        ("part", "state", "detail"),
        [(finding.part, finding.state, finding.detail) for finding in findings],
        figures=False,
    )
    missing = [finding.part for finding in findings if finding.state == "missing"]
    if missing:
        display.text(
            f"Missing: {', '.join(missing)}. `pip install tensorlang` brings all packages."
        )
        return 1
    display.text("All that is needed is there.")
    return 0


def find_all() -> Iterator[Finding]:
    """Yield the findings, in the order in which they are shown."""
    yield Finding("Python", "ok", f"{platform.python_version()} on {platform.platform()}")
    for name in NEEDED:
        yield _find_package(name, "missing", f"needed: pip install {name}")
    yield from _find_processor()
    yield _find_openmp()
    yield _find_cache()
    yield from _find_gpu()
    for name, use in USEFUL:
        yield _find_package(name, "optional", f"not installed; for {use}: pip install {name}")
    yield _try_it_out()


def _find_package(name: str, absent: Literal["optional", "missing"], advice: str) -> Finding:
    try:
        return Finding(name, "ok", version(name))
    except PackageNotFoundError:
        return Finding(name, absent, advice)


def _find_processor() -> Iterator[Finding]:
    try:
        from tensorlang.targets.cpu import host_target

        llvm: Any = import_module("llvmlite.binding")
        yield Finding("LLVM", "ok", ".".join(map(str, llvm.llvm_version_info)))
        target = host_target()
    except ImportError as error:
        yield Finding("LLVM", "missing", str(error))
        return
    detail = (
        f"{target.cpu}: {target.vector_registers} vector registers of {target.vector_bits} bits, "
        f"{target.cores} cores, caches of {_size(target.l1_bytes)}, {_size(target.l2_bytes)} "
        f"and {_size(target.l3_bytes)}"
    )
    yield Finding("processor", "ok", detail)
    known = [name for name in _FEATURES if f"+{name}" in target.features.split(",")]
    yield Finding("instructions", "ok", ", ".join(known) or "the baseline of the architecture")


def _find_openmp() -> Finding:
    from tensorlang.config import settings
    from tensorlang.runtime.openmp import find_openmp
    from tensorlang.runtime.threads import num_threads

    try:
        found = find_openmp(settings().openmp)
    except ValueError as error:
        return Finding("threads", "missing", str(error))
    if found.is_parallel:
        who = "loaded by another library" if found.was_loaded else "loaded by tensorlang"
        return Finding("threads", "ok", f"{num_threads()} of {found.name} ({found.path}, {who})")
    if settings().openmp == "none":
        return Finding("threads", "optional", "TENSORLANG_OPENMP=none: loops run on one thread")
    advice = (
        "no OpenMP runtime: parallel loops run on one thread; install libgomp (Debian, Ubuntu: "
        "apt install libgomp1; Fedora: dnf install libgomp) or libomp"
    )
    return Finding("threads", "optional", advice)


def _find_cache() -> Finding:
    """Tell whether compiled code can be kept, by keeping some."""
    from tensorlang.cli.cache import format_bytes
    from tensorlang.config import settings
    from tensorlang.runtime.cache import the_store

    part = "kept code"
    store = the_store()
    if store is None:
        reason = "TENSORLANG_CACHE=off" if settings().cache == "off" else "there is no home folder"
        return Finding(part, "optional", f"{reason}: every process compiles anew")
    key = "00" + uuid4().hex * 2
    kept = store.write(key, {"name": "doctor"}, b"") and store.read(key) is not None
    store.remove(key)
    entries, damaged = store.entries(), len(store.damaged())
    problems = list(store.problems)
    if damaged:
        problems.append(f"{damaged} entries are damaged; `tensorlang cache clear` removes them")
    if not kept:
        advice = f"{'; '.join(problems)}; TENSORLANG_CACHE can name another folder"
        return Finding(part, "optional", advice)
    if problems:
        return Finding(part, "optional", "; ".join(problems))
    total = format_bytes(sum(entry.bytes for entry in entries))
    bound = format_bytes(store.bound)
    return Finding(part, "ok", f"{store.folder}: {len(entries)} entries, {total} of {bound}")


def _find_gpu() -> Iterator[Finding]:
    """Tell which NVIDIA GPU and tools there are; CPU code needs none of them."""
    from tensorlang.backends.ptxas import find_ptxas

    smi = shutil.which("nvidia-smi")
    names = _ask(smi, "--query-gpu=name,compute_cap", "--format=csv,noheader") if smi else ""
    if names:
        yield Finding("GPU", "ok", "; ".join(names.splitlines()))
    elif Path("/dev/nvidiactl").exists():
        yield Finding("GPU", "optional", "there is one, but nvidia-smi does not see it: the driver")
    else:
        yield Finding("GPU", "optional", "none here; PTX for one can be made all the same")
    ptxas = find_ptxas()
    tools = (
        ("ptxas", ptxas, "registers and spills of PTX: pip install nvidia-cuda-nvcc"),
        ("nvdisasm", shutil.which("nvdisasm"), "SASS: it comes with the CUDA toolkit"),
    )
    for name, path, use in tools:
        if path is None:
            yield Finding(name, "optional", f"not found; for {use}")
        else:
            release = (_ask(path, "--version").splitlines() or ["it does not answer"])[-1]
            yield Finding(name, "ok", f"{path} ({release})")


def _ask(*command: str) -> str:
    """Return what a program prints; nothing if it fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()


def _try_it_out() -> Finding:
    """Compile a small operator and compare what it returns."""
    import numpy as np

    import tensorlang as tl

    n = tl.dim("n")

    @tl.compute
    def double(x: tl.f32[n]):
        """Return twice ``x``."""
        return tl.tensor(x[i] * 2 for i in n)

    numbers = np.arange(1000, dtype=np.float32)
    try:
        right = np.array_equal(double(numbers), numbers * 2)
    except Exception as error:
        return Finding("a compiled operator", "missing", f"{type(error).__name__}: {error}")
    if not right:
        return Finding("a compiled operator", "missing", f"wrong result on {sys.platform}")
    return Finding("a compiled operator", "ok", "gives the right result")


def _size(count: int) -> str:
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if count >= unit:
            return f"{count / unit:.0f} {name}"
    return f"{count} bytes"
