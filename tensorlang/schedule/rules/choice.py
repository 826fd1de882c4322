"""Which version of a default schedule calls with certain sizes want, where sizes are symbolic.

Input:  ``matmul`` of sizes M, N, K; M = 31, N = 1009, K = 2039; 32 registers of 16 lanes
Output: ``(Choice(("M <= 32",), product=ProductPlan(Tile(rows=8, vectors=2), None)),)``

A version is right for all sizes that its assumptions admit; what it is best for is another matter.
One row is a matrix-vector product, few rows are bound by reading the columns' operand, and the tile
that leaves the least empty depends on the sizes. Calls whose choices are equal share a version, so
that there are few: the sizes of a product are no part of its choice.

Those of a convolution are. How its filters' few points are written out, what fills a cache, and
whether pixels or channels are lanes depend on numbers; a program has few layers, and calls each
often. The first choice fixes all sizes but the number of images, the second one leaves the images'
height and width open too, for programs whose images are of ever other sizes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tensorlang.ir.affine import Affine, Var, evaluate, linear_coefficient, variables_of
from tensorlang.ir.definition import Axis, Definition, Stage
from tensorlang.ir.expr import Load
from tensorlang.schedule.rules import LEAST_SECONDS
from tensorlang.schedule.rules.contraction import ProductPlan, plan_product
from tensorlang.schedule.rules.facts import Range
from tensorlang.schedule.rules.few_rows import few_rows_limit
from tensorlang.schedule.rules.kinds import (
    Contraction,
    as_contraction,
    factors_of_product,
    variables_of_load,
)
from tensorlang.schedule.rules.machine import Machine

_FEW_STEPS = (1, 8)
"""Rows up to which a product of few rows is scheduled in yet another way."""

_LONG_PRODUCT = 50e-6
_LONG_CONVOLUTION = LEAST_SECONDS
"""Seconds of estimated work on one thread from which a call may want a version of its own. The
version for any sizes of a convolution takes up to thirty times what is estimated."""


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
    """Chooses versions of one definition, whose loops it looks at once.

    ``least_seconds`` is how much work on one thread a call must be estimated at to want a version.
    """

    def __init__(self, definition: Definition, machine: Machine) -> None:
        self._machine = machine
        self._sizes = definition.sizes
        self._windows = _sizes_of_windows(definition) if definition.sizes else ()
        self._product = None
        if definition.sizes and not self._windows:
            self._product = _only_contraction(definition)
        self.least_seconds = _LONG_CONVOLUTION if self._windows else _LONG_PRODUCT

    def choose(self, sizes: Mapping[str, int]) -> tuple[Choice, ...]:
        """Return the versions that suit calls with ``sizes``, by their names; the best one first.

        None of them where there is only the version for any sizes.
        """
        if self._windows:
            fixed = [tuple([(name, sizes[name]) for name in names]) for names in self._windows]
            return tuple([Choice(fixed=chosen) for chosen in fixed if chosen])
        if self._product is None:
            return ()
        values = {size: sizes[size.name] for size in self._sizes}
        return (_choose_product(*self._product, self._machine, values),)


def _sizes_of_windows(definition: Definition) -> tuple[tuple[str, ...], ...]:
    """Return which sizes to fix where windows are multiplied with filters: most, then fewer.

    Left open is how many images there are, and in the second group what windows move over, too.
    Nothing where there are no windows.
    """
    found = [windows for stage in definition.stages if (windows := _as_windows(stage)) is not None]
    if not found:
        return ()
    images, pixels, filters = [set[Var]().union(*parts) for parts in zip(*found, strict=True)]
    most = [size for size in definition.sizes if size not in images - filters]
    fewer = [size for size in most if size not in pixels - filters]
    groups = [tuple([size.name for size in sizes]) for sizes in (most, fewer)]
    return tuple([names for names in dict.fromkeys(groups) if names])


def _as_windows(stage: Stage) -> tuple[set[Var], set[Var], set[Var]] | None:
    """Return the sizes of the images' number, of their pixels, and of the filters.

    None if a stage sums no products with what is read in windows. This is looser than
    ``as_convolution``, as there is less to see before sizes are fixed.
    """
    factors = factors_of_product(stage)
    for image, filters in () if factors is None else (factors, factors[::-1]):
        moved = [axis for axis in stage.axes if _moves_window(stage, image, axis)]
        if not moved or any(_moves_window(stage, filters, axis) for axis in stage.axes):
            continue
        read = variables_of_load(filters)
        batch = [axis for axis in stage.axes if axis.variable not in read and axis not in moved]
        return (
            {size for axis in batch for size in variables_of(axis.extent)},
            {size for axis in moved for size in variables_of(axis.extent)},
            {size for extent in filters.tensor.shape for size in variables_of(extent)},
        )
    return None


def _moves_window(stage: Stage, load: Load, axis: Axis) -> bool:
    """Tell whether an axis of the result is added to one of the sum in an index of a load."""
    return any(
        linear_coefficient(index, axis.variable)
        and any(linear_coefficient(index, tap.variable) for tap in stage.reduction_axes)
        for index in load.indices
    )


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
