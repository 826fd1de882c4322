"""Default schedules of sorts and scatters: rows in parallel, each as a whole.

Before: ``for i in M: for j in N: P[i, j] = order(x[i, :])``
After:  ``parallel for i in M: for j in N: ...``
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorlang.ir.routines import unit_axes

if TYPE_CHECKING:
    from tensorlang.ir.definition import Stage
    from tensorlang.schedule.schedule import Schedule


def schedule_routine(schedule: Schedule, stage: Stage) -> None:
    """Run the rows of a sort in parallel; a scatter, whose updates may meet, runs in order."""
    loops = list(schedule[stage.name].loops)
    rows = loops[: len(loops) - len(unit_axes(stage))]
    if rows:
        schedule.parallel(rows[0] if len(rows) == 1 else schedule.fuse(*rows))
