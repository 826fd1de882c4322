"""What a backend is, and the registry of them.

Input:  ``backend_for("cpu -mcpu=haswell")``
Output: the backend that registered "cpu", which parses the target and compiles programs for it

A backend registers in one line of ``_BUILT_IN``. One of another package is found by the entry point
group ``tensorlang.backends``: its name is the kind of target, its object a ``Backend``.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, Protocol, cast, runtime_checkable

from tensorlang.errors import CompileError
from tensorlang.ir.lowered import LoweredProgram


class DeviceUnavailable(CompileError):  # noqa: N818 - it says what is missing
    """Code that can be read and saved, but not run here; raised by ``load``, told at the call."""


class Artefact(Protocol):
    """Machine code of a program, and how it came about.

    It may also have ``texts``, what there is to read besides LLVM IR and assembly by kind of
    source, and ``notes()``, lines for the report.
    """

    @property
    def entry(self) -> str:
        """The symbol of the entry function."""
        ...

    @property
    def object_code(self) -> bytes:
        """An object file, or what a device's driver loads."""
        ...


class LoadedKernel(Protocol):
    """Code in memory, alive as long as this object."""

    @property
    def address(self) -> int:
        """The entry function: ``i64 (ptr arguments)``."""
        ...


class Backend(Protocol):
    """Compiles lowered programs for one kind of target; a module with these functions is one."""

    def parse_target(self, text: str) -> Any:
        """Return the target that ``text`` means, or raise CompileError."""
        ...

    def compile_lowered(
        self, program: LoweredProgram, target: Any, *, opt_level: int = 3, fast_math: bool = False
    ) -> Artefact:
        """Return the machine code of ``program``."""
        ...

    def load(self, artefact: Any, symbols: Mapping[str, int]) -> LoadedKernel:
        """Bring code into memory; ``symbols`` are addresses of functions that it may call."""
        ...


@runtime_checkable
class KeepsCode(Backend, Protocol):
    """A backend whose code may be kept on disk for other processes; optional."""

    def fingerprint(self, target: Any) -> str:
        """Return a text that differs wherever the code may: machine, compiler, its versions."""
        ...

    def describe(self, artefact: Any) -> dict[str, Any]:
        """Return what ``restore`` needs besides the object code, as JSON values."""
        ...

    def restore(self, description: Any, code: bytes, target: Any, opt_level: int) -> Any:
        """Return an artefact that ``load`` takes."""
        ...


_BUILT_IN = {
    "cpu": "tensorlang.backends.cpu",
    "cuda": "tensorlang.backends.nvptx",
}


def backend_for(target: str) -> Backend:
    """Return the backend for a target such as ``"cpu -mcpu=haswell"``; CompileError if none."""
    kind = target.split(maxsplit=1)[0].split(":")[0] if target.strip() else ""
    if kind in _BUILT_IN:
        return cast("Backend", import_module(_BUILT_IN[kind]))
    for point in entry_points(group="tensorlang.backends"):
        if point.name == kind:
            return cast("Backend", point.load())
    known = ", ".join(sorted(backend_names()))
    raise CompileError(
        f'target "{target}": no backend is called "{kind}". Known here: {known}.\n'
        'Other packages can add one through the entry point group "tensorlang.backends".'
    )


def backend_names() -> frozenset[str]:
    """Return the kinds of target that have a backend here."""
    found = [point.name for point in entry_points(group="tensorlang.backends")]
    return frozenset([*_BUILT_IN, *found])
