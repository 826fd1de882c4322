"""The innermost loops of a contraction: rows and vectors of a tile, written out.

Input:  loops ``i.i`` in 9 and ``j.i`` in 48      Output: ``i.i`` unrolled, ``j.i`` in 3 vectors
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorlang.ir.definition import Stage

if TYPE_CHECKING:
    from tensorlang.schedule.handles import Loop
    from tensorlang.schedule.schedule import Schedule


def schedule_tile(schedule: Schedule, stage: Stage, rows: int, columns: int, lanes: int) -> None:
    """Order the loops that compute one tile: sums outside, rows and vectors inside."""
    loops = list(schedule[stage.name].loops)
    row = loops.pop(0) if rows > 1 else None  # a tile one row high has no loop over it
    column = loops.pop(0)
    inner = [column] if row is None else [row, column]
    if loops:
        schedule.reorder(*loops, *inner)
    fill_registers(schedule, row, column, columns, lanes)


def fill_registers(
    schedule: Schedule, row: Loop | None, column: Loop, columns: int, lanes: int
) -> None:
    """Write out the rows and vectors of a tile."""
    block, vector = schedule.split(column, lanes) if columns > lanes else (None, column)
    schedule.vectorize(vector)
    if block is not None:
        schedule.unroll(block)
    if row is not None:
        schedule.unroll(row)
