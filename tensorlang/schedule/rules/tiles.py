"""The register tile of a contraction, chosen by an analytical model of the machine.

Input:  a machine with 32 registers of 16 lanes; 1024 rows and columns, a row stride of 4 KiB
Output: ``Tile(rows=9, vectors=3)``: 27 sums in registers, 3 vectors of columns, one of rows

One step of the reduction loads ``vectors`` vectors of columns, broadcasts ``rows`` elements, and
issues rows x vectors multiply-adds. The model counts the cycles of a multiply-add that counts: two
multiply-adds or two loads a cycle, four instructions, four cycles of latency, and the share of the
tiles that lies outside the result. Rows at an unknown distance take an addition each to find. Rows
whose distance is a multiple of the level-1 cache's way fall into one set of it, so that more of
them than it has ways are read from level 2 in each step.

The trade of loads against multiply-adds follows K. Goto and R. van de Geijn, "Anatomy of
High-Performance Matrix Multiplication" (2008).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import gcd

from tensorlang.dtypes import DType
from tensorlang.schedule.rules.facts import ANY, Range
from tensorlang.schedule.rules.machine import Machine

_LATENCY = 4
_PER_CYCLE = 2
_LOADS_PER_CYCLE = 1.6
_ISSUED = 4
_OF_THE_LOOP = 3
"""Instructions of a step besides: two counters and a branch."""

_WAY = 4096
"""Bytes of a way of the level-1 cache: the size of a page, on every processor of today."""

_LINE = 64
_CONFLICT = 0.06
_STEP = 1.5
"""Cycles of a step that no unit of the model accounts for: measured with panels in level 1."""


@dataclass(frozen=True, slots=True)
class Tile:
    """Accumulators of a contraction: ``rows`` times ``vectors`` registers."""

    rows: int
    vectors: int


@lru_cache(maxsize=4096)
def choose_tile(
    machine: Machine,
    dtype: DType,
    rows: Range = ANY,
    columns: Range = ANY,
    *,
    row_stride: int | None = None,
    like_stride: int | None = None,
    most_vectors: int = 4,
    lanes: int | None = None,
    parallel_columns: bool = True,
    vectors: int | None = None,
) -> Tile:
    """Return the tile that the model finds fastest.

    ``row_stride`` is the distance in bytes of two rows of the rows' operand, if it is known;
    ``like_stride`` what it is in the calls to come, though the code must not rely on it.
    ``lanes`` are the columns of a vector; one, where the lanes run along the reduction.
    ``parallel_columns``: threads take panels of columns, which should come out even.
    ``vectors``: their number, where it is given by how the columns lie.
    """
    lanes = lanes or machine.lanes(dtype)

    def cost(tile: Tile) -> float:
        accumulators = tile.rows * tile.vectors
        loads = tile.rows + tile.vectors
        issued = accumulators + loads + _OF_THE_LOOP + (tile.rows if row_stride is None else 0)
        units = accumulators / _PER_CYCLE, loads / _LOADS_PER_CYCLE, issued / _ISSUED
        cycles = max(*units, _LATENCY)
        width = tile.vectors * lanes
        padded = _padding(rows.high, tile.rows) * _expected_padding(columns, width)
        conflict = 1 + _CONFLICT * _thrashing(machine, tile.rows, row_stride or like_stride)
        uneven = 1.0
        if parallel_columns and columns.exact:
            panels = -(-columns.exact // width)
            uneven = (3 + _padding(panels, machine.cores)) / 4  # not every call is parallel
        return (cycles + _STEP) / accumulators * padded * conflict * uneven

    return min(_tiles(machine, rows, columns, lanes, most_vectors, vectors), key=cost)


def _tiles(
    machine: Machine,
    rows: Range,
    columns: Range,
    lanes: int,
    most_vectors: int,
    given: int | None,
) -> Iterator[Tile]:
    """Yield the tiles that leave room for a step's vectors of columns and one of rows.

    One register stays free, as compilers spill where none is. Larger tiles come first, and win
    where the model sees no difference.
    """
    room = machine.vector_registers - 1
    widest = most_vectors if columns.high is None else min(most_vectors, -(-columns.high // lanes))
    for vectors in range(1, max(1, widest) + 1) if given is None else (given,):
        most = max(1, (room - vectors - 1) // vectors)
        if rows.high is not None:
            most = min(most, max(1, rows.high))
        for height in range(most, 0, -1):
            if rows.exact is None or height == even_rows(rows.exact, height):
                yield Tile(height, vectors)


def even_rows(extent: int, most: int) -> int:
    """Return the height of equal tiles: as many as tiles of ``most`` rows would be."""
    tiles = max(1, -(-extent // most))
    return max(1, -(-extent // tiles))


def _padding(extent: int | None, unit: int) -> float:
    """Return what whole units compute, as a multiple of what counts."""
    if not extent:
        return 1.0
    return -(-extent // unit) * unit / extent


def _expected_padding(extent: Range, unit: int) -> float:
    """Return the padding of a range of sizes: half a unit is empty, on average."""
    if extent.exact is not None or extent.high is None:
        return _padding(extent.exact, unit)
    return 1 + unit / max(1, extent.high)


def _thrashing(machine: Machine, rows: int, stride: int | None) -> float:
    """Return how much the rows push one another out of the level-1 cache.

    About 1 where there are as many as ways; each row more is read from level 2 more often.
    """
    ways = max(1, machine.l1_bytes // _WAY)
    if stride is None:  # sizes that are powers of two are common
        return 0.5 * (rows / ways) ** 3 if rows > ways * 3 // 4 else 0.0
    sets = _WAY // gcd(stride, _WAY)
    crowded = sets * _LINE < _WAY and rows > sets * ways * 3 // 4
    return max(1.0, rows / (sets * ways)) ** 3 if crowded else 0.0
