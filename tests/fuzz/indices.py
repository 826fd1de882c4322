"""Random indices that stay inside their tensor, and the conditions under which they do.

Input:  an axis of extent ``M`` of a tensor; loops ``i < M``, ``j < M // 2``
Output: ``i``, ``M - 1 - i``, ``2 * j + 1``, or ``i - 1`` with the condition ``i >= 1``
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random


@dataclass(frozen=True)
class Loop:
    """An axis of a comprehension: its variable, and an extent below which it stays."""

    name: str
    extent: str


@dataclass(frozen=True)
class Index:
    """An index and the conditions that keep it inside."""

    text: str
    conditions: tuple[str, ...] = ()


def draw_index(
    random: Random, extent: str, loops: Sequence[Loop], gather: Callable[[str], str | None]
) -> Index:
    """Return an index below ``extent``; ``gather`` gives an element of an index tensor, if any."""
    same = [loop.name for loop in loops if loop.extent == extent]
    if same and random.random() < 0.72:
        return Index(random.choice(same))
    if random.random() < 0.12:
        found = gather(extent)
        if found is not None:
            return Index(found)
    options = [
        *[Index(f"({extent}) - 1 - {name}") for name in same],
        *[Index(f"{n} - {c}", (f"({n} >= {c})",)) for n in same for c in (1, 2)],
        *[Index(f"{n} + {c}", (f"({n} + {c} < {extent})",)) for n in same for c in (1, 2)],
        *_derived(extent, loops),
    ]
    if not options or random.random() < 0.1:
        options += [_guarded(random, extent, loop.name) for loop in loops]
    if extent.isdigit() and not (options and random.random() < 0.8):
        return Index(str(random.randrange(int(extent))))
    if options:
        return random.choice(options)
    return Index("0", (f"({extent} > 0)",))


def _derived(extent: str, loops: Sequence[Loop]) -> list[Index]:
    """Indices whose loop has an extent related to the tensor's."""
    found: list[Index] = []
    for loop in loops:
        n = loop.name
        if loop.extent == f"{extent} // 2":
            found += [Index(f"2 * {n}"), Index(f"2 * {n} + 1")]
        if loop.extent == f"({extent} + 1) // 2":
            found += [Index(f"2 * {n}"), Index(f"2 * {n} + 1", (f"(2 * {n} + 1 < {extent})",))]
        if loop.extent == f"2 * {extent}":
            found += [Index(f"{n} // 2")]
        if loop.extent == f"{extent} + 2":
            found += [Index(f"{n} - 1", (f"({n} >= 1)", f"({n} < {extent} + 1)"))]
        if extent.endswith(" + 2") and loop.extent == extent.removesuffix(" + 2"):
            found += [Index(f"{n} + {c}") for c in (0, 1, 2)]
            found += [Index(f"{n} + {w.name}") for w in loops if w.extent in ("2", "3")] * 2
        if loop.extent == f"{extent} - 2":
            found += [Index(f"{n} + {c}") for c in (0, 1, 2)]
            found += [Index(f"{n} + {w.name}") for w in loops if w.extent in ("2", "3")] * 2
        if extent.isdigit() and extent != "0":
            found += [Index(f"{n} % {extent}")]
    return found


def _guarded(random: Random, extent: str, name: str) -> Index:
    match random.choice(["lower", "half", "centre"]):
        case "lower":
            return Index(name, (f"({name} < {extent})",))
        case "half":
            return Index(f"{name} // 2", (f"({name} // 2 < {extent})",))
        case _:
            return Index(f"{name} - 1", (f"({name} >= 1)", f"({name} - 1 < {extent})"))
