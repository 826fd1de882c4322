"""Attention: two products with a softmax between them, in strips of rows that stay in the cache.

Before                                  After
::

    for b, i, j: s[b, i, j] = q k           parallel for b, bands of i:
    for b, i, j: p[b, i, j] = softmax           k.local = k of b, in panels
    for b, i, d: o[b, i, d] = p v               for strips of 64 rows i:
                                                    s = q k    64 rows, in register tiles
                                                    p = softmax, row by row
                                                    o = p v    64 rows, in register tiles

No intermediate is as large as the square of the length: a strip of scores is computed, normalised
and used up before the next one. The bounded memory is that of M. Rabe and C. Staats, "Self-
attention does not need O(n^2) memory" (2021); here rows of scores are whole, as the level-2 cache
holds them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tensorlang.ir.affine import affine, linear_coefficient
from tensorlang.ir.definition import Stage
from tensorlang.schedule.rules.facts import Facts, Range
from tensorlang.schedule.rules.groups import Group
from tensorlang.schedule.rules.kinds import Contraction, as_contraction, reads
from tensorlang.schedule.rules.machine import Machine
from tensorlang.schedule.rules.reduction import vectorize_copy
from tensorlang.schedule.rules.registers import fill_registers
from tensorlang.schedule.rules.tiles import Tile, choose_tile

if TYPE_CHECKING:
    from tensorlang.schedule.handles import Loop
    from tensorlang.schedule.schedule import Schedule

_BAND = 512
"""Rows for which the panels of the first product are packed once: a task of a thread."""

_STRIP = 64
"""Rows of scores that are at hand at a time, where the cache holds so many."""

_TYPICAL = Range(64, 64)
"""Lengths and depths are multiples of this more often than not: tiles are chosen for it."""


@dataclass(frozen=True, slots=True)
class Attention:
    """A contraction, a group of rows that alone reads it, a contraction that alone reads that."""

    scores: Stage
    rows: Group
    output: Stage

    @property
    def anchors(self) -> tuple[Stage, ...]:
        """The anchors of the three groups."""
        return (self.scores, self.rows.anchor, self.output)


def find_attention(groups: list[Group], stages: list[Stage]) -> list[Attention]:
    """Return each chain of product, rows and product among the groups."""
    by_anchor = {id(group.anchor): group for group in groups}
    found: list[Attention] = []
    for group in groups:
        contraction = as_contraction(group.anchor)
        if contraction is None or group.epilogue is not None or len(contraction.rows) != 1:
            continue
        rows = next((g for g in groups if g.anchor.tensor is contraction.row_operand.tensor), None)
        if rows is None or not rows.members or rows.halo is not None:
            continue
        if rows.depth != len(rows.anchor.axes) - 1:
            continue
        sources = [stage for stage in stages if as_contraction(stage) and _feeds(stage, rows)]
        if len(sources) != 1 or by_anchor[id(sources[0])].epilogue is not None:
            continue
        if _is_chain(sources[0], rows, group.anchor, contraction, stages):
            found.append(Attention(sources[0], rows, group.anchor))
    return found


def _feeds(stage: Stage, rows: Group) -> bool:
    return any(reads(member, stage) for member in (*rows.members, rows.anchor))


def _is_chain(
    scores: Stage, rows: Group, output: Stage, contraction: Contraction, stages: list[Stage]
) -> bool:
    """Tell whether each part is read by the next one alone, and rows are rows throughout."""
    members = (*rows.members, rows.anchor)
    if any(reads(other, scores) for other in stages if other not in members):
        return False
    if any(reads(other, rows.anchor) for other in stages if other is not output):
        return False
    first = as_contraction(scores)
    if first is None or len(first.rows) != 1 or len(first.columns) != 1:
        return False
    if len(contraction.columns) != 1 or len(output.reduction_axes) != 1:
        return False
    row = scores.axes[first.rows[0]]
    if any(axis.extent == affine(1) for axis in (row, scores.axes[-1], output.axes[-1])):
        return False
    if not first.batch:  # two layers of a network look the same, and want other schedules
        return False
    if [a.extent for a in scores.axes[:-1]] != [a.extent for a in rows.anchor.axes[:-1]]:
        return False
    same_places = first.rows == contraction.rows and first.batch == contraction.batch
    return same_places and _are_rows(contraction, output)


def _are_rows(contraction: Contraction, output: Stage) -> bool:
    """Tell whether the output reads a row of its operand for each row: at its own axes."""
    wanted = [*output.axes[:-1], *output.reduction_axes]
    indices = contraction.row_operand.indices
    return len(indices) == len(wanted) and all(
        linear_coefficient(index, axis.variable) == 1 and len(index.terms) == 1
        for index, axis in zip(indices, wanted, strict=True)
    )


def place_attention(schedule: Schedule, attention: Attention, machine: Machine) -> None:
    """Place the stages in strips of rows, and schedule both products; rows are left to do."""
    output, scores = attention.output, attention.scores
    tile = choose_tile(machine, output.tensor.dtype, _TYPICAL, _TYPICAL)
    contraction = as_contraction(output)
    assert contraction is not None
    data = list(schedule[output.name].loops[: len(output.axes)])
    row, column = data[contraction.rows[0]], data[-1]
    outside = [loop for loop in data if loop not in (row, column)]
    units = [loop for loop in outside if loop.extent == "1"]
    outside = [loop for loop in outside if loop.extent != "1"]
    band, in_band = schedule.split(row, _BAND)
    strip, in_strip = schedule.split(in_band, _strip_rows(schedule, scores, tile, machine))
    schedule.reorder(*units, *outside, band, strip, in_strip, column)
    shared = schedule.fuse(*outside, band) if outside else band
    schedule.parallel(shared)
    anchor = attention.rows.anchor.name
    schedule.compute_at(anchor, strip)
    one_row = schedule[anchor].loops[-2]
    for stage in reversed(attention.rows.members):
        schedule.compute_at(stage.name, one_row)
    schedule.compute_at(scores.name, strip)
    _schedule_product(schedule, output, in_strip, column, tile, machine)
    row, column = schedule[scores.name].loops[-2 - len(scores.reduction_axes) :][:2]
    _schedule_product(schedule, scores, row, column, tile, machine)
    _pack_panels(schedule, scores, shared, tile, machine)


def _strip_rows(schedule: Schedule, scores: Stage, tile: Tile, machine: Machine) -> int:
    """Return the rows of a strip: fewer where scores and probabilities would outgrow level 2."""
    length = Facts(schedule.program.conditions).range_of(scores.axes[-1].extent).exact
    rows = max(1, _STRIP // tile.rows) * tile.rows
    row_bytes = 2 * (length or 0) * scores.tensor.dtype.bits // 8
    while rows // 2 >= tile.rows and rows * row_bytes > machine.l2_bytes:
        rows //= 2
    return -(-rows // tile.rows) * tile.rows


def _schedule_product(
    schedule: Schedule, stage: Stage, row: Loop, column: Loop, tile: Tile, machine: Machine
) -> None:
    """Compute the rows of a strip in register tiles."""
    lanes = machine.lanes(stage.tensor.dtype)
    width = tile.vectors * lanes
    sums = list(schedule[stage.name].loops[-len(stage.reduction_axes) :])
    panel, in_panel = schedule.split(column, width)
    outer, inner = schedule.split(row, tile.rows)
    schedule.reorder(panel, outer, *sums, inner, in_panel)
    fill_registers(schedule, inner, in_panel, width, lanes)
    back = schedule.cache_write(stage.name, at=outer)
    vectorize_copy(schedule, back.name, lanes)


def _pack_panels(schedule: Schedule, scores: Stage, at: Loop, tile: Tile, machine: Machine) -> None:
    """Copy the columns' operand so that each panel of a tile's width is contiguous."""
    contraction = as_contraction(scores)
    assert contraction is not None
    operand = contraction.column_operand
    variable = scores.axes[-1].variable
    places = [n for n, i in enumerate(operand.indices) if linear_coefficient(i, variable) == 1]
    inner = operand.tensor.shape[places[0] :] if len(places) == 1 else ()
    if not inner or any(extent.is_constant and extent.constant <= 1 for extent in inner):
        return
    place, lanes = places[0], machine.lanes(operand.tensor.dtype)
    width = tile.vectors * lanes
    packed = schedule.cache_read(operand.tensor.name, at=at)

    def panels(*index: Any) -> tuple[Any, ...]:
        column = index[place]
        return (*index[:place], column // width, *index[place + 1 :], column % width)

    schedule.layout(packed.name, panels)
    loops = list(packed.loops)
    column = loops.pop(-len(inner))
    block, lane = schedule.split(column, lanes)
    schedule.reorder(block, *loops, lane)
    schedule.vectorize(lane)
