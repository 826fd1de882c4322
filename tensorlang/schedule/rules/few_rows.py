"""Products of few rows (a vector, a small batch): bound by reading the columns' operand once.

Input (matmul, M <= 32)             Output (512-bit vectors, f32)
::

    for i in M:                         parallel for j.o ... blocks of columns
        for j in N:                         for k.o in K / 64: ... long runs of rows of B
            for k in K: ...                     for j.i.o ... panels of columns
                                                    for i.o ... tiles
                                                        for k.i in 64:
                                                            prefetch B[k, the panel after the next]
                                                            unrolled rows, vectors of columns

Packing would cost as much as the product itself. A block of the reduction is run over all panels
before the next, so that the operand is read in long runs along its rows; the sums wait in the
level-1 and level-2 caches, which hold few rows of them. Where both operands lie along the
reduction (``linear``: rows times rows), its lanes have sums of their own instead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorlang.ir.affine import linear_coefficient
from tensorlang.ir.definition import Stage
from tensorlang.schedule.rules.elementwise import schedule_map
from tensorlang.schedule.rules.facts import Range
from tensorlang.schedule.rules.kinds import Contraction
from tensorlang.schedule.rules.machine import Machine
from tensorlang.schedule.rules.reduction import vectorize_copy
from tensorlang.schedule.rules.registers import fill_registers
from tensorlang.schedule.rules.tiles import Tile, choose_tile

if TYPE_CHECKING:
    from tensorlang.schedule.handles import Loop
    from tensorlang.schedule.schedule import Schedule

_FEW = 32
"""Rows up to which reading an operand costs more than multiplying; more of them gain by packing."""

_FEW_DOTS = 12
"""The same where lanes run along the reduction, which costs an addition of lanes an element."""

_DEPTH = 64
_DEPTH_OF_A_VECTOR = 16
"""Steps of the reduction in a block: a hardware prefetcher follows about as many streams."""

_AHEAD = 2
"""Panels whose rows are asked for before they are read: into level 2, which can wait for more lines
at a time than level 1."""

_DOTS = 8
"""Columns of a tile of scalar products: as many streams at a time."""

_BLOCK_BYTES = 8192
"""Columns that a thread takes at a time: long runs of each row."""


def few_rows_limit(stage: Stage, contraction: Contraction) -> int:
    """Return the rows up to which these loops are better than packed panels; 0: they never are."""
    plain = (
        len(stage.axes) == 2
        and len(stage.reduction_axes) == 1
        and len(contraction.rows) == 1
        and len(contraction.column_operand.indices) == 2
    )
    if plain and _runs_along_columns(stage, contraction):
        return _FEW
    return _FEW_DOTS if plain and _runs_along_sums(stage, contraction) else 0


def _runs_along_columns(stage: Stage, contraction: Contraction) -> bool:
    last = contraction.column_operand.indices[-1]
    return linear_coefficient(last, stage.axes[-1].variable) == 1


def _runs_along_sums(stage: Stage, contraction: Contraction) -> bool:
    """Tell whether both operands are contiguous along the reduction: rows times rows."""
    variable = stage.reduction_axes[0].variable
    operands = (contraction.row_operand, contraction.column_operand)
    return all(linear_coefficient(operand.indices[-1], variable) == 1 for operand in operands)


def plan_few_rows(
    stage: Stage, contraction: Contraction, machine: Machine, rows: Range, columns: Range
) -> tuple[Tile, int | None]:
    """Return the register tile, and the columns that a thread takes at a time if they are known.

    The vectors of the tile are single columns where lanes run along the sum.
    """
    along_sums = not _runs_along_columns(stage, contraction)
    tile = choose_tile(
        machine,
        stage.tensor.dtype,
        rows,
        columns,
        most_vectors=_DOTS if along_sums else 4,
        lanes=1 if along_sums else None,
        parallel_columns=False,
    )
    if columns.exact is None:
        return tile, None
    width = tile.vectors * (1 if along_sums else machine.lanes(stage.tensor.dtype))
    return tile, _share(machine, columns.exact, width)


def schedule_few_rows(
    schedule: Schedule,
    stage: Stage,
    contraction: Contraction,
    machine: Machine,
    rows: Range,
    tile: Tile,
    share: int | None,
    epilogue: Stage | None,
) -> None:
    """Schedule a product of few rows; an epilogue reads its few elements when all are there.

    ``tile`` and ``share`` are what ``plan_few_rows`` returned for such sizes, or for any.
    """
    dtype = stage.tensor.dtype
    along_sums = not _runs_along_columns(stage, contraction)
    lanes = machine.lanes(dtype)
    width = tile.vectors if along_sums else tile.vectors * lanes
    inside = share is None and not along_sums and not rows.is_at_most(1)
    i, j = schedule[stage.name].loops[:2]
    if not inside and not (j.extent.isdigit() and int(j.extent) <= (share or 0)):
        block, j = schedule.split(j, share or _run(rows, width, dtype.bits // 8))
        schedule.reorder(block, i, j)
        schedule.parallel(block)
    if along_sums:
        _multiply_rows(schedule, stage, i, j, tile, lanes)
    else:
        shared = _run(rows, width, dtype.bits // 8) // width if inside else None
        _stream_columns(schedule, stage, contraction, i, j, rows, tile, lanes, shared)
    if epilogue is not None:
        schedule_map(schedule, epilogue, machine, parallel=False)


def _share(machine: Machine, columns: int, width: int) -> int:
    """Return the columns that a thread should take at a time, of so many, in whole tiles.

    The count is one of four between a power of two and the next, so that numbers of columns that
    are alike have one version in common; of them, the one that leaves the cores least idle.
    """
    panels = max(1, -(-columns // width))

    def idle(panels_of_a_share: int) -> float:
        shares = -(-panels // panels_of_a_share)
        rounds = -(-shares // machine.cores)
        return rounds * panels_of_a_share * machine.cores / panels

    wanted = {_rounded(-(-panels // (machine.cores * times))) for times in range(1, 5)}
    return width * min(sorted(wanted, reverse=True), key=idle)


def _rounded(count: int) -> int:
    """Return the least number from ``count`` on that has at most three binary digits."""
    step = 1 << max(0, count.bit_length() - 3)
    return -(-count // step) * step


def _stream_columns(
    schedule: Schedule,
    stage: Stage,
    contraction: Contraction,
    i: Loop,
    j: Loop,
    rows: Range,
    tile: Tile,
    lanes: int,
    shared: int | None,
) -> None:
    """Run a block of the reduction over all panels, so that the operand is read row by row.

    Threads that share the panels of each block take ``shared`` of them at a time. A block of
    columns a thread would be one pass less over the sums, but with an unknown number of columns
    the last one may be narrow, and then costs nearly as much as a wide one.
    """
    k = schedule[stage.name].loops[-1]
    depth = _DEPTH if rows.high is None or rows.high > 8 else _DEPTH_OF_A_VECTOR
    width = tile.vectors * lanes
    panel, in_panel = schedule.split(j, width)
    run, step = schedule.split(k, depth)
    strip, in_strip = schedule.split(i, tile.rows)
    schedule.reorder(run, panel, strip, step, in_strip, in_panel)
    if shared is not None:
        group, panel = schedule.split(panel, shared)
        schedule.parallel(group)
    operand = contraction.column_operand.tensor
    if tile.rows > 1 and operand in schedule.definition.inputs:
        schedule.prefetch(operand.name, at=step, ahead=_AHEAD, along=panel, locality=2)
    fill_registers(schedule, in_strip, in_panel, width, lanes)
    back = schedule.cache_write(stage.name, at=strip)
    vectorize_copy(schedule, back.name, lanes)


def _multiply_rows(
    schedule: Schedule, stage: Stage, i: Loop, j: Loop, tile: Tile, lanes: int
) -> None:
    """Multiply rows by rows: the lanes run along the reduction, and are added up at the end."""
    k = schedule[stage.name].loops[-1]
    if k.extent.isdigit() and int(k.extent) < lanes:
        return
    panel, in_panel = schedule.split(j, tile.vectors)
    strip, in_strip = schedule.split(i, tile.rows)
    step, lane = schedule.split(k, lanes)
    schedule.reorder(panel, strip, step, in_strip, in_panel, lane)
    partial = schedule.rfactor(lane)
    *tiled, vector = _loops_below(schedule, partial.name, step)
    schedule.vectorize(vector)
    for loop in (*tiled, *_loops_below(schedule, stage.name, strip)):
        schedule.unroll(loop)


def _loops_below(schedule: Schedule, stage: str, loop: Loop) -> list[Loop]:
    loops = list(schedule[stage].loops)
    return loops[loops.index(loop) + 1 :]


def _run(rows: Range, width: int, size: int) -> int:
    """Return the columns that a thread takes at a time of an unknown number, in whole panels.

    Pages for a vector; for more rows, which keep a core busy for longer, a quarter of that, so
    that few columns are work for several threads too.
    """
    wanted = _BLOCK_BYTES // size if rows.is_at_most(8) else _BLOCK_BYTES // size // 4
    return max(1, wanted // width) * width
