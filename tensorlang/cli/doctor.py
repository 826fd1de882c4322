"""``tensorlang doctor``: what this machine has, what is missing, and what to do about it.

Input:  the machine.
Output: a table of parts, each "ok", "optional" (missing, and everything else works) or "missing";
the exit status is 1 if a part that is needed is missing, or if a small compiled program is wrong.
"""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Literal

from tensorlang.cli.console import make_display


@dataclass(frozen=True, slots=True)
class Finding:
    """One part of what tensorlang needs or can use."""

    part: str
    state: Literal["ok", "optional", "missing"]
    detail: str


NEEDED = ("numpy", "llvmlite", "islpy", "ml_dtypes", "rich", "typer")
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


def _find_openmp() -> Finding:
    from tensorlang.runtime.openmp import find_openmp

    try:
        found = find_openmp()
    except ValueError as error:
        return Finding("threads", "missing", str(error))
    if found.is_parallel:
        return Finding("threads", "ok", f"{found.name} ({found.path})")
    advice = (
        "no OpenMP runtime: parallel loops run on one thread; install libgomp (GCC's) or libomp"
    )
    return Finding("threads", "optional", advice)


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
