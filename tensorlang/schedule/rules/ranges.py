"""Ranges of symbolic sizes for which a contraction wants another schedule than in general.

Input:  ``matmul`` of sizes M, N, K, on a machine with 32 registers of 16 lanes
Output: ``[("M <= 1",), ("M <= 32",), ("N <= 512",)]``

One row is a matrix-vector product; few rows are bound by reading the columns' operand; few columns
want narrow panels, as half an empty one is a large share of them. Where sizes are fixed the rules
know all this, and there are no ranges.
"""

from __future__ import annotations

from tensorlang.ir.affine import Affine, Var
from tensorlang.ir.definition import Definition, Stage
from tensorlang.schedule.rules.facts import Range
from tensorlang.schedule.rules.few_rows import few_rows_limit
from tensorlang.schedule.rules.kinds import Contraction, as_contraction
from tensorlang.schedule.rules.machine import Machine
from tensorlang.schedule.rules.tiles import choose_tile

_NARROW_PANELS = 10
"""Panels up to which an empty part of the last one counts."""


def contraction_ranges(definition: Definition, machine: Machine) -> list[tuple[str, ...]]:
    """Return the assumptions of each range, the most special first."""
    found = _only_contraction(definition)
    if found is None:
        return []
    stage, contraction = found
    ranges: list[tuple[str, ...]] = []
    rows = _size(stage.axes[contraction.rows[-1]].extent)
    few = few_rows_limit(stage, contraction)
    if rows is not None and few:
        ranges += [(f"{rows} <= 1",), (f"{rows} <= {few}",)]
    columns = _size(stage.axes[-1].extent)
    if columns is not None:
        limit = _narrow(stage, machine)
        ranges += [(f"{columns} <= {limit}",)] if limit else []
    return ranges


def _only_contraction(definition: Definition) -> tuple[Stage, Contraction] | None:
    """Return the contraction of an operator that has one, over two axes."""
    found = [(stage, as_contraction(stage)) for stage in definition.stages]
    contractions = [(stage, known) for stage, known in found if known is not None]
    if len(contractions) != 1 or len(contractions[0][0].axes) != 2:
        return None
    return contractions[0]


def _narrow(stage: Stage, machine: Machine) -> int | None:
    """Return the columns up to which the model prefers narrower panels than in general."""
    dtype = stage.tensor.dtype
    general = choose_tile(machine, dtype)
    limit = _NARROW_PANELS * general.vectors * machine.lanes(dtype)
    narrow = choose_tile(machine, dtype, columns=Range(0, limit))
    return limit if narrow.vectors < general.vectors else None


def _size(extent: Affine) -> Var | None:
    """Return the size that an extent is; None for numbers and sums."""
    if extent.constant != 0 or len(extent.terms) != 1:
        return None
    atom, coef = extent.terms[0]
    return atom if coef == 1 and isinstance(atom, Var) else None
