"""``tensorlang show``: the loops, LLVM IR or assembly of operators, beside the user's lines.

Input:  ``tensorlang show blur.py:blur --kind loops``
Output: each line that computes something, followed by ``# blur.py:12: return tl.tensor(...)``
"""

from __future__ import annotations

import linecache
import re
from collections.abc import Iterator, Sequence
from pathlib import PurePath

import tensorlang as tl
from tensorlang.backends.cpu import assembly_of
from tensorlang.backends.llvm.debug_lines import Lines, buffer_of, line_of
from tensorlang.cli.console import make_display
from tensorlang.cli.load_program import NotShown, load_program
from tensorlang.ir.definition import Definition
from tensorlang.schedule.schedule import Schedule

KINDS = ("schedule", "loops", "llvm", "asm")

_NOTE_COLUMN = 60
_STORE = re.compile(r"\s*([\w.]+)(?:\[[^=]*\])? [-+*&|^]?=(?!=)(?! (?:local|global|shared) )")
_CLUTTER = re.compile(r"\.(cfi_|p2align|ident|type|size|file)|\.L(tmp|func)\w*:")


def run(program: str, kind: str, sizes: Sequence[str], target: str) -> int:
    """Print what ``program`` (``FILE[:OPERATOR]``) becomes; returns the exit status."""
    if kind not in KINDS:
        raise NotShown(f"--kind is {', '.join(KINDS)}, found {kind!r}")
    display = make_display()
    for name, schedule in load_program(program, sizes):
        display.heading(f"{name} for {target}")
        display.code("\n".join(annotated(schedule, kind, target)))
    return 0


def annotated(schedule: Schedule, kind: str, target: str = "cpu") -> Iterator[str]:
    """Yield the lines of a source of ``schedule``, with the user's lines as comments."""
    lines = lines_of(schedule.definition)
    if kind == "schedule":
        yield from _beside_stores(str(schedule), lines)
        return
    function = tl.compile(schedule, target)
    loops = function.source("loops")
    if kind == "loops":
        yield from _beside_stores(loops, lines)
    elif kind == "llvm" or not target.startswith("cpu"):
        text = function.source("llvm" if kind == "llvm" else "ptx")
        yield from _beside_marks(text, lines)
    else:
        vectorize = "vectorized for" not in loops
        yield from _beside_code(assembly_of(function.source("llvm"), target, vectorize, lines))


def lines_of(definition: Definition) -> Lines:
    """Return the file and line of each tensor that the definition computes."""
    return {
        tensor.name: (stage.location.file, stage.location.line)
        for stage in definition.stages
        for tensor in stage.tensors
        if stage.location.line
    }


def quote(place: tuple[str, int]) -> str:
    """Return ``blur.py:12: return tl.tensor(...)``."""
    file, line = place
    text = linecache.getline(file, line).strip()
    return f"{PurePath(file).name}:{line}" + (f": {text}" if text else "")


def _beside_stores(text: str, lines: Lines) -> Iterator[str]:
    last = None
    for line in text.splitlines():
        found = _STORE.match(line)
        place = None if found is None else line_of(found.group(1), lines)
        # a tile of a hundred stores says once where it comes from
        if place is None or place == last:
            yield line
        else:
            yield f"{line:<{_NOTE_COLUMN}}  # {quote(place)}"
        last = place or last


def _beside_marks(text: str, lines: Lines) -> Iterator[str]:
    for line in text.splitlines():
        buffer = buffer_of(line)
        place = None if buffer is None else line_of(buffer, lines)
        yield line if place is None else f"{line}: {quote(place)}"


def _beside_code(assembly: str) -> Iterator[str]:
    """Yield instructions and labels; ``.loc`` directives become the lines that they name."""
    files: dict[str, str] = {}
    last = ""
    for line in assembly.splitlines():
        text = line.strip()
        file = re.match(r'\.file\s+(\d+)\s+"([^"]*)"(?:\s+"([^"]*)")?', text)
        place = re.match(r"\.loc\s+(\d+)\s+(\d+)", text)
        if file is not None:
            number, folder, name = file.groups()
            files[number] = f"{folder}/{name}" if name else folder
        elif place is not None:
            number, row = place.groups()
            note = quote((files.get(number, ""), int(row))) if row != "0" else ""
            if note and note != last:
                yield f"# {note}"
                last = note
        elif text.startswith(".section") and ".debug" in text:
            return  # tables for debuggers, up to the end
        elif not _CLUTTER.match(text):
            yield line
