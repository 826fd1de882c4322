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
    from tensorlang.schedule.rules.choice import Choice, Chooser
    from tensorlang.schedule.schedule import Schedule

LEAST_SECONDS = 5e-6
"""Estimated work on one thread of which no operator has versions for certain sizes."""


def apply_rules(schedule: Schedule, target: str = "cpu", choice: Choice | None = None) -> None:
    """Take the steps of the default schedule for the machine of ``target``.

    Nothing was done before but what ``choice``, the version that is wanted, takes for granted.
    """
    from tensorlang.schedule.rules.apply import apply

    apply(schedule, target, None if choice is None else choice.product)


def chooser(definition: Definition, target: str) -> Chooser:
    """Return what chooses versions of the default schedule by the sizes of calls."""
    from tensorlang.schedule.rules.choice import Chooser
    from tensorlang.schedule.rules.machine import machine_of

    return Chooser(definition, machine_of(target))
