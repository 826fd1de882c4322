"""Contractions (matmul, batched or transposed, convolutions): register tiles over packed panels.

Input (matmul)                      Output (512-bit vectors, f32)
::

    for i in M:                         parallel for j.o ... columns in panels, packed
        for j in N:                         for i.o ... rows in register tiles
            for k in K: ...                     C.local = local f32[14, 32]
                                                for k in K:
                                                    unrolled rows, vectors of columns
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorlang.ir.affine import linear_coefficient
from tensorlang.ir.definition import Stage
from tensorlang.schedule.rules.kinds import Contraction
from tensorlang.schedule.rules.machine import Machine
from tensorlang.schedule.rules.reduction import vectorize_copy

if TYPE_CHECKING:
    from tensorlang.schedule.handles import Loop
    from tensorlang.schedule.schedule import Schedule


def schedule_contraction(
    schedule: Schedule,
    stage: Stage,
    contraction: Contraction,
    machine: Machine,
    epilogue: Stage | None = None,
) -> None:
    """Schedule a contraction around a register tile of one row axis and the last column axis.

    With an ``epilogue`` (the bias and activation of a layer) the tiles are the epilogue's: each is
    finished while its sums are at hand, and the sums have no storage beyond a tile.
    """
    lanes = machine.lanes(stage.tensor.dtype)
    count = len(stage.axes)
    last = stage if epilogue is None else epilogue
    data = list(schedule[last.name].loops[:count])
    rows, columns = machine.register_tile(stage.tensor.dtype)
    row = data[contraction.rows[-1]]
    column = data[-1]
    # what only the rows' operand knows of runs inside a panel, so that it is packed once for all
    inside = [data[place] for place in contraction.rows[:-1]]
    outside = [loop for loop in data if loop not in (row, column, *inside)]
    columns = _fitting(column, columns, lanes)
    rows = _fitting(row, rows, 1)
    panel, in_panel = schedule.split(column, columns)
    tile, in_tile = schedule.split(row, rows)
    if epilogue is None:
        sums = list(schedule[stage.name].loops[-len(stage.reduction_axes) :])
        schedule.reorder(*outside, panel, *inside, tile, *sums, in_tile, in_panel)
        _fill_registers(schedule, in_tile, in_panel, columns, lanes)
    else:
        schedule.reorder(*outside, panel, *inside, tile, in_tile, in_panel)
        schedule.compute_at(stage.name, tile, scope="local")
        _schedule_tile(schedule, stage, rows, columns, lanes)
        _fill_registers(schedule, in_tile, in_panel, columns, lanes)
    outer = schedule.fuse(*outside, panel) if outside else panel
    schedule.parallel(outer)
    if epilogue is None:
        back = schedule.cache_write(stage.name, at=tile)
        vectorize_copy(schedule, back.name, lanes)
    if outside:
        return
    if _is_contiguous(stage, contraction):
        _pack(schedule, contraction, panel, lanes)
    else:
        _pack_transposed(schedule, stage, contraction, panel)


def _schedule_tile(schedule: Schedule, stage: Stage, rows: int, columns: int, lanes: int) -> None:
    """Order the loops that compute one tile: sums outside, rows and vectors inside."""
    loops = list(schedule[stage.name].loops)
    row = loops.pop(0) if rows > 1 else None  # a tile one row high has no loop over it
    column = loops.pop(0)
    inner = [column] if row is None else [row, column]
    if loops:
        schedule.reorder(*loops, *inner)
    _fill_registers(schedule, row, column, columns, lanes)


def _fill_registers(
    schedule: Schedule, row: Loop | None, column: Loop, columns: int, lanes: int
) -> None:
    """Write out the rows and vectors of a tile."""
    block, vector = schedule.split(column, lanes) if columns > lanes else (None, column)
    schedule.vectorize(vector)
    if block is not None:
        schedule.unroll(block)
    if row is not None:
        schedule.unroll(row)


def _pack(schedule: Schedule, contraction: Contraction, panel: Loop, lanes: int) -> None:
    packed = schedule.cache_read(contraction.column_operand.tensor.name, at=panel)
    copy = packed.loops[-1]
    if copy.extent.isdigit() and int(copy.extent) > lanes:
        block, copy = schedule.split(copy, lanes)
        schedule.unroll(block)
    schedule.vectorize(copy)


def _pack_transposed(
    schedule: Schedule, stage: Stage, contraction: Contraction, panel: Loop
) -> None:
    """Copy a panel of an operand that is contiguous along another axis so that columns are last."""
    column = stage.axes[-1].variable
    indices = contraction.column_operand.indices
    places = [n for n, index in enumerate(indices) if linear_coefficient(index, column) != 0]
    if len(places) != 1 or linear_coefficient(indices[places[0]], column) != 1:
        return
    place = places[0]
    packed = schedule.cache_read(contraction.column_operand.tensor.name, at=panel)
    schedule.layout(packed.name, lambda *i: (*i[:place], *i[place + 1 :], i[place]))


def _is_contiguous(stage: Stage, contraction: Contraction) -> bool:
    """Whether the column operand is contiguous along the last axis of the output."""
    last = contraction.column_operand.indices[-1]
    return linear_coefficient(last, stage.axes[-1].variable) == 1


def _fitting(loop: Loop, wanted: int, unit: int) -> int:
    """Return a tile no larger than a constant extent needs."""
    if not loop.extent.isdigit():
        return wanted
    extent = int(loop.extent)
    needed = -(-extent // unit) * unit
    return max(unit, min(wanted, needed))
