"""How the command shows things: colours, boxes and progress in a terminal, plain text in a pipe.

Input:  ``display.table("Times", ("program", "ms"), [("SciPy", "12.0")])``
Output: a rich table in a terminal; in a pipe the same as Markdown, without escape codes.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.syntax import Syntax
from rich.table import Table

PIPE_WIDTH = 1000
"""Columns of what is not a terminal: nothing is folded or cut for a program that reads it."""


@dataclass(frozen=True, slots=True)
class Display:
    """Where a sub-command prints; ``console`` knows whether a person looks at it."""

    console: Console

    def heading(self, text: str) -> None:
        """Print a line that begins a part."""
        self.console.print()
        if self.console.is_terminal:
            self.console.rule(f"[bold]{escape(text)}", align="left")
        else:
            self.console.print(f"## {text}", markup=False, highlight=False, soft_wrap=True)

    def text(self, text: str) -> None:
        """Print a line of prose, unchanged."""
        self.console.print(text, markup=False, highlight=False, soft_wrap=True)

    def code(self, text: str) -> None:
        """Print loops or Python, coloured in a terminal, and never broken in a pipe."""
        if self.console.is_terminal:
            self.console.print(Syntax(text, "python", word_wrap=True, background_color="default"))
        else:
            self.text(text)

    def table(
        self,
        title: str,
        columns: Sequence[str],
        rows: Iterable[Sequence[str]],
        figures: bool = True,
    ) -> None:
        """Print a table; with ``figures`` all columns but the first are aligned to the right."""
        if not self.console.is_terminal:
            self.text(f"{title}\n\n{_markdown([columns, *rows], figures)}\n")
            return
        table = Table(title=escape(title), title_justify="left", box=box.ROUNDED)
        for number, column in enumerate(columns):
            table.add_column(column, justify="right" if figures and number else "left")
        for row in rows:
            table.add_row(*map(escape, row))
        self.console.print(table)

    @contextmanager
    def step(self, text: str) -> Generator[None]:
        """Show a spinner beside ``text`` while the body runs; in a pipe just say it."""
        if not self.console.is_terminal:
            self.text(f"{text} ...")
            yield
            return
        with self.console.status(text):
            yield

    def progress(self, steps: Sequence[str] | range, text: str) -> Iterator[object]:
        """Yield the items of ``steps`` with a progress bar, which only a terminal shows.

        It is drawn between the items, by no thread of its own, so that it disturbs no measurement.
        """
        from rich.progress import Progress

        plain = not self.console.is_terminal
        with Progress(
            console=self.console, disable=plain, transient=True, auto_refresh=False
        ) as progress:
            task = progress.add_task(text, total=len(steps))
            for step in steps:
                progress.refresh()
                yield step
                progress.advance(task)


def _markdown(rows: Sequence[Sequence[str]], figures: bool) -> str:
    """Return a table as aligned Markdown; the first row is its head."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]

    def line(cells: Sequence[str]) -> str:
        padded = [
            cell.rjust(width) if figures and number else cell.ljust(width)
            for number, (cell, width) in enumerate(zip(cells, widths, strict=True))
        ]
        return f"| {' | '.join(padded)} |"

    rule = ["-" * (width - 1) + (":" if figures and n else "-") for n, width in enumerate(widths)]
    return "\n".join([line(rows[0]), line(rule), *map(line, rows[1:])])


def make_display(file: IO[str] | None = None, terminal: bool | None = None) -> Display:
    """Return a display for standard output, or for ``file``; ``terminal`` overrides what it is."""
    console = Console(file=file, force_terminal=terminal, highlight=False)
    if not console.is_terminal:
        console.width = PIPE_WIDTH
    return Display(console)
