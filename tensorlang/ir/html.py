"""Programs and tables as HTML for notebooks: self-contained, everything escaped.

Input:  ``parallel for i in M:  # chunk=4``
Output: ``<span style="color:...">parallel for</span> i in M:`` inside one ``<pre>``
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape

_COLOURS = {
    "parallel": "#b3541e",
    "vectorized": "#7a3fa0",
    "unrolled": "#2c7a4b",
    "block": "#a01c4c",
    "thread": "#1c6a8f",
    "": "#1f4fa8",
}
"""The colour of the head of a loop, by its kind; blocks and threads whatever their axis."""

_LOOP = re.compile(r"^(\s*)((?:(parallel|vectorized|unrolled|block|thread)(?:\.[xyz])? )?for )")
_STYLE = "font-family:monospace;line-height:1.3;white-space:pre;overflow-x:auto"
_CELL = "text-align:left;white-space:pre;font-family:monospace;padding:0 0.8em"


def program_html(text: str) -> str:
    """Return a printed program as HTML, with loops coloured by how they run."""
    lines = "\n".join(_line(line) for line in text.splitlines())
    return f'<pre style="{_STYLE}">{lines}</pre>'


def table_html(title: str, tables: Iterable[tuple[Sequence[str], Sequence[Sequence[str]]]]) -> str:
    """Return tables of text, each a head (perhaps empty) and rows, as HTML."""
    parts = [f"<p><b>{escape(title)}</b></p>"]
    for head, rows in tables:
        cells = [_row("th", head)] if head else []
        cells += [_row("td", row) for row in rows]
        parts.append(f"<table>{''.join(cells)}</table>")
    return f"<div>{''.join(parts)}</div>"


def _row(tag: str, cells: Sequence[str]) -> str:
    inner = "".join(f'<{tag} style="{_CELL}">{escape(cell)}</{tag}>' for cell in cells)
    return f"<tr>{inner}</tr>"


def _line(line: str) -> str:
    code, mark, remark = line.partition("  # ")
    tail = f'<span style="color:#777">{escape(mark + remark)}</span>' if mark else ""
    found = _LOOP.match(code)
    if found is None:
        return escape(code) + tail
    colour = _COLOURS[found[3] or ""]
    head = f'<span style="color:{colour};font-weight:bold">{escape(found[2])}</span>'
    return f"{found[1]}{head}{escape(code[found.end() :])}{tail}"
