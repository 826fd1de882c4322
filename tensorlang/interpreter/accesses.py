"""Reads and writes of elements as Python source, with every check that the interpreter makes.

Input:  a read of ``A[i, k]``
Output: bounds of each index, the place in memory (through the layout), who else touched it
        (inside loops that run in any order), and whether it was ever written
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from tensorlang.interpreter.context import Context, Frame, Storage
from tensorlang.interpreter.failures import Site
from tensorlang.interpreter.forms import tuple_text
from tensorlang.interpreter.threads import logs_of


@dataclass(frozen=True, slots=True)
class Origin:
    """The instance on whose behalf something is accessed: what errors name, and its values."""

    statement: str
    variables: tuple[str, ...]
    values: tuple[str, ...]
    part: str = ""

    def site(self, verb: Literal["reads", "writes"], storage: Storage, from_data: bool) -> Site:
        """Return the access as errors describe it."""
        return Site(self.statement, self.variables, self.part, verb, storage.name, from_data)


@dataclass(frozen=True, slots=True)
class Element:
    """An element whose index is known to lie inside: ``place`` is the source of its position."""

    storage: Storage
    place: str
    index: str
    site: Site
    values: str


def locate(
    context: Context,
    storage: Storage,
    indices: tuple[str, ...],
    origin: Origin,
    verb: Literal["reads", "writes"],
    from_data: bool = False,
) -> Element:
    """Check that an index lies inside and return the element."""
    writer = context.writer
    site = origin.site(verb, storage, from_data)
    values = tuple_text(origin.values)
    positions: list[str] = []
    for index, low in zip(indices, storage.origin, strict=True):
        position = writer.fresh("x")
        writer.line(f"{position} = {index}" if low == "0" else f"{position} = {index} - ({low})")
        positions.append(position)
    logical = tuple_text(
        [
            position if low == "0" else f"{position} + ({low})"
            for position, low in zip(positions, storage.origin, strict=True)
        ]
    )
    element = Element(storage, _place(storage, positions), logical, site, values)
    if positions:
        inside = " and ".join(
            f"0 <= {position} < {extent}"
            for position, extent in zip(positions, storage.shape, strict=True)
        )
        box = f"{tuple_text(storage.origin)}, {tuple_text(storage.shape)}"
        writer.line(
            f"if not ({inside}): raise outside({writer.constant(site)}, {values}, {logical}, {box})"
        )
    place = writer.fresh("q")
    writer.line(f"{place} = {element.place}")
    return replace(element, place=place)


def _place(storage: Storage, positions: list[str]) -> str:
    """Return the source of the cell's number: row-major, or where the layout puts it."""
    flat = "0"
    for position, extent in zip(positions, storage.shape, strict=True):
        flat = position if flat == "0" else f"({flat})*{extent} + {position}"
    return f"{storage.table}[{flat}]" if storage.table is not None else flat


def read(context: Context, element: Element, *, moves: bool = False) -> str:
    """Write the read of an element and return the name of its value.

    What was never written may not be read, except to be moved to another place: a box that is
    copied in before it is overwritten holds such elements, and whoever uses one is caught then.
    """
    writer, storage = context.writer, element.storage
    value = writer.fresh("t")
    for frame, wrote, has_read in _logs(context, storage):
        me = frame.iteration
        writer.line(
            f"if {wrote}.get({element.place}, {me}) != {me}: "
            f"raise {_race(context, element, frame)}, {wrote}.get({element.place}))"
        )
        writer.line(
            f"if {has_read}.setdefault({element.place}, {me}) != {me}: "
            f"{has_read}[{element.place}] = -1"
        )
    writer.line(f"{value} = {storage.cells}[{element.place}]")
    if not storage.is_input and not moves:
        site = writer.constant(element.site)
        writer.line(
            f"if {value} is POISON: raise unwritten({site}, {element.values}, {element.index})"
        )
    return value


def claim(context: Context, element: Element) -> None:
    """Write the checks that belong to a write; :func:`commit` stores the value."""
    writer = context.writer
    for frame, wrote, has_read in _logs(context, element.storage):
        me = frame.iteration
        writer.line(
            f"if {wrote}.setdefault({element.place}, {me}) != {me} "
            f"or {has_read}.get({element.place}, {me}) != {me}: "
            f"raise {_race(context, element, frame)}, "
            f"{wrote}[{element.place}] if {wrote}[{element.place}] != {me} "
            f"else {has_read}.get({element.place}))"
        )


def commit(context: Context, writes: list[tuple[Element, str]]) -> None:
    """Store values; with lanes open, put them aside until every lane has read."""
    if context.pending is None:
        for element, value in writes:
            context.writer.line(f"{element.storage.cells}[{element.place}] = {value}")
        return
    parts = [part for element, value in writes for part in (element.place, value)]
    context.writer.line(f"{context.pending}.append({tuple_text(parts)})")


def flush(context: Context, pending: str, storages: list[Storage]) -> None:
    """Store what :func:`commit` put aside, lane after lane."""
    writer = context.writer
    pairs = [(writer.fresh("q"), writer.fresh("t")) for _ in storages]
    targets = tuple_text([name for pair in pairs for name in pair])
    with writer.block(f"for {targets} in {pending}:"):
        for storage, (place, value) in zip(storages, pairs, strict=True):
            writer.line(f"{storage.cells}[{place}] = {value}")


def _logs(context: Context, storage: Storage) -> list[tuple[Frame, str, str]]:
    """Return the frames between whose iterations ``storage`` is shared, with their logs."""
    logs = [
        (frame, *frame.logs[storage])
        for frame in context.frames[storage.level :]
        if storage in frame.logs
    ]
    block = logs_of(context, storage)
    return logs if block is None else [*logs, block]


def _race(context: Context, element: Element, frame: Frame) -> str:
    """Return the source of a race report, without its last argument."""
    site = context.writer.constant(element.site)
    if frame.is_block:
        who = f"{frame.label!r}, {frame.iteration}"
        return f"thread_race({site}, {element.values}, {element.index}, {who}"
    return f"race({site}, {element.values}, {element.index}, {frame.label!r}"
