"""``tensorlang explain``: what the schedules of a file's operators cost.

Input:  ``tensorlang explain blur.py:blur --size H=1024 --size W=1024``
Output: the scheduled program, and what it costs: ``Schedule.explain``
"""

from __future__ import annotations

from collections.abc import Sequence

from tensorlang.cli.console import make_display
from tensorlang.cli.load_program import load_program
from tensorlang.cli.show import annotated


def run(program: str, sizes: Sequence[str], target: str) -> int:
    """Explain ``program`` (``FILE[:OPERATOR]``); returns the exit status."""
    display = make_display()
    for name, schedule in load_program(program, sizes):
        display.heading(f"{name} for {target}")
        display.code("\n".join(annotated(schedule, "schedule")))
        display.text(str(schedule.explain(target)))
    return 0
