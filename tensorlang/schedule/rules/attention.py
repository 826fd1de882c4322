"""Attention: two products with a softmax between them, in strips of rows that stay in the cache.

Before                                  After
::

    for b, i, j: s[b, i, j] = q k           parallel for b, bands of i:
    for b, i, j: e[b, i, j] = exp(s)            k.local = k of b, in panels
    for b, i: t[b, i] = sum of e                for strips of 64 rows i:
    for b, i, d: m[b, i, d] = e v                   s = q k    64 rows, in register tiles
    for b, i, d: o[b, i, d] = m / t                 e, t       row by row
                                                    m = e v    64 rows, in register tiles
                                                    o = m / t

No intermediate is as large as the square of the length: a strip of scores is computed, normalised
and used up before the next one. The bounded memory is that of M. Rabe and C. Staats, "Self-
attention does not need O(n^2) memory" (2021); here rows of scores are whole, as the level-2 cache
holds them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tensorlang.ir.affine import affine, linear_coefficient
from tensorlang.ir.definition import Definition, Stage
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

_DEPTH = 64
"""Steps of the second product at a time: so many rows of values stay in the level-1 cache."""

_TYPICAL = Range(64, 64)
"""Lengths and depths are multiples of this more often than not: tiles are chosen for it."""


@dataclass(frozen=True, slots=True)
class Attention:
    """Two products, and the stages that turn rows of the first into rows for the second.

    ``weights`` is the one of ``rows`` that the ``output`` multiplies; those after it are statistics
    of its rows. ``finish`` is the map that alone reads the output, if there is one.
    """

    scores: Stage
    rows: tuple[Stage, ...]
    weights: Stage
    output: Stage
    finish: Stage | None

    @property
    def stages(self) -> tuple[Stage, ...]:
        """All of them."""
        last = () if self.finish is None else (self.finish,)
        return (self.scores, *self.rows, self.output, *last)


def find_attention(
    groups: list[Group], stages: list[Stage], definition: Definition
) -> list[Attention]:
    """Return each chain of product, rows and product."""
    found: list[Attention] = []
    for group in groups:
        contraction = as_contraction(group.anchor)
        if contraction is None or len(contraction.rows) != 1 or group.is_convolution:
            continue
        chain = _chain(group.anchor, contraction, group.epilogue, stages)
        if chain is None:
            continue
        kept = {tensor for stage in (chain.scores, *chain.rows) for tensor in stage.tensors}
        if kept.isdisjoint(definition.outputs) and _is_attention(chain, contraction):
            found.append(chain)
    return found


def _chain(
    output: Stage, contraction: Contraction, finish: Stage | None, stages: list[Stage]
) -> Attention | None:
    """Return the stages between a product and the one that it gets its rows from, if all are rows.

    They are what the weights are made of, and what else is made of that, statistics of rows.
    """
    weights = next((s for s in stages if contraction.row_operand.tensor in s.tensors), None)
    if weights is None or not weights.is_map:
        return None
    rows, scores = [weights], None
    for stage in reversed(stages[: stages.index(weights)]):
        if any(reads(row, stage) for row in rows):
            if as_contraction(stage) is None:
                rows.append(stage)
            elif scores is None:
                scores = stage
            else:
                return None
    if scores is None:
        return None
    for stage in stages:
        known = stage in rows or stage is output or stage is finish
        if not known and any(reads(stage, other) for other in (scores, *rows)):
            rows.append(stage)
    rows.sort(key=stages.index)
    lead = len(output.axes) - 1
    for stage in rows:
        sources = [other for other in (scores, *rows) if reads(stage, other)]
        if not all(_shares_rows(stage, other, lead) for other in sources) or not sources:
            return None
        if len(stage.axes) not in (lead, lead + 1) or stage.is_recurrence or stage.routine:
            return None
    others = [s for s in rows if s is not weights]
    if reads(output, scores) or any(reads(output, stage) for stage in others):
        return None
    if finish is not None:
        sources = [stage for stage in (scores, *rows) if reads(finish, stage)]
        if any(len(s.axes) != lead or not _shares_rows(finish, s, lead) for s in sources):
            return None
    return Attention(scores, tuple(rows), weights, output, finish)


def _shares_rows(reader: Stage, stage: Stage, lead: int) -> bool:
    """Tell whether a stage is read at the reader's own leading axes, which are as long."""
    here = [affine(axis.variable) for axis in reader.axes[:lead]]
    same = [a.extent for a in reader.axes[:lead]] == [a.extent for a in stage.axes[:lead]]
    return same and all(list(load.indices[:lead]) == here for load in reads(reader, stage))


