"""Convolutions: register tiles of pixels times output channels, over bands of rows.

Input (conv2d, images as NCHW)          Output (512-bit vectors, f32)
::

    for b in B:                             w.local = w, packed in panels of 32 outputs
        for o in O:                         parallel for b.y.o ... bands of rows
            for y in OH:                        padded = the rows that the band reads
                for z in OW:                    for o.o ... panels of output channels
                    for c in C:                     for y.i ... rows of the band
                        for r in R:                     for z.o ... tiles of 14 pixels
                            for s in S: ...                 for c.o, r, s, c.i: ...
                                                                unrolled pixels, vectors of outputs

The lanes are output channels, whatever the layout: an element of the image is broadcast, so that
neither strides nor borders nor short rows cost anything, and where channels are not contiguous in
the output the finished tile is scattered. Channels run inside the taps, in blocks: a pixel that
neighbouring taps share is loaded again, from the first-level cache, and not kept in a register that
the sums need. Images are padded band by band, so that a band is still in the second-level cache.

The loops follow E. Georganas et al., "Anatomy of High-Performance Deep Learning Convolutions on
SIMD Architectures" (2018).
"""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from typing import TYPE_CHECKING

from tensorlang.ir.affine import Affine, linear_coefficient
from tensorlang.ir.definition import Condition, Stage
from tensorlang.schedule.resolve import resolve_stage
from tensorlang.schedule.rules.elementwise import vectorize_loop
from tensorlang.schedule.rules.facts import Facts, Range
from tensorlang.schedule.rules.kinds import packed_width
from tensorlang.schedule.rules.machine import Machine
from tensorlang.schedule.rules.registers import fill_registers
from tensorlang.schedule.rules.tiles import Tile, choose_tile
from tensorlang.schedule.rules.windows import Convolution

if TYPE_CHECKING:
    from tensorlang.schedule.handles import Loop
    from tensorlang.schedule.schedule import Schedule

CHANNELS = 16
"""Input channels of a block: their rows stay in the first-level cache from tap to tap."""

_L2_SHARE = 4
"""The rows that a band reads fill at most this part of the second-level cache."""

_SCATTER = 1.2
"""Cycles for an element of a tile that is written out apart from its neighbours."""

_BAND = 8
"""Rows of a band of an image whose size is not known."""


