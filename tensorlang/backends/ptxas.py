"""NVIDIA's assembler, ptxas, where there is one: it checks PTX and tells what a kernel needs.

Input:  PTX text, ``sm_90``
Output: ``Usage(registers=40, spill_bytes=0, stack_bytes=0, shared_bytes=8192)``

It is found on PATH, under CUDA_HOME, or in the Python package ``nvidia-cuda-nvcc``. Nothing here
needs it: PTX can be read and saved without.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from tensorlang.errors import CompileError


@dataclass(frozen=True, slots=True)
class Usage:
    """What a thread and a block of a kernel take; ``log`` is what ptxas said."""

    registers: int
    spill_bytes: int
    stack_bytes: int
    shared_bytes: int
    log: str

    def __str__(self) -> str:
        return (
            f"{self.registers} registers a thread, {self.spill_bytes} bytes spilled, "
            f"{self.stack_bytes} bytes of stack, {self.shared_bytes} bytes of shared memory a block"
        )


def find_ptxas() -> str | None:
    """Return the path of ptxas, None if there is none."""
    found = shutil.which("ptxas")
    if found is not None:
        return found
    roots = [os.environ[name] for name in ("CUDA_HOME", "CUDA_PATH") if name in os.environ]
    places = [Path(root) / "bin" / "ptxas" for root in roots]
    package = find_spec("nvidia")
    for folder in (package.submodule_search_locations or ()) if package is not None else ():
        places.extend(Path(folder).glob("*/bin/ptxas"))
    return next((str(place) for place in places if place.is_file()), None)


def assemble(ptx: str, architecture: str) -> Usage:
    """Return what the kernel in ``ptx`` uses; CompileError if ptxas is missing or refuses it."""
    program = find_ptxas()
    if program is None:
        raise CompileError(
            "ptxas is not on this machine: install the CUDA toolkit and set CUDA_HOME, or "
            "pip install nvidia-cuda-nvcc"
        )
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "kernel.ptx"
        source.write_text(ptx)
        answer = subprocess.run(
            [program, "-v", f"-arch={architecture}", str(source), "-o", f"{folder}/kernel.cubin"],
            capture_output=True,
            text=True,
            check=False,
        )
    log = answer.stdout + answer.stderr
    if answer.returncode:
        raise CompileError(f"ptxas refuses the PTX that was made for {architecture}:\n{log}")
    spills = [int(count) for count in re.findall(r"(\d+) bytes spill", log)]
    return Usage(
        _number(r"Used (\d+) registers", log),
        sum(spills),
        _number(r"(\d+) bytes stack frame", log),
        _number(r"(\d+) bytes smem", log),
        log,
    )


def _number(pattern: str, text: str) -> int:
    found = re.search(pattern, text)
    return 0 if found is None else int(found[1])
