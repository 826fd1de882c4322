"""Default schedules, chosen by what an operator is and written with the public primitives.

The rules look at the definition and at the facts of the machine, never at names or benchmark
sizes. In order:

1. ``inline``: elementwise producers disappear into their readers.
2. ``groups``: what is left is put into groups, each around an anchor, the stage whose loops the
   others join: rows of a softmax, strips of a stencil.
3. ``contraction``, ``reduction``, ``elementwise``: the loops of each stage, by its kind.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tensorlang.ir.definition import Definition
    from tensorlang.schedule.rules.choice import Choice
    from tensorlang.schedule.schedule import Schedule


def apply_rules(schedule: Schedule, target: str = "cpu", choice: Choice | None = None) -> None:
    """Take the steps of the default schedule for the machine of ``target``.

    Nothing was done before but what ``choice``, the version that is wanted, takes for granted.
    """
    from tensorlang.schedule.rules.apply import apply
    from tensorlang.schedule.rules.choice import GENERAL

    apply(schedule, target, choice or GENERAL)


def choose_version(definition: Definition, target: str, sizes: Mapping[str, int]) -> Choice:
    """Return which version of the default schedule calls with ``sizes`` want."""
    from tensorlang.schedule.rules.choice import choose
    from tensorlang.schedule.rules.machine import machine_of

    return choose(definition, machine_of(target), sizes)
