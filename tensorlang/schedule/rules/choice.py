"""Which version of a default schedule calls with certain sizes want, where sizes are symbolic.

Input:  ``matmul`` of sizes M, N, K; M = 31, N = 1009, K = 2039; 32 registers of 16 lanes
Output: ``Choice(("M <= 32",), product=ProductPlan(Tile(rows=8, vectors=2), None))``

A version is right for all sizes that its assumptions admit; what it is best for is another matter.
One row is a matrix-vector product, few rows are bound by reading the columns' operand, and the tile
that leaves the least empty depends on the sizes. Calls whose choices are equal share a version, so
that there are few: the sizes themselves are no part of a choice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tensorlang.ir.affine import Affine, Var, evaluate
from tensorlang.ir.definition import Definition, Stage
from tensorlang.schedule.rules.contraction import ProductPlan, plan_product
from tensorlang.schedule.rules.facts import Range
from tensorlang.schedule.rules.few_rows import few_rows_limit
from tensorlang.schedule.rules.kinds import Contraction, as_contraction
from tensorlang.schedule.rules.machine import Machine

_FEW_STEPS = (1, 8)
"""Rows up to which a product of few rows is scheduled in yet another way."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A version of the default schedule: what it takes for granted, and what is decided.

    ``fixed`` are sizes that become numbers in the version's definition, ``assumptions`` what is
    assumed of others, ``product`` the loops of the operator's only contraction.
    """

    assumptions: tuple[str, ...] = ()
    fixed: tuple[tuple[str, int], ...] = ()
    product: ProductPlan | None = None

    def __str__(self) -> str:
        parts = [*self.assumptions, *[f"{name} = {value}" for name, value in self.fixed]]
        return ", ".join([*parts, *([] if self.product is None else [str(self.product)])])


class Chooser:
    """Chooses versions of one definition, whose loops it looks at once."""

    def __init__(self, definition: Definition, machine: Machine) -> None:
        self._machine = machine
        self._sizes = definition.sizes
        self._product = _only_contraction(definition) if definition.sizes else None

    def choose(self, sizes: Mapping[str, int]) -> Choice | None:
        """Return the version that is best for calls with ``sizes``, by their names.

        None where there is only the one for any sizes.
        """
        if self._product is None:
            return None
        values = {size: sizes[size.name] for size in self._sizes}
        return _choose_product(*self._product, self._machine, values)


def _only_contraction(definition: Definition) -> tuple[Stage, Contraction] | None:
    """Return the contraction of an operator that has one, over two axes and one sum."""
    found = [(stage, as_contraction(stage)) for stage in definition.stages]
    contractions = [(stage, known) for stage, known in found if known is not None]
    if len(contractions) != 1:
        return None
    stage, _ = contractions[0]
    return contractions[0] if len(stage.axes) == 2 and len(stage.reduction_axes) == 1 else None


def _choose_product(
    stage: Stage, contraction: Contraction, machine: Machine, sizes: Mapping[Var, int]
) -> Choice:
    def exactly(extent: Affine) -> Range:
        value = max(0, evaluate(extent, sizes))
        return Range(value, value)

    row_extent = stage.axes[contraction.rows[-1]].extent
    rows, columns = exactly(row_extent), exactly(stage.axes[-1].extent)
    steps = exactly(stage.reduction_axes[0].extent)
    few = few_rows_limit(stage, contraction)
    name = _size(row_extent)
    if not few or not rows.is_at_most(few) or (name is None and not row_extent.is_constant):
        plan = plan_product(stage, contraction, machine, rows, columns, steps)
        return Choice(product=plan)
    bound = next(limit for limit in (*_FEW_STEPS, few) if rows.is_at_most(limit))
    plan = plan_product(stage, contraction, machine, rows, columns, steps, few=True)
    return Choice(() if name is None else (f"{name} <= {bound}",), product=plan)


def _size(extent: Affine) -> str | None:
    """Return the name of the size that an extent is; None for numbers and sums."""
    if extent.constant != 0 or len(extent.terms) != 1:
        return None
    atom, coef = extent.terms[0]
    return atom.name if coef == 1 and isinstance(atom, Var) else None
