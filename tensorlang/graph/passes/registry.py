"""The passes, in the order in which they run, and the context that chooses among them.

Input:  ``with tl.PassContext(disable=["fuse_elementwise"], print_ir=True): tl.compile(g)``
Output: the graph after every other pass whose level is at most the optimization level
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tensorlang.graph.program import GraphProgram

Rewrite = Callable[[GraphProgram], GraphProgram]


@dataclass(frozen=True, slots=True)
class GraphPass:
    """A rewrite that leaves what a graph computes as it is, run from ``level`` on."""

    name: str
    level: int
    rewrite: Rewrite
    summary: str


PASSES: list[GraphPass] = []
"""Every registered pass, in the order of registration, which is the order of running."""


def graph_pass(level: int) -> Callable[[Rewrite], Rewrite]:
    """Register a function ``GraphProgram -> GraphProgram`` as a pass, under its own name."""

    def register(rewrite: Rewrite) -> Rewrite:
        name = rewrite.__name__
        if any(known.name == name for known in PASSES):
            raise ValueError(f"a graph pass is called {name} already")
        summary = (rewrite.__doc__ or "").strip().partition("\n")[0]
        PASSES.append(GraphPass(name, level, rewrite, summary))
        return rewrite

    return register


class PassContext:
    """Which passes run on the graphs that are compiled inside of the ``with`` block.

    Parameters
    ----------
    opt_level
        Run the passes up to this level; None: that of ``tl.compile``.
    disable
        Names of passes that do not run.
    print_ir
        Print the graph before the first pass, and after each one that changed it.
    dump_ir
        A directory, into which the same is written: ``00-input.txt``, ``01-fold_constants.txt``.

    Raises
    ------
    ValueError
        For a name that is no pass, and a level that does not exist.

    Examples
    --------
    >>> import tensorlang as tl
    >>> with tl.PassContext(disable=["fuse_elementwise"]):
    ...     pass  # m = tl.compile(g)

    """

    def __init__(
        self,
        opt_level: int | None = None,
        disable: Iterable[str] = (),
        print_ir: bool = False,
        dump_ir: str | Path | None = None,
    ) -> None:
        self.opt_level = opt_level
        self.disable = frozenset(disable)
        self.print_ir = print_ir
        self.dump_ir = None if dump_ir is None else Path(dump_ir)
        if opt_level is not None and opt_level not in (0, 1, 2, 3):
            raise ValueError(f"opt_level must be 0, 1, 2 or 3, found {opt_level!r}")
        unknown = self.disable - {known.name for known in PASSES}
        if unknown:
            raise ValueError(
                f"there is no graph pass {', '.join(sorted(unknown))}; the passes are "
                f"{', '.join(known.name for known in PASSES)}"
            )

    def __enter__(self) -> PassContext:
        _stack().append(self)
        return self

    def __exit__(self, *_: object) -> None:
        _stack().pop()

    def _show(self, number: int, name: str, program: GraphProgram) -> None:
        if self.print_ir:
            print(f"# {name}\n{program}\n")
        if self.dump_ir is not None:
            self.dump_ir.mkdir(parents=True, exist_ok=True)
            (self.dump_ir / f"{number:02}-{name}.txt").write_text(f"{program}\n")


_state = threading.local()


def _stack() -> list[PassContext]:
    stack: list[PassContext] | None = getattr(_state, "stack", None)
    if stack is None:
        stack = _state.stack = []
    return stack


def optimize(program: GraphProgram, opt_level: int) -> GraphProgram:
    """Return the graph after the passes that the level and the innermost context choose."""
    stack: list[Any] = _stack()
    context: PassContext = stack[-1] if stack else PassContext()
    level = opt_level if context.opt_level is None else context.opt_level
    context._show(0, "input", program)  # pyright: ignore[reportPrivateUsage]
    for number, chosen in enumerate(PASSES, start=1):
        if chosen.level > level or chosen.name in context.disable:
            continue
        changed = chosen.rewrite(program)
        if changed is not program:
            program = changed
            context._show(number, chosen.name, program)  # pyright: ignore[reportPrivateUsage]
    return program
