"""Runs the Python of a documentation page and compares what it prints.

Input:  a Markdown page; its fenced ``python`` blocks run in order, in one namespace.
Output: for each ``text`` block that follows the remark ``<!-- output -->``, what was printed since
the last one, beside what the page says. ``...`` on the page stands for any text.

    ```python                  An exception is reported at the page's own line, since each block
    print(1 + 1)               is compiled with the page as its file and its true line numbers.
    ```
    <!-- output -->
    ```text
    2
    ```
"""

import contextlib
import doctest
import io
import linecache
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

FENCE = re.compile(r"^(?P<fence>`{3,})(?P<language>[^`\s]*)[^`]*$")
OUTPUT_MARK = "<!-- output -->"


@dataclass(frozen=True)
class Block:
    """A fenced block: its text and the lines (from 0) that the text fills."""

    kind: Literal["python", "output"]
    text: str
    start: int
    end: int


@dataclass(frozen=True)
class Mismatch:
    """An output block that does not say what was printed."""

    block: Block
    printed: str

    def describe(self, page: Path) -> str:
        """Return both texts, with the place on the page."""
        place = f"{page}:{self.block.start + 1}"
        return f"{place}: the page says\n{self.block.text}\nbut the snippet printed\n{self.printed}"


def find_blocks(page: str) -> list[Block]:
    """Return the blocks of a page that count: Python, and marked outputs."""
    blocks: list[Block] = []
    lines = page.splitlines()
    marked = False
    number = 0
    while number < len(lines):
        opening = FENCE.match(lines[number])
        if opening is None:
            if lines[number].strip():
                marked = lines[number].strip() == OUTPUT_MARK
            number += 1
            continue
        start = number + 1
        end = start
        while end < len(lines) and lines[end].rstrip() != opening["fence"]:
            end += 1
        text = "\n".join(lines[start:end])
        if opening["language"] == "python":
            blocks.append(Block("python", text, start, end))
        elif opening["language"] == "text" and marked:
            blocks.append(Block("output", text, start, end))
        marked = False
        number = end + 1
    return blocks


def run_page(page: Path, name: str | None = None) -> list[Mismatch]:
    """Run a page's Python and return the outputs that differ from what the page says.

    ``name`` is what errors call the page: a path that is the same on every machine.
    """
    name = str(page) if name is None else name
    source = page.read_text()
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    namespace: dict[str, Any] = {"__name__": "__docs__"}
    mismatches: list[Mismatch] = []
    printed = io.StringIO()
    for block in find_blocks(source):
        if block.kind == "python":
            code = compile("\n" * block.start + block.text, name, "exec")
            with contextlib.redirect_stdout(printed):
                exec(code, namespace)
            continue
        got = "\n".join(line.rstrip() for line in printed.getvalue().rstrip().splitlines())
        if not _agrees(block.text, got):
            mismatches.append(Mismatch(block, got))
        printed = io.StringIO()
    return mismatches


def _agrees(want: str, got: str) -> bool:
    flags = doctest.ELLIPSIS
    return doctest.OutputChecker().check_output(want.rstrip() + "\n", got + "\n", flags)


def update_page(page: Path, name: str | None = None) -> int:
    """Write what the snippets print into the page; return the number of blocks changed.

    Repeated, because outputs may name lines of the page, which move when outputs grow.
    """
    changed = 0
    for _ in range(3):
        mismatches = run_page(page, name)
        lines = page.read_text().splitlines()
        for mismatch in reversed(mismatches):
            lines[mismatch.block.start : mismatch.block.end] = mismatch.printed.splitlines()
        if not mismatches:
            break
        page.write_text("\n".join(lines) + "\n")
        changed = max(changed, len(mismatches))
    return changed
