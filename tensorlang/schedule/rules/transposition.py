"""Transpositions: tiles that are read along one axis and written along another.

Before                              After (512-bit vectors, f32)
::

    for j in N:                         parallel for j.o, i.o in tiles of 128 x 128:
        for i in M:                         x.local = a tile of x, copied row by row
            Y[j, i] = x[i, j]               for j.i in 128:
                                                for i.i in vectors: Y[...] = x.local[...]

Each line of memory is read once and written once, and in long runs; what walks across the rows is
the tile, which lies in the cache. Its rows are set a line apart from a power of two, as otherwise a
column of it would fall into one set of the cache.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tensorlang.ir.affine import Affine, Var, affine, depends_on
from tensorlang.ir.definition import Stage
from tensorlang.ir.expr import Load, loads_of
from tensorlang.schedule.rules.kinds import is_conditional
from tensorlang.schedule.rules.machine import Machine

if TYPE_CHECKING:
    from tensorlang.schedule.schedule import Schedule

_TILE_BYTES = 128 * 1024
"""A tile is the largest square up to this size; it shares the level-2 cache with little else."""

_LINE = 64


@dataclass(frozen=True, slots=True)
class Transposition:
    """A map that reads ``load`` contiguously along ``axis``, which is not the map's last one."""

    load: Load
    axis: int


def as_transposition(stage: Stage) -> Transposition | None:
    """Recognise a map with an operand whose contiguous axis is another than the result's."""
    if not stage.is_map or len(stage.tensors) != 1 or is_conditional(stage):
        return None
    variables = [axis.variable for axis in stage.axes]
    loads = loads_of(*stage.values)
    for load in loads:
        if sum(other.tensor is load.tensor for other in loads) > 1:
            continue
        place = _contiguous_axis(load, variables)
        if place is not None:
            return Transposition(load, place)
    return None


def _contiguous_axis(load: Load, variables: list[Var]) -> int | None:
    """Return the axis that the load's last index is, if an earlier index is the last axis."""
    forms = [affine(variable) for variable in variables]
    if len(load.indices) < 2 or not all(_is_shifted(index, forms) for index in load.indices):
        return None
    last = load.indices[-1]
    place = next((n for n, v in enumerate(variables[:-1]) if depends_on(last, {v})), None)
    crossed = any(depends_on(index, {variables[-1]}) for index in load.indices[:-1])
    return place if crossed else None


def _is_shifted(index: Affine, forms: list[Affine]) -> bool:
    """Tell whether an index is a number, or an axis plus a number."""
    rest = index - index.constant
    return not rest.terms or rest in forms


def schedule_transposition(
    schedule: Schedule, stage: Stage, transposition: Transposition, machine: Machine
) -> None:
    """Copy square tiles along the operand's rows, and write them along the result's."""
    loops = list(schedule[stage.name].loops)
    row, column = loops[transposition.axis], loops[-1]
    side = tile_side(stage, transposition)
    lanes = machine.lanes(stage.tensor.dtype)
    row_tile, in_row = schedule.split(row, side)
    column_tile, in_column = schedule.split(column, side)
    outer = [row_tile if loop is row else loop for loop in loops[:-1]]
    schedule.reorder(*outer, column_tile, in_row, in_column)
    shared = schedule.fuse(*outer, column_tile)
    schedule.parallel(shared)
    copy = schedule.cache_read(transposition.load.tensor.name, at=shared)
    _, lane = schedule.split(copy.loops[-1], lanes)
    schedule.vectorize(lane)
    tensor = transposition.load.tensor
    schedule.pad_storage(copy.name, len(tensor.shape) - 1, _LINE * 8 // tensor.dtype.bits)
    _, lane = schedule.split(in_column, lanes)
    schedule.vectorize(lane)


def tile_side(stage: Stage, transposition: Transposition) -> int:
    """Return the side of a tile, a power of two: that of the largest one within the limit."""
    bits = max(stage.tensor.dtype.bits, transposition.load.tensor.dtype.bits, 8)
    side = 16
    while (2 * side) ** 2 * bits // 8 <= _TILE_BYTES:
        side *= 2
    return side
