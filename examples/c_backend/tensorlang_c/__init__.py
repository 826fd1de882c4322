"""The backend "c": a lowered program as C, built by the system's compiler.

Input:  a ``LoweredProgram``      Output: a shared library whose entry takes tensorlang's slots

The three functions below are the whole interface (``tensorlang.backends.base.Backend``).
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tensorlang.errors import CompileError
from tensorlang.ir.lowered import LoweredProgram
from tensorlang_c.source import ENTRY, c_source


@dataclass(frozen=True)
class CTarget:
    """The compiler that builds the C code."""

    compiler: str


@dataclass(frozen=True)
class CArtefact:
    """The source and the shared library made of it."""

    source: str
    object_code: bytes
    entry: str = ENTRY


@dataclass(frozen=True)
class CKernel:
    """The library in memory; the file goes when the object does."""

    address: int
    library: ctypes.CDLL = field(repr=False)


def parse_target(text: str) -> CTarget:
    """Return the target for ``"c"``; raise CompileError without a C compiler."""
    if text.strip() != "c":
        raise CompileError(f'target "{text}": the backend "c" takes no options')
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        raise CompileError('target "c" needs a C compiler on PATH: install gcc or clang')
    return CTarget(compiler)


def compile_lowered(
    program: LoweredProgram, target: CTarget, *, opt_level: int = 3, fast_math: bool = False
) -> CArtefact:
    """Return the shared library of ``program``."""
    source = c_source(program)
    with tempfile.TemporaryDirectory() as folder:
        file, library = Path(folder, "kernel.c"), Path(folder, "kernel.so")
        file.write_text(source)
        # -fwrapv: integers wrap, as the language says; no contraction beyond what is written.
        command = [target.compiler, "-std=gnu11", "-shared", "-fPIC", "-fwrapv", f"-O{opt_level}"]
        if fast_math:
            command.append("-ffast-math")
        command += [str(file), "-o", str(library), "-lm"]
        result = subprocess.run(command, capture_output=True, text=True)
        if result.returncode:
            raise CompileError(f"{target.compiler} failed:\n{result.stderr}")
        return CArtefact(source, library.read_bytes())


def load(artefact: CArtefact, symbols: Mapping[str, int]) -> CKernel:
    """Load the library; the code calls nothing of ``symbols``."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "kernel.so")
        path.write_bytes(artefact.object_code)
        library = ctypes.CDLL(str(path))
    address = ctypes.cast(getattr(library, artefact.entry), ctypes.c_void_p).value
    assert address is not None
    return CKernel(address, library)
