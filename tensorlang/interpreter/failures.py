"""What the interpreter reports: which instance did what to which element, and why that is wrong.

Example: ``C[i=3, j=0] (update) reads A.local[3, 5], which was never written since its storage was
allocated``. The generated code raises what these functions return.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tensorlang.errors import TensorlangError


class InterpreterError(TensorlangError):
    """A program that does something no program may do, caught while it was executed.

    Reading what was never written, leaving a tensor or a box, two iterations of a parallel loop
    that touch one element (one of them writing it), a layout that puts two elements in one place.
    """


class DataIndexError(InterpreterError, IndexError):
    """An index taken from data that lies outside its tensor: the caller's mistake."""


class Poison:
    """The content of storage that was never written."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "<never written>"


POISON = Poison()


@dataclass(frozen=True, slots=True)
class Site:
    """An access as it stands in the program; with the values of ``variables``, one that happens.

    ``statement`` is the stage's name, or the text of a lowered store; ``from_data`` tells that the
    index is taken from data.
    """

    statement: str
    variables: tuple[str, ...]
    part: str
    verb: Literal["reads", "writes"]
    storage: str
    from_data: bool = False


def instance(site: Site, values: tuple[int, ...]) -> str:
    """Return ``C[i=3, j=7] (update)``."""
    pairs = ", ".join(f"{n}={v}" for n, v in zip(site.variables, values, strict=True))
    part = f" ({site.part})" if site.part else ""
    return f"{site.statement}[{pairs}]{part}"


def _element(site: Site, index: tuple[int, ...]) -> str:
    return f"{site.storage}[{', '.join(map(str, index)) or '()'}]"


def unwritten(site: Site, values: tuple[int, ...], index: tuple[int, ...]) -> InterpreterError:
    """Report a read of an element that holds poison."""
    return InterpreterError(
        f"{instance(site, values)} reads {_element(site, index)}, "
        "which was never written since its storage was allocated"
    )


def outside(
    site: Site,
    values: tuple[int, ...],
    index: tuple[int, ...],
    origin: tuple[int, ...],
    shape: tuple[int, ...],
) -> InterpreterError:
    """Report an access that leaves its tensor, its box or its buffer."""
    box = ", ".join(
        f"{low} <= _ < {low + extent}" for low, extent in zip(origin, shape, strict=True)
    )
    text = f"{instance(site, values)} {site.verb} {_element(site, index)}, outside [{box}]"
    return DataIndexError(text) if site.from_data else InterpreterError(text)


def race(
    site: Site, values: tuple[int, ...], index: tuple[int, ...], loop: str, other: int | None
) -> InterpreterError:
    """Report two iterations of a loop that runs in any order and touch one element."""
    culprit = "several other iterations" if other is None or other < 0 else f"iteration {other}"
    return InterpreterError(
        f"{instance(site, values)} {site.verb} {_element(site, index)}, which {culprit} of the "
        f"{loop} also accessed, and not all of them only read it"
    )


def thread_race(
    site: Site,
    values: tuple[int, ...],
    index: tuple[int, ...],
    memory: str,
    thread: int,
    other: int | None,
) -> InterpreterError:
    """Report two threads of a block that touch one element without a barrier between them."""
    several = other is None or other < 0
    culprit = "several other threads" if several else f"thread {_thread(other or 0)}"
    why = (
        "and lies in registers, which no thread sees of another"
        if memory == "registers"
        else "since the last barrier, and not all of them only read it"
    )
    return InterpreterError(
        f"thread {_thread(thread)}: {instance(site, values)} {site.verb} {_element(site, index)}, "
        f"which {culprit} of the block also touched {why}"
    )


def _thread(number: int) -> str:
    return f"({number % 1024}, {number // 1024 % 1024}, {number // 1048576})"


def failed_check(
    site: Site, values: tuple[int, ...], index: int, extent: int, where: str
) -> InterpreterError:
    """Report a bounds check that failed in a lowered program."""
    return DataIndexError(
        f"{instance(site, values)}: index {index} is out of range for {where} of extent {extent}"
    )
