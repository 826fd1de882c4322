"""Products of few rows (a vector, a small batch): bound by reading the columns' operand once.

Input (matmul, M <= 32)             Output (512-bit vectors, f32)
::

    for i in M:                         parallel for j.o ... blocks of columns
        for j in N:                         for k.o in K / 64: ... long runs of rows of B
            for k in K: ...                     for j.i.o ... panels of columns
                                                    for i.o ... tiles
                                                        for k.i in 64:
                                                            prefetch B[k, the next panel]
                                                            unrolled rows, vectors of columns

Packing would cost as much as the product itself. A block of the reduction is run over all panels
before the next, so that the operand is read in long runs along its rows; the sums wait in the
level-1 and level-2 caches, which hold few rows of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorlang.ir.affine import linear_coefficient
from tensorlang.ir.definition import Stage
from tensorlang.schedule.rules.facts import Range
from tensorlang.schedule.rules.kinds import Contraction
from tensorlang.schedule.rules.machine import Machine
from tensorlang.schedule.rules.reduction import vectorize_copy
from tensorlang.schedule.rules.registers import fill_registers
from tensorlang.schedule.rules.tiles import choose_tile

if TYPE_CHECKING:
    from tensorlang.schedule.handles import Loop
    from tensorlang.schedule.schedule import Schedule

FEW = 32
"""Rows up to which reading an operand costs more than multiplying; more of them gain by packing."""

_DEPTH = 64
_DEPTH_OF_A_VECTOR = 16
"""Steps of the reduction in a block: a hardware prefetcher follows about as many streams."""

_BLOCK_BYTES = 4096
"""Columns that a thread takes at a time: pages of memory are read to their end."""


def takes_few_rows(stage: Stage, contraction: Contraction, rows: Range) -> bool:
    """Tell whether a contraction is the product of a matrix of few rows and one in row order."""
    return (
        rows.is_at_most(FEW)
        and len(stage.axes) == 2
        and len(stage.reduction_axes) == 1
        and len(contraction.rows) == 1
        and linear_coefficient(contraction.column_operand.indices[-1], stage.axes[-1].variable) == 1
        and len(contraction.column_operand.indices) == 2
    )


def schedule_few_rows(
    schedule: Schedule,
    stage: Stage,
    contraction: Contraction,
    machine: Machine,
    rows: Range,
    columns: Range,
    epilogue: Stage | None,
) -> None:
    """Schedule a product of few rows; an epilogue follows when a block of columns is done."""
    dtype = stage.tensor.dtype
    lanes = machine.lanes(dtype)
    tile = choose_tile(machine, dtype, rows, columns, parallel_columns=False)
    width = tile.vectors * lanes
    block_width = _block_width(machine, rows, columns, width, dtype.bits // 8)
    last = stage if epilogue is None else epilogue
    i, j = schedule[last.name].loops[:2]
    block: Loop | None = None
    if columns.exact is None or columns.exact > block_width:
        block, j = schedule.split(j, block_width)
        schedule.reorder(block, i, j)
        schedule.parallel(block)
    if epilogue is not None:
        if block is not None:
            schedule.compute_at(stage.name, block)
        _, vector = schedule.split(j, lanes)
        schedule.vectorize(vector)
        i, j = schedule[stage.name].loops[:2]
    k = schedule[stage.name].loops[-1]
    depth = _DEPTH if rows.high is None or rows.high > 8 else _DEPTH_OF_A_VECTOR
    panel, in_panel = schedule.split(j, width)
    run, step = schedule.split(k, depth)
    strip, in_strip = schedule.split(i, tile.rows)
    schedule.reorder(run, panel, strip, step, in_strip, in_panel)
    operand = contraction.column_operand.tensor
    if tile.rows > 1 and operand in schedule.definition.inputs:
        schedule.prefetch(operand.name, at=step, ahead=1, along=panel)
    fill_registers(schedule, in_strip, in_panel, width, lanes)
    back = schedule.cache_write(stage.name, at=strip)
    vectorize_copy(schedule, back.name, lanes)


def _block_width(machine: Machine, rows: Range, columns: Range, width: int, size: int) -> int:
    """Return the columns of a block: equal shares for the cores, whole panels.

    Where their number is not known, pages for a vector; for more rows, which keep a core busy
    for longer, a quarter of that, so that few columns are work for several threads too.
    """
    if columns.exact is not None:
        panels = -(-columns.exact // width)
        return max(1, -(-panels // machine.cores)) * width
    wanted = _BLOCK_BYTES // size if rows.is_at_most(8) else _BLOCK_BYTES // size // 4
    return max(1, wanted // width) * width
