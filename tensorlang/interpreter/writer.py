"""Python source under construction, with the objects that it refers to.

Input:  ``with writer.block("for i in range(4):"): writer.line("x = 1")``
Output: ``def run():``, ``for i in range(4):``, ``x = 1``, each one deeper

Python allows 20 nested loops in a function, so deeper ones move into inner functions, which see
the variables around them; nothing that they assign is read outside.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

_LOOPS_PER_FUNCTION = 16


class Writer:
    """Lines of a function ``run()`` and the namespace in which it is to be executed."""

    def __init__(self) -> None:
        self.namespace: dict[str, Any] = {}
        self._lines: list[str] = ["def run():", " pass"]
        self._depth = 1
        self._loops = 0
        self._serial = 0
        self._known: dict[int, str] = {}

    def line(self, text: str) -> None:
        """Append a line at the present depth."""
        self._lines.append(f"{' ' * self._depth}{text}")

    def fresh(self, prefix: str) -> str:
        """Return a name that nothing else has."""
        self._serial += 1
        return f"{prefix}{self._serial}"

    def constant(self, value: object, prefix: str = "k") -> str:
        """Return a name for an object; the same object has one name."""
        name = self._known.get(id(value))
        if name is None:
            name = self._known[id(value)] = self.fresh(prefix)
            self.namespace[name] = value  # which also keeps the object, and so its id, alive
        return name

    @contextmanager
    def block(self, header: str) -> Generator[None, None, None]:
        """Write ``header`` and, one level deeper, the lines of the ``with`` body."""
        loop = header.startswith("for ")
        if loop and self._loops == _LOOPS_PER_FUNCTION:
            with self.function() as name, self.block(header):
                yield
            self.line(f"{name}()")
            return
        self.line(header)
        self._depth, self._loops = self._depth + 1, self._loops + loop
        self.line("pass")
        yield
        self._depth, self._loops = self._depth - 1, self._loops - loop

    @contextmanager
    def function(self) -> Generator[str, None, None]:
        """Write an inner function without parameters; gives its name."""
        name = self.fresh("f")
        self.line(f"def {name}():")
        loops, self._loops = self._loops, 0
        self._depth += 1
        self.line("pass")
        yield name
        self._depth -= 1
        self._loops = loops

    def source(self) -> str:
        """Return the text written so far."""
        return "\n".join(self._lines)

    def compile(self) -> Callable[[], None]:
        """Return the finished function."""
        exec(compile(self.source(), "<interpreter>", "exec"), self.namespace)
        return self.namespace["run"]
