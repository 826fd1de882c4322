"""Elementary functions as vector instructions, by family."""

from __future__ import annotations

from collections.abc import Callable

from tensorlang.backends.llvm.types import Value

FUNCTIONS: dict[str, Callable[..., Value]] = {}
