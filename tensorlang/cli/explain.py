"""``tensorlang explain``: what the schedules of a file's operators cost.

Input:  ``tensorlang explain blur.py:blur --size H=1024 --size W=1024``
Output: the scheduled program, its work, and, where sizes are known, what the schedule costs
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensorlang.cli.cache import format_bytes
from tensorlang.cli.console import make_display
from tensorlang.cli.load_program import load_program
from tensorlang.cli.show import annotated
from tensorlang.runtime.work import WorkCounter


def run(program: str, sizes: Sequence[str], target: str) -> int:
    """Explain ``program`` (``FILE[:OPERATOR]``); returns the exit status."""
    display = make_display()
    for name, schedule in load_program(program, sizes):
        display.heading(f"{name} for {target}")
        display.code("\n".join(annotated(schedule, "schedule")))
        if not schedule.definition.sizes:
            work = WorkCounter(schedule.definition).count({})
            intensity = work.operations / work.bytes if work.bytes else 0.0
            display.text(
                f"{work.operations:,} operations on {format_bytes(work.bytes)} of arrays: "
                f"{intensity:.2f} a byte"
            )
        else:
            free = ", ".join(f"--size {size.name}=..." for size in schedule.definition.sizes)
            display.text(f"operations and bytes depend on sizes: {free}")
        explain: Any = getattr(schedule, "explain", None)
        if explain is not None:
            display.text(str(explain()))
    return 0
