"""Golden texts, written where they are compared, and updated by one flag.

    TENSORLANG_GOLDEN=update python -m pytest -n 0 tests/schedule

rewrites the literal of every ``same(found, '''...''')`` that differs; read the diff afterwards.
"""

from __future__ import annotations

import ast
import atexit
import os
import sys
import textwrap
from pathlib import Path

_UPDATES: dict[tuple[str, int], str] = {}


def same(found: str, expected: str, depth: int = 1) -> None:
    """Assert that two texts are equal, apart from common indentation and outer blank lines."""
    found = found.strip("\n")
    if os.environ.get("TENSORLANG_GOLDEN") == "update":
        if found != _plain(expected):
            frame = sys._getframe(depth)
            if not _UPDATES:
                atexit.register(_write_updates)
            _UPDATES[frame.f_code.co_filename, frame.f_lineno] = found
        return
    assert found == _plain(expected)


def _plain(text: str) -> str:
    lines = [line.rstrip() for line in textwrap.dedent(text).strip("\n").splitlines()]
    return "\n".join(lines).strip("\n")


def _write_updates() -> None:
    for file in {file for file, _ in _UPDATES}:
        lines = Path(file).read_text().splitlines(keepends=True)
        calls = [node for node in ast.walk(ast.parse("".join(lines))) if isinstance(node, ast.Call)]
        texts: list[tuple[ast.Constant, str]] = []
        for (updated, line), text in _UPDATES.items():
            around = [c for c in calls if c.lineno <= line <= (c.end_lineno or 0)]
            literals = [
                a
                for c in sorted(around, key=lambda c: -c.lineno)
                for a in c.args
                if isinstance(a, ast.Constant) and isinstance(a.value, str) and "\n" in a.value
            ]
            if updated == file and literals:
                texts.append((literals[-1], text))
        for literal, text in sorted(texts, key=lambda pair: -pair[0].lineno):
            first, last = literal.lineno - 1, (literal.end_lineno or 0)
            start = lines[first][: literal.col_offset]
            rest = lines[last - 1][literal.end_col_offset :]
            margin = " " * (len(start) - len(start.lstrip()))
            inner = "".join(f"{margin}{one}\n" if one else "\n" for one in text.splitlines())
            lines[first:last] = [f'{start}"""\n{inner}{margin}"""{rest}']
        Path(file).write_text("".join(lines))
