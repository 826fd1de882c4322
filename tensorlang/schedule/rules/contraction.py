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
    schedule: Schedule, stage: Stage, contraction: Contraction, machine: Machine
) -> None:
    """Schedule a contraction around a register tile of one row axis and the last column axis."""
    loops = schedule[stage.name].loops
    count = len(stage.axes)
    data, sums = list(loops[:count]), list(loops[count:])
    lanes = machine.lanes(stage.tensor.dtype)
    rows, columns = machine.register_tile(stage.tensor.dtype)
    row = data[contraction.rows[-1]]
    column = data[-1]
    others = [loop for loop in data if loop not in (row, column)]
    columns = _fitting(column, columns, lanes)
    rows = _fitting(row, rows, 1)
    panel, in_panel = schedule.split(column, columns)
    tile, in_tile = schedule.split(row, rows)
    vector_block, vector = schedule.split(in_panel, lanes) if columns > lanes else (None, in_panel)
    inner: list[Loop] = [*sums, in_tile]
    if vector_block is not None:
        inner.append(vector_block)
    schedule.reorder(*others, panel, tile, *inner, vector)
    schedule.vectorize(vector)
    if vector_block is not None:
        schedule.unroll(vector_block)
    schedule.unroll(in_tile)
    outer = schedule.fuse(*others, panel) if others else panel
    schedule.parallel(outer)
    back = schedule.cache_write(stage.name, at=tile)
    vectorize_copy(schedule, back.name, lanes)
    if not others and _is_contiguous(stage, contraction):
        _pack(schedule, contraction, panel, lanes)


def _pack(schedule: Schedule, contraction: Contraction, panel: Loop, lanes: int) -> None:
    packed = schedule.cache_read(contraction.column_operand.tensor.name, at=panel)
    copy = packed.loops[-1]
    if copy.extent.isdigit() and int(copy.extent) > lanes:
        block, copy = schedule.split(copy, lanes)
        schedule.unroll(block)
    schedule.vectorize(copy)


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
