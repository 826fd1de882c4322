"""Contractions (matmul, batched or transposed): register tiles over packed panels.

Input (matmul)                      Output (512-bit vectors, f32)
::

    for i in M:                         parallel for j.o ... columns in panels, packed
        for j in N:                         for i.o ... rows in register tiles
            for k in K: ...                     C.local = local f32[9, 48]
                                                for k in K:
                                                    unrolled rows, vectors of columns

A product of few rows is bound by reading the other operand, and is scheduled by ``few_rows``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from tensorlang.ir.affine import Var, linear_coefficient, substitute
from tensorlang.ir.definition import Stage
from tensorlang.ir.expr import Load
from tensorlang.schedule.rules.facts import ANY, Facts, Range
from tensorlang.schedule.rules.few_rows import few_rows_limit, plan_few_rows, schedule_few_rows
from tensorlang.schedule.rules.kinds import Contraction, packed_width
from tensorlang.schedule.rules.machine import Machine
from tensorlang.schedule.rules.reduction import vectorize_copy
from tensorlang.schedule.rules.registers import fill_registers, schedule_tile
from tensorlang.schedule.rules.tiles import Tile, choose_tile, even_rows

if TYPE_CHECKING:
    from tensorlang.schedule.handles import Loop
    from tensorlang.schedule.schedule import Schedule

_L2_SHARE = 2
"""A packed panel fills at most this part of the level-2 cache."""

_SMALL_BAND = 4
_LARGE_BAND = 16
"""Tiles of rows of a task, where few columns are no work for all threads."""


@dataclass(frozen=True, slots=True)
class ProductPlan:
    """The register tile of a product, and how much of it is done at a time.

    ``depth`` are the steps of its sum that a panel holds (None: all), ``share`` the columns that a
    thread takes at a time where there are no panels (None: by what is known of their number),
    ``band`` the tiles of rows that a thread takes at a time (None: all, threads take panels).
    """

    tile: Tile
    depth: int | None = None
    share: int | None = None
    band: int | None = None

    def __str__(self) -> str:
        parts = [f"tiles of {self.tile.rows} rows and {self.tile.vectors} vectors"]
        parts += [f"{self.depth} steps at a time"] if self.depth is not None else []
        parts += [f"{self.share} columns at a time"] if self.share is not None else []
        parts += [f"{self.band} tiles of rows at a time"] if self.band is not None else []
        return ", ".join(parts)


def plan_product(
    stage: Stage,
    contraction: Contraction,
    machine: Machine,
    rows: Range,
    columns: Range,
    steps: Range = ANY,
    *,
    few: bool = False,
    sizes: Mapping[Var, int] | None = None,
) -> ProductPlan:
    """Return the plan that is best for so many rows, columns and steps of the sum.

    ``few``: of the loops for few rows, which have no panels. ``sizes`` are those of the calls to
    come, where they are no numbers in the definition.
    """
    if few:
        tile, share = plan_few_rows(stage, contraction, machine, rows, columns)
        return ProductPlan(tile, share=share)
    lanes = machine.lanes(stage.tensor.dtype)
    packed = packed_width(contraction.column_operand, stage.axes[-1].variable)

    def tile_for(*, parallel_columns: bool) -> Tile:
        return choose_tile(
            machine,
            stage.tensor.dtype,
            rows,
            columns,
            row_stride=_row_stride(stage, contraction),
            like_stride=None if sizes is None else _row_stride(stage, contraction, sizes),
            parallel_columns=parallel_columns,
            vectors=None if packed is None else -(-packed // lanes),
        )

    tile = tile_for(parallel_columns=False)
    band = _band(stage, machine, tile, rows, columns)
    if band is None:
        tile = tile_for(parallel_columns=len(stage.axes) == 2)
    most = _most_steps(stage, machine, tile.vectors * lanes)
    depth = most if steps.exact is not None and steps.exact > most else None
    return ProductPlan(tile, depth, band=band)


def _band(stage: Stage, machine: Machine, tile: Tile, rows: Range, columns: Range) -> int | None:
    """Return the tiles of rows that a thread takes at a time; None where panels are enough.

    Each band packs its panels anew, which few tiles would not be worth.
    """
    if columns.exact is None or machine.cores == 1 or len(stage.axes) != 2:
        return None
    panels = -(-columns.exact // (tile.vectors * machine.lanes(stage.tensor.dtype)))
    if panels > machine.cores:
        return None
    tiles = _LARGE_BAND * machine.cores if rows.exact is None else -(-rows.exact // tile.rows)
    band = min(_LARGE_BAND, -(-tiles // machine.cores))
    return band if band >= _SMALL_BAND else None


def schedule_contraction(
    schedule: Schedule,
    stage: Stage,
    contraction: Contraction,
    machine: Machine,
    epilogue: Stage | None = None,
    plan: ProductPlan | None = None,
) -> None:
    """Schedule a contraction around a register tile of one row axis and the last column axis.

    With an ``epilogue`` (the bias and activation of a layer) the tiles are the epilogue's: each is
    finished while its sums are at hand, and the sums have no storage beyond a tile. Without a
    ``plan`` it is made by what is known of the sizes.
    """
    facts = Facts(schedule.program.conditions)
    rows = facts.range_of(stage.axes[contraction.rows[-1]].extent)
    columns = facts.range_of(stage.axes[-1].extent)
    few = few_rows_limit(stage, contraction)
    is_few = few > 0 and rows.is_at_most(few)
    if plan is None:
        plan = plan_product(stage, contraction, machine, rows, columns, few=is_few)
    tile = plan.tile
    if is_few:
        schedule_few_rows(schedule, stage, contraction, machine, rows, tile, plan.share, epilogue)
        return
    lanes = machine.lanes(stage.tensor.dtype)
    tall = _tall_tile(stage, contraction, machine, tile) if epilogue is None else None
    if tall is not None:
        tile = tall
    count = len(stage.axes)
    last = stage if epilogue is None else epilogue
    data = list(schedule[last.name].loops[:count])
    row = data[contraction.rows[-1]]
    column = data[-1]
    # what only the rows' operand knows of runs inside a panel, so that it is packed once for all
    inside = [data[place] for place in contraction.rows[:-1]]
    outside = [loop for loop in data if loop not in (row, column, *inside)]
    width = tile.vectors * lanes
    panel, in_panel = schedule.split(column, width)
    short = int(row.extent) if tall is not None else 1  # rows of a tile that are one axis
    if tall is not None:
        written_out = [row]
        strip, in_strip = schedule.split(inside.pop(), tile.rows // short)
        schedule.unroll(row)
    else:
        written_out = []
        strip, in_strip = schedule.split(row, tile.rows)
    bands: list[Loop] = []
    if plan.band is not None and tall is None and not inside:
        band, strip = schedule.split(strip, plan.band)
        bands = [band]
    if epilogue is None:
        sums = list(schedule[stage.name].loops[-len(stage.reduction_axes) :])
        blocks, sums = _block_sums(schedule, stage, sums, machine, width, plan.depth)
        tile_loops = (*sums, in_strip, *written_out, in_panel)
        schedule.reorder(*outside, *bands, panel, *blocks, *inside, strip, *tile_loops)
        fill_registers(schedule, in_strip, in_panel, width, lanes)
    else:
        blocks = []
        schedule.reorder(*outside, *bands, panel, *inside, strip, in_strip, in_panel)
        schedule.compute_at(stage.name, strip, scope="local")
        schedule_tile(schedule, stage, tile.rows, width, lanes)
        fill_registers(schedule, in_strip, in_panel, width, lanes)
    if epilogue is None:  # before loops are fused: boxes are plain to see
        back = schedule.cache_write(stage.name, at=strip)
        vectorize_copy(schedule, back.name, lanes)
    outer = schedule.fuse(*outside, panel) if outside else [*bands, panel][0]
    schedule.parallel(outer)
    if outside:
        return
    at = blocks[-1] if blocks else panel
    if packed_width(contraction.column_operand, stage.axes[-1].variable) == width:
        return
    if _is_contiguous(stage, contraction):
        _pack(schedule, contraction, at, lanes)
    else:
        _pack_transposed(schedule, stage, contraction, at, lanes)


def _tall_tile(stage: Stage, contraction: Contraction, machine: Machine, flat: Tile) -> Tile | None:
    """Return a tile of several rows of two axes, where the last axis of the rows is short.

    Its height is a multiple of the last axis; None where a tile of that axis alone is as good.
    """
    if len(contraction.rows) < 2:
        return None
    outer, inner = (stage.axes[place].extent for place in contraction.rows[-2:])
    if not (outer.is_constant and inner.is_constant) or inner.constant < 1:
        return None
    many = outer.constant * inner.constant
    columns = Range(width := stage.axes[-1].extent.constant, width)
    if not stage.axes[-1].extent.is_constant:
        columns = ANY
    best = choose_tile(
        machine, stage.tensor.dtype, Range(many, many), columns, parallel_columns=False
    )
    times = even_rows(outer.constant, max(1, best.rows // inner.constant))
    if times < 2 or flat.rows * flat.vectors >= times * inner.constant * best.vectors:
        return None
    return Tile(times * inner.constant, best.vectors)


def _block_sums(
    schedule: Schedule,
    stage: Stage,
    sums: list[Loop],
    machine: Machine,
    width: int,
    depth: int | None,
) -> tuple[list[Loop], list[Loop]]:
    """Cut the sums into blocks if a panel of all of them would outgrow its share of level 2."""
    if depth is not None:
        block, rest = schedule.split(sums[0], depth)
        return [block], [rest, *sums[1:]]
    extents = [axis.extent for axis in stage.reduction_axes]
    if not all(extent.is_constant for extent in extents):
        return [], sums
    most = _most_steps(stage, machine, width)
    inner = prod(extent.constant for extent in extents[1:])
    if inner * extents[0].constant <= most or inner > most:
        return [], sums
    parts = -(-inner * extents[0].constant // most)
    block, rest = schedule.split(sums[0], parts=parts)
    return [block], [rest, *sums[1:]]


def _most_steps(stage: Stage, machine: Machine, width: int) -> int:
    """Return how many steps of a sum fit into a panel's share of level 2."""
    return machine.l2_bytes // _L2_SHARE // (width * stage.tensor.dtype.bits // 8)


