"""Which machine code belongs to which line of the user: marks in LLVM IR, and debug locations.

Input:  ``; stores C`` ... ``; end`` around the instructions of a store, ``{"C": (file, line)}``
Output: the same module with a debug location on each instruction, which LLVM carries through its
        passes into the assembly, as ``.loc`` directives

The marks are comments: they make the IR readable and cost nothing. Locations are added only where
somebody wants to read the assembly beside the source; they do not change the code. (LLVM language
reference, "Source level debugging": DISubprogram and DILocation.)
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePath

MARK_END = "; end"
_MARK = "; stores "

Lines = Mapping[str, tuple[str, int]]
"""The file and line that compute each buffer, by its name."""


def mark_of(buffers: Sequence[str]) -> str:
    """Return the comment that begins the instructions which compute and store ``buffers``."""
    return _MARK + ", ".join(name.replace("\n", " ") for name in buffers)


def buffer_of(line: str) -> str | None:
    """Return the (first) buffer that a line of IR marks, None for any other line.

    >>> buffer_of("  ; stores C, D")
    'C'
    """
    text = line.strip()
    return text.removeprefix(_MARK).split(", ")[0] if text.startswith(_MARK) else None


def line_of(buffer: str, lines: Lines) -> tuple[str, int] | None:
    """Return the line of a buffer; a copy (``C.local``) belongs to what it is a copy of."""
    name = buffer
    while name not in lines and "." in name:
        name = name.rpartition(".")[0]
    return lines.get(name)


def with_debug_lines(text: str, lines: Lines) -> str:
    """Return the module with debug locations; functions without marks get none."""
    metadata = _Metadata()
    output: list[str] = []
    function: list[str] = []
    for line in text.splitlines():
        if line.startswith("define "):
            function = [line]
        elif function:
            function.append(line)
            if line == "}":
                output.extend(_with_locations(function, lines, metadata))
                function = []
        else:
            output.append(line)
    return "\n".join([*output, *metadata.text()])


def _with_locations(function: list[str], lines: Lines, metadata: _Metadata) -> list[str]:
    marks = [buffer_of(line) for line in function]
    places = [line_of(mark, lines) for mark in marks if mark is not None]
    known = [place for place in places if place is not None]
    if not known:
        return function
    scope = metadata.subprogram(function[0], *known[0])
    outside = current = metadata.location(known[0], scope)
    output = [function[0].removesuffix("{") + f"!dbg !{scope} {{"]
    for line, mark in zip(function[1:], marks[1:], strict=True):
        if mark is not None:
            place = line_of(mark, lines)
            current = outside if place is None else metadata.location(place, scope)
        elif line.strip() == MARK_END:
            current = outside
        elif line.startswith("  ") and not line.strip().startswith(";") and line.strip():
            line = f"{line}, !dbg !{current}"
        output.append(line)
    return output


class _Metadata:
    """Numbered metadata nodes: files, units, a subprogram a function, locations."""

    def __init__(self) -> None:
        self._nodes: list[str] = ['!{i32 2, !"Debug Info Version", i32 3}', "!{}"]
        self._known: dict[str, int] = {}
        self._unit: int | None = None

    def subprogram(self, signature: str, file: str, line: int) -> int:
        found = re.search(r"@([\w.]+)\(", signature)
        name = found.group(1) if found else "kernel"
        place = self._file(file)
        if self._unit is None:
            self._unit = self._add(
                f"distinct !DICompileUnit(language: DW_LANG_C99, file: !{place}, "
                'producer: "tensorlang", isOptimized: true, emissionKind: LineTablesOnly)'
            )
        kind = self._add("!DISubroutineType(types: !1)")
        return self._add(
            f'distinct !DISubprogram(name: "{name}", file: !{place}, line: {line}, '
            f"type: !{kind}, unit: !{self._unit}, spFlags: DISPFlagDefinition)"
        )

    def location(self, place: tuple[str, int], scope: int) -> int:
        file, line = place
        block = self._add(
            f"!DILexicalBlockFile(scope: !{scope}, file: !{self._file(file)}, discriminator: 0)"
        )
        return self._add(f"!DILocation(line: {line}, column: 1, scope: !{block})")

    def text(self) -> list[str]:
        if self._unit is None:
            return []
        named = [f"!llvm.dbg.cu = !{{!{self._unit}}}", "!llvm.module.flags = !{!0}"]
        return [*named, *(f"!{number} = {node}" for number, node in enumerate(self._nodes))]

    def _file(self, file: str) -> int:
        path = PurePath(file)
        return self._add(
            f'!DIFile(filename: "{_escaped(path.name)}", directory: "{_escaped(str(path.parent))}")'
        )

    def _add(self, node: str) -> int:
        if node not in self._known or node.startswith("distinct"):
            self._known[node] = len(self._nodes)
            self._nodes.append(node)
        return self._known[node]


def _escaped(text: str) -> str:
    """Return what LLVM's strings can hold: anything but plain characters as two hex digits."""
    return "".join(
        chr(byte) if 32 <= byte < 127 and byte not in b'"\\' else f"\\{byte:02X}"
        for byte in text.encode(errors="replace")
    )