def _is_attention(chain: Attention, contraction: Contraction) -> bool:
    """Tell whether both products have the same rows, for each of which there is a matrix."""
    scores, output = chain.scores, chain.output
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
    if [a.extent for a in scores.axes[:-1]] != [a.extent for a in chain.weights.axes[:-1]]:
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
    last = attention.finish or output
    data = list(schedule[last.name].loops[: len(last.axes)])
    row, column = data[contraction.rows[0]], data[-1]
    outside = [loop for loop in data if loop not in (row, column)]
    units = [loop for loop in outside if loop.extent == "1"]
    outside = [loop for loop in outside if loop.extent != "1"]
    band, in_band = schedule.split(row, _BAND)
    strip, in_strip = schedule.split(in_band, _strip_rows(schedule, scores, tile, machine))
    schedule.reorder(*units, *outside, band, strip, in_strip, column)
    shared = schedule.fuse(*outside, band) if outside else band
    schedule.parallel(shared)
    _place_rows(schedule, attention, strip)
    schedule.compute_at(scores.name, strip)
    for stage in (output, scores):
        sums = len(stage.reduction_axes)
        row, column = list(schedule[stage.name].loops)[-2 - sums :][:2]
        depth = None if stage is scores else _DEPTH
        _schedule_product(schedule, stage, row, column, tile, machine, depth)
    _pack_panels(schedule, scores, shared, tile, machine)


def _place_rows(schedule: Schedule, attention: Attention, strip: Loop) -> None:
    """Compute each row of a strip from its scores to its weights, with its statistics."""
    weights, finish = attention.weights, attention.finish
    place = attention.rows.index(weights)
    before, after = attention.rows[:place], attention.rows[place + 1 :]
    for stage in reversed(after):
        schedule.compute_at(stage.name, strip)
    if finish is not None:
        schedule.compute_at(attention.output.name, strip)
    kept = [stage for stage in before if finish is not None and reads(finish, stage)]
    schedule.compute_at(weights.name, strip)
    one_row = schedule[weights.name].loops[-2]
    for stage in after:
        schedule.reverse_compute_at(stage.name, one_row)
    for stage in reversed(before):
        schedule.compute_at(stage.name, strip if stage in kept else one_row)


def _strip_rows(schedule: Schedule, scores: Stage, tile: Tile, machine: Machine) -> int:
    """Return the rows of a strip: fewer where scores and probabilities would outgrow level 2."""
    length = Facts(schedule.program.conditions).range_of(scores.axes[-1].extent).exact
    rows = max(1, _STRIP // tile.rows) * tile.rows
    row_bytes = 2 * (length or 0) * scores.tensor.dtype.bits // 8
    while rows // 2 >= tile.rows and rows * row_bytes > machine.l2_bytes:
        rows //= 2
    return -(-rows // tile.rows) * tile.rows


def _schedule_product(
    schedule: Schedule,
    stage: Stage,
    row: Loop,
    column: Loop,
    tile: Tile,
    machine: Machine,
    depth: int | None,
) -> None:
    """Compute the rows of a strip in register tiles."""
    lanes = machine.lanes(stage.tensor.dtype)
    width = tile.vectors * lanes
    sums = list(schedule[stage.name].loops[-len(stage.reduction_axes) :])
    panel, in_panel = schedule.split(column, width)
    outer, inner = schedule.split(row, tile.rows)
    chunks: list[Loop] = []
    if depth is not None:
        chunk, sums[0] = schedule.split(sums[0], depth)
        chunks = [chunk]
    schedule.reorder(panel, *chunks, outer, *sums, inner, in_panel)
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
