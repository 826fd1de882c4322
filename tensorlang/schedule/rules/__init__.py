"""Default schedules, chosen by what an operator is and written with the public primitives.

The rules look at the definition and at the facts of the machine, never at names or benchmark
sizes. In order:

1. ``inline``: elementwise producers disappear into their readers.
2. ``groups``: what is left is put into groups, each around an anchor, the stage whose loops the
   others join: rows of a softmax, strips of a stencil.
3. ``contraction``, ``reduction``, ``elementwise``: the loops of each stage, by its kind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tensorlang.ir.definition import Definition
    from tensorlang.schedule.schedule import Schedule


def apply_rules(schedule: Schedule, target: str = "cpu") -> None:
    """Take the steps of the default schedule for the machine of ``target``; none were taken yet."""
    from tensorlang.schedule.rules.apply import apply

    apply(schedule, target)


def ranges_of_sizes(definition: Definition, target: str = "cpu") -> list[tuple[str, ...]]:
    """Return the assumptions, one tuple a range, under which other schedules are better."""
    from tensorlang.schedule.rules.machine import machine_of
    from tensorlang.schedule.rules.ranges import contraction_ranges

    return contraction_ranges(definition, machine_of(target))