def _row_stride(
    stage: Stage, contraction: Contraction, sizes: Mapping[Var, int] | None = None
) -> int | None:
    """Return the bytes between two rows of the rows' operand, if its shape is known."""
    load = contraction.row_operand
    variable = stage.axes[contraction.rows[-1]].variable
    stride = 0
    for axis, index in enumerate(load.indices):
        behind = [substitute(extent, sizes or {}) for extent in load.tensor.shape[axis + 1 :]]
        coefficient = linear_coefficient(index, variable)
        if coefficient is None:
            return None
        if coefficient:
            if not all(extent.is_constant for extent in behind):
                return None
            stride += coefficient * prod(extent.constant for extent in behind)
    return stride * load.tensor.dtype.bits // 8 or None


def _pack(schedule: Schedule, contraction: Contraction, at: Loop, lanes: int) -> None:
    packed = schedule.cache_read(contraction.column_operand.tensor.name, at=at)
    copy = packed.loops[-1]
    if copy.extent.isdigit() and int(copy.extent) > lanes:
        block, copy = schedule.split(copy, lanes)
        schedule.unroll(block)
    schedule.vectorize(copy)


def _pack_transposed(
    schedule: Schedule, stage: Stage, contraction: Contraction, at: Loop, lanes: int
) -> None:
    """Copy a panel of an operand that is contiguous along another axis so that columns are last."""
    place = _unit_axis(contraction.column_operand, stage)
    if place is None:
        return
    packed = schedule.cache_read(contraction.column_operand.tensor.name, at=at)
    schedule.layout(packed.name, lambda *i: (*i[:place], *i[place + 1 :], i[place]))
    loops = list(packed.loops)
    column = loops.pop(place)
    if not column.extent.isdigit() or int(column.extent) < lanes:
        return
    block, lane = schedule.split(column, lanes)
    schedule.reorder(*loops, block, lane)
    schedule.vectorize(lane)
    schedule.unroll(block)


def _unit_axis(operand: Load, stage: Stage) -> int | None:
    """Return the axis of an operand that the last axis of the output alone runs along."""
    column = stage.axes[-1].variable
    places = [n for n, i in enumerate(operand.indices) if linear_coefficient(i, column) != 0]
    if len(places) != 1 or linear_coefficient(operand.indices[places[0]], column) != 1:
        return None
    return places[0]


def _is_contiguous(stage: Stage, contraction: Contraction) -> bool:
    """Whether the column operand is contiguous along the last axis of the output."""
    last = contraction.column_operand.indices[-1]
    return linear_coefficient(last, stage.axes[-1].variable) == 1
