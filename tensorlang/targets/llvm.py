"""llvmlite, loaded when it is first needed (its import takes a tenth of a second).

It has no annotations, so that what comes from it is ``Any``.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any


@cache
def llvm_binding() -> Any:
    """Return ``llvmlite.binding``, with the code generator of this machine ready for use."""
    binding: Any = import_module("llvmlite.binding")
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    return binding


def llvmlite_version() -> str:
    """Return the version of llvmlite."""
    return str(import_module("llvmlite").__version__)
