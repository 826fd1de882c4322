"""The costs of a program as values, and as text and tables.

Input:  ``Explanation(loops=(LoopCost("i.o", ...), ...), flops=Affine, ...)``
Output: ``print(e)`` a plain table, in a notebook an HTML one, with rich a coloured one
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tensorlang.ir.affine import Affine

if TYPE_CHECKING:
    from rich.console import Group


@dataclass(frozen=True, slots=True)
class AccessCost:
    """How far one step of a loop moves an access, in elements; None where it is no fixed step."""

    tensor: str
    stride: Affine | None

    def __str__(self) -> str:
        return f"{self.tensor}: {'irregular' if self.stride is None else self.stride}"


@dataclass(frozen=True, slots=True)
class LoopCost:
    """One loop: iterations, and what one iteration of it touches.

    ``footprint`` is in bytes, by tensor in ``parts``; ``level`` is the nearest cache that holds it
    ("L1", "L2", "L3", "memory"), empty where the size is not known.
    """

    path: str
    depth: int
    kind: str
    trips: Affine
    footprint: Affine
    parts: tuple[tuple[str, Affine], ...]
    level: str
    accesses: tuple[AccessCost, ...]


@dataclass(frozen=True, slots=True)
class StageCost:
    """One stage: how often it runs, and how often each element is computed (``recompute``).

    ``recompute`` is 1 where each is computed once, None where the sizes are not known.
    """

    name: str
    instances: Affine
    flops: Affine
    recompute: float | None


@dataclass(frozen=True, slots=True)
class Traffic:
    """Bytes that cross from one level of memory to the next nearer one."""

    into: str
    bytes: int


@dataclass(frozen=True, slots=True)
class Explanation:
    """What ``s.explain()`` returns; ``seconds`` and ``limit`` are None where sizes are symbolic.

    ``bytes`` are those of inputs and outputs, each moved once. ``seconds`` is the least time that
    the target's arithmetic and memory allow, and ``limit`` says which of them it is.
    """

    name: str
    target: str
    loops: tuple[LoopCost, ...]
    stages: tuple[StageCost, ...]
    flops: Affine
    bytes: Affine
    traffic: tuple[Traffic, ...] = ()
    seconds: float | None = None
    limit: str | None = None
    peak_gflops: float | None = None
    peak_gigabytes: float | None = None

    def __str__(self) -> str:
        parts = [f"{self.name} on {self.target}"]
        parts.append(_text_table(*self.loop_table()))
        parts.append(_text_table(*self.stage_table()))
        parts.append("\n".join(f"{name}: {value}" for name, value in self.summary()))
        return "\n\n".join(parts)

    def loop_table(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """Return the head and the rows of the table of loops."""
        head = ("loop", "kind", "iterations", "bytes an iteration", "fits", "strides")
        rows = [
            (
                "  " * loop.depth + loop.path,
                loop.kind,
                number(loop.trips),
                number(loop.footprint),
                loop.level,
                ", ".join(map(str, loop.accesses)),
            )
            for loop in self.loops
        ]
        return head, rows

    def stage_table(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """Return the head and the rows of the table of stages."""
        head = ("stage", "instances", "flops", "times each element")
        rows = [
            (
                stage.name,
                number(stage.instances),
                number(stage.flops),
                "" if stage.recompute is None else f"{stage.recompute:.4g}",
            )
            for stage in self.stages
        ]
        return head, rows

    def summary(self) -> list[tuple[str, str]]:
        """Return the lines about the whole, as pairs of a name and a value."""
        lines = [("flops", number(self.flops)), ("bytes in and out", number(self.bytes))]
        lines += [(f"bytes into {item.into}", f"{item.bytes:,}") for item in self.traffic]
        if self.seconds is not None:
            lines.append(("at least", f"{self.seconds * 1e3:.4g} ms, limited by {self.limit}"))
            lines.append(
                ("limits", f"{self.peak_gflops:.4g} GFLOP/s, {self.peak_gigabytes:.4g} GB/s")
            )
        return lines

    def __rich__(self) -> Group:
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        tables: list[Table | Text] = [Text(f"{self.name} on {self.target}", style="bold")]
        for head, rows in (self.loop_table(), self.stage_table(), (("", ""), self.summary())):
            table = Table(*head, show_header=any(head))
            for row in rows:
                table.add_row(*(Text(cell) for cell in row))
            tables.append(table)
        return Group(*tables)

    def _repr_html_(self) -> str:
        from tensorlang.ir.html import table_html

        tables = (self.loop_table(), self.stage_table(), ((), self.summary()))
        return table_html(f"{self.name} on {self.target}", tables)


def number(form: Affine) -> str:
    """Return a count as text: ``1,048,576``, or the form over the sizes."""
    return f"{form.constant:,}" if form.is_constant else str(form)


def _text_table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    widths = [max(len(row[n]) for row in [head, *rows]) for n in range(len(head))]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in [head, tuple("-" * width for width in widths), *rows]
    ]
    return "\n".join(lines)
