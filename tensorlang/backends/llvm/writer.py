"""Text of LLVM functions and modules, written line by line.

A function is two lists of lines (the entry block with its allocas, and the rest), a counter for
names, and the label of the block being written. Text through these few methods is twenty times
faster to make than objects, and LLVM's parser checks it anyway.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from contextlib import contextmanager

from tensorlang.backends.llvm.types import Type, Value


def identifier(name: str) -> str:
    """Return ``name`` with what LLVM does not take in a plain name replaced."""
    return re.sub(r"[^A-Za-z0-9_.]", "_", name)


class ModuleWriter:
    """The declarations and finished functions of a module."""

    __slots__ = ("declarations", "functions", "helpers")

    def __init__(self) -> None:
        self.declarations: dict[str, None] = {}
        self.functions: list[str] = []
        self.helpers: dict[str, str] = {}

    def declare(self, text: str) -> None:
        """Add ``declare TEXT`` once."""
        self.declarations[text] = None

    def helper(self, name: str, text: str) -> None:
        """Add a function that several places may call, or what it reads, once."""
        self.helpers[name] = text

    def text(self) -> str:
        """Return the module."""
        declared = [f"declare {text}" for text in self.declarations]
        return "\n".join([*declared, "", *self.helpers.values(), *self.functions])


class FunctionWriter:
    """One function under construction."""

    __slots__ = ("_allocas", "_counter", "block", "lines", "module")

    def __init__(self, module: ModuleWriter) -> None:
        self.module = module
        self.lines: list[str] = []
        self.block = "start"
        self._allocas: list[str] = []
        self._counter = 0

    def name(self, stem: str = "v") -> str:
        """Return a fresh local name."""
        self._counter += 1
        return f"%{stem}{self._counter}"

    def label(self, stem: str) -> str:
        """Return a fresh label; :meth:`place` begins its block."""
        self._counter += 1
        return f"{identifier(stem)}.{self._counter}"

    def emit(self, instruction: str, type: Type) -> Value:
        """Write an instruction that has a result and return the result."""
        self._counter += 1
        ref = f"%v{self._counter}"
        self.lines.append(f"  {ref} = {instruction}")
        return Value(ref, type)

    def line(self, instruction: str) -> None:
        """Write an instruction without a result."""
        self.lines.append(f"  {instruction}")

    def alloca(self, type_text: str, alignment: int, pointer: Type) -> Value:
        """Reserve stack storage in the entry block, once per call of the function."""
        ref = self.name("stack")
        self._allocas.append(f"  {ref} = alloca {type_text}, align {alignment}")
        return Value(ref, pointer)

    @contextmanager
    def at_entry(self) -> Generator[None, None, None]:
        """Write into the entry block for a while, once per call of the function; no branches."""
        before, self.lines = self.lines, self._allocas
        try:
            yield
        finally:
            self.lines = before

    def place(self, label: str) -> None:
        """Begin the block ``label``; the block before must have been ended."""
        self.lines.append(f"{label}:")
        self.block = label

    def jump(self, label: str) -> None:
        """End the block with a jump."""
        self.lines.append(f"  br label %{label}")

    def branch(self, condition: Value, then: str, otherwise: str) -> None:
        """End the block with a conditional jump."""
        self.lines.append(f"  br i1 {condition.ref}, label %{then}, label %{otherwise}")

    def reserve(self) -> int:
        """Leave room for a line that is known later (a phi) and return its place."""
        self.lines.append("")
        return len(self.lines) - 1

    def text(self, signature: str, attributes: str) -> str:
        """Return the function."""
        body = "\n".join(["entry:", *self._allocas, "  br label %start", "start:", *self.lines])
        return f"define {signature} {attributes} {{\n{body}\n}}\n"

    def finish(self, signature: str, attributes: str) -> None:
        """Add the function to the module."""
        self.module.functions.append(self.text(signature, attributes))
