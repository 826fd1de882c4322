"""The page of faults names tests that exist, one or more for each kind."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
PAGE = TESTS.parent / "docs" / "faults.md"
HEADINGS = ("Schedules and lowering", "Arithmetic", "Vectors and code generation", "Sizes", "Use")


def rows() -> list[str]:
    return [
        line
        for line in PAGE.read_text().splitlines()
        if line.startswith("| ") and not line.startswith("| kind |")
    ]


@cache
def functions_of(file: Path) -> frozenset[str]:
    tree = ast.parse(file.read_text())
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef))


@pytest.mark.parametrize("row", rows(), ids=lambda row: row.split(" | ")[0][2:40])
def test_the_named_test_exists(row: str) -> None:
    named = re.findall(r"`([\w/]+\.py)::(\w+)`", row.split(" | ")[-1])
    assert named, f"no test covers {row.split(' | ')[0][2:]}"
    for file, function in named:
        assert function in functions_of(TESTS / file), f"{file} has no {function}"


def test_every_group_has_its_table() -> None:
    text = PAGE.read_text()
    for heading in HEADINGS:
        section = text.split(f"## {heading}\n")[1].split("\n## ")[0]
        assert section.count("\n| ") > 2, heading