def is_wide(stage: Stage, convolution: Convolution, machine: Machine) -> bool:
    """Tell whether output channels are better lanes than the pixels of a row.

    They must fill at least half of a vector. Their tile is written out by scatters, which is much
    where sums are short; rows of pixels leave lanes empty behind their end, and cannot be read in
    vectors where windows lie apart.
    """
    lanes = machine.lanes(stage.tensor.dtype)
    extent = stage.axes[convolution.output].extent
    count = convolution.share or (extent.constant if extent.is_constant else None)
    if count is not None and 2 * count <= lanes:
        return False
    last = stage.axes[-1]
    along = linear_coefficient(convolution.image.indices[-1], last.variable) == 1
    extents = [axis.extent for axis in stage.reduction_axes]
    known = last.extent.is_constant and all(extent.is_constant for extent in extents)
    if not along or not known or convolution.output == len(stage.axes) - 1:
        return True
    if convolution.share is not None:
        return True
    points = prod(extent.constant for extent in extents)
    row = max(1, last.extent.constant)
    of_channels = points / (2 * lanes) + _SCATTER
    return of_channels <= points / (2 * lanes) * (-(-row // lanes) * lanes / row)


def schedule_convolution(
    schedule: Schedule,
    stage: Stage,
    convolution: Convolution,
    machine: Machine,
    padding: Stage | None = None,
    epilogue: Stage | None = None,
) -> None:
    """Schedule a convolution; ``padding`` is the map that makes its image, if there is one.

    With an ``epilogue`` (the bias and activation of a layer) the tiles are the epilogue's.
    """
    dtype = stage.tensor.dtype
    lanes = machine.lanes(dtype)
    tile = tile_of(stage, convolution, machine, schedule.program.conditions)
    width = tile.vectors * lanes
    last = stage if epilogue is None else epilogue
    loops = list(schedule[last.name].loops[: len(stage.axes)])
    output = loops[convolution.output]
    outer = [loops[n] for n in convolution.batch]
    if convolution.share is not None:
        group, output = schedule.split(output, convolution.share)
        outer.append(group)
    *rows, row = [loops[n] for n in convolution.pixels]
    panel, in_panel = schedule.split(output, width)
    strip, in_strip = schedule.split(row, tile.rows)
    inside = [panel]
    if rows:
        bands, parts = _divide(stage, convolution, machine, width)
        if parts > 1:
            part, panel = schedule.split(panel, parts=parts)
            outer.append(part)
            inside = [panel]
        band, rows[0] = schedule.split(rows[0], bands)
        outer.append(band)
    blocks, sums = _block_channels(schedule, stage, convolution) if epilogue is None else ([], [])
    schedule.reorder(*outer, *inside, *rows, strip, *blocks, *sums, in_strip, in_panel)
    task = schedule.fuse(*outer) if len(outer) > 1 else outer[0] if outer else panel
    if epilogue is not None:
        schedule.compute_at(stage.name, strip, scope="local")
        _schedule_sums(schedule, stage, convolution, width, lanes)
    fill_registers(schedule, in_strip, in_panel, width, lanes)
    if padding is not None:
        schedule.compute_at(padding.name, task)
        vectorize_loop(schedule, schedule[padding.name].loops[-1], lanes)
    schedule.parallel(task)
    if epilogue is None:
        back = schedule.cache_write(stage.name, at=strip)
        _scatter(schedule, back.name, convolution, lanes)
    _channels_last(schedule, stage, convolution, local=epilogue is None)
    if not _is_packed(stage, convolution):
        _pack(schedule, stage, convolution, width, lanes)


def tile_of(
    stage: Stage,
    convolution: Convolution,
    machine: Machine,
    conditions: Iterable[Condition] = (),
) -> Tile:
    """Return the register tile: ``rows`` pixels times ``vectors`` of output channels."""
    facts = Facts(conditions)
    outputs = facts.range_of(stage.axes[convolution.output].extent)
    if convolution.share is not None:
        outputs = Range(convolution.share, convolution.share)
    return choose_tile(
        machine,
        stage.tensor.dtype,
        facts.range_of(stage.axes[convolution.pixels[-1]].extent),
        outputs,
        row_stride=convolution.image.dtype.bits // 8,  # pixels are neighbours
        parallel_columns=False,
    )


def _divide(
    stage: Stage, convolution: Convolution, machine: Machine, width: int
) -> tuple[int, int]:
    """Return the rows of a band, and into how many parts the panels of outputs are divided.

    A band of rows fits into its share of the second-level cache, and there are some for each core;
    where an image has too few rows for that, the outputs are divided too.
    """
    extent = stage.axes[convolution.pixels[0]].extent
    if not extent.is_constant:
        return _BAND, 1
    rows = max(1, extent.constant)
    tasks = prod(_constant(stage.axes[n].extent) for n in convolution.batch)
    cores = machine.cores
    wanted = min(2 * cores, rows // 4)
    wanted = wanted // cores * cores if wanted >= cores else max(1, wanted)
    held = machine.l2_bytes // _L2_SHARE // max(1, _bytes_of_row(stage, convolution))
    bands = max(1, wanted, -(-rows // max(1, held)))
    panels = -(-_outputs(stage, convolution) // width)
    parts = max(1, min(panels, -(-cores // max(1, tasks * bands))))
    return -(-rows // bands), parts


def _constant(extent: object) -> int:
    constant = getattr(extent, "constant", 0) if getattr(extent, "is_constant", False) else 1
    return max(1, constant)


def _outputs(stage: Stage, convolution: Convolution) -> int:
    return convolution.share or _constant(stage.axes[convolution.output].extent)


def _bytes_of_row(stage: Stage, convolution: Convolution) -> int:
    """Return the bytes of the image that one more row of the output reads."""
    variable = stage.axes[convolution.pixels[0]].variable
    points, step = 1, 1
    for index, extent in zip(
        convolution.image.indices, convolution.image.tensor.shape, strict=True
    ):
        coefficient = linear_coefficient(index, variable)
        if coefficient:
            step = abs(coefficient)
        elif not any(linear_coefficient(index, stage.axes[n].variable) for n in convolution.batch):
            points *= _constant(extent)
    return points * step * convolution.image.dtype.bits // 8


def _block_channels(
    schedule: Schedule, stage: Stage, convolution: Convolution
) -> tuple[list[Loop], list[Loop]]:
    """Return the loops over blocks of channels, and those inside: taps, then channels."""
    every = list(schedule[stage.name].loops)
    by_name = {loop.name: loop for loop in every[-len(stage.reduction_axes) :]}
    taps = [by_name[a.variable.name] for a in convolution.taps if a.variable.name in by_name]
    channels = [
        by_name[a.variable.name] for a in convolution.channels if a.variable.name in by_name
    ]
    if not channels or (channels[0].extent.isdigit() and int(channels[0].extent) <= CHANNELS):
        return [], [*taps, *channels]
    block, inner = schedule.split(channels[0], CHANNELS)
    return [block], [*taps, inner, *channels[1:]]


def _schedule_sums(
    schedule: Schedule, stage: Stage, convolution: Convolution, width: int, lanes: int
) -> None:
    """Order the loops of a tile that is computed inside its epilogue's."""
    blocks, sums = _block_channels(schedule, stage, convolution)
    names = [stage.axes[n].variable.name for n in (convolution.pixels[-1], convolution.output)]
    found = {loop.name: loop for loop in schedule[stage.name].loops}
    pixel, column = (found.get(name) for name in names)
    inner = [loop for loop in (pixel, column) if loop is not None]
    schedule.reorder(*blocks, *sums, *inner)
    assert column is not None
    fill_registers(schedule, pixel, column, width, lanes)


def _scatter(schedule: Schedule, copy: str, convolution: Convolution, lanes: int) -> None:
    """Write a finished tile out: its pixels unrolled, its channels in vectors."""
    loops = list(schedule[copy].loops)
    column = _take_loop(schedule, copy, loops, convolution.output)
    if loops:
        schedule.reorder(*loops, column)
    for loop in loops:
        schedule.unroll(loop)
    if int(column.extent) > lanes:
        block, column = schedule.split(column, lanes)
        schedule.unroll(block)
    schedule.vectorize(column)


def _channels_last(
    schedule: Schedule, stage: Stage, convolution: Convolution, *, local: bool
) -> None:
    """Let the sums of a tile lie as its vectors do."""
    place = convolution.output
    if place == len(stage.axes) - 1:
        return
    name = f"{stage.name}.local" if local else stage.name
    schedule.layout(name, lambda *i: (*i[:place], *i[place + 1 :], i[place]))


def _is_packed(stage: Stage, convolution: Convolution) -> bool:
    """Tell whether the filters lie in panels already: the last index is the output, modulo."""
    return packed_width(convolution.filters, stage.axes[convolution.output].variable) is not None


def _pack(
    schedule: Schedule, stage: Stage, convolution: Convolution, width: int, lanes: int
) -> None:
    """Copy the filters into panels of ``width`` outputs, in the order in which tiles read them."""
    filters = convolution.filters
    places = [
        next(n for n, index in enumerate(filters.indices) if linear_coefficient(index, variable))
        for variable in (
            stage.axes[convolution.output].variable,
            *[axis.variable for axis in (*convolution.taps, *convolution.channels)],
        )
    ]
    rest = [n for n in range(len(filters.indices)) if n not in places]
    output, *inner = places
    copy = schedule.cache_read(filters.tensor.name)
    blocked = len(convolution.channels) > 0
    first = places[1 + len(convolution.taps)] if blocked else -1

    def panels(*i: Affine) -> tuple[Affine, ...]:
        o = i[output]
        block = (i[first] // CHANNELS,) if blocked else ()
        inside = [i[n] % CHANNELS if n == first else i[n] for n in inner]
        return (*[i[n] for n in rest], o // width, *block, *inside, o % width)

    schedule.layout(copy.name, panels)
    loops = list(schedule[copy.name].loops)
    column = _take_loop(schedule, copy.name, loops, output)
    block, lane = schedule.split(column, lanes)
    schedule.reorder(block, *loops, lane)
    schedule.vectorize(lane)
    schedule.parallel(schedule.fuse(block, loops[0]) if loops else block)


def _take_loop(schedule: Schedule, copy: str, loops: list[Loop], place: int) -> Loop:
    """Take the loop over an axis of a copy out of its loops, among which short ones are missing."""
    name = resolve_stage(schedule.program, copy).axes[place].variable.name
    found = next(loop for loop in loops if loop.name == name)
    loops.remove(found)
    return found
