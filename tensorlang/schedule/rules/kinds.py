"""What a stage is, as far as the rules care.

Input:  ``C[i, j] = sum(A[i, k] * B[k, j] for k)``
Output: ``Contraction(rows=(i,), columns=(j,), batch=(), sums=(k,))``
"""

from __future__ import annotations

from dataclasses import dataclass

from tensorlang.ir.affine import Var, affine, linear_coefficient, variables_of
from tensorlang.ir.definition import Axis, Stage
from tensorlang.ir.expr import (
    Call,
    Cast,
    Const,
    Expr,
    IndexValue,
    Load,
    Select,
    iterate,
    loads_of,
)

EXPENSIVE = frozenset(
    {
        "exp", "exp2", "expm1", "log", "log2", "log1p", "sin", "cos", "tan", "asin", "acos", "atan",
        "atan2", "sinh", "cosh", "tanh", "erf", "sigmoid", "pow", "div", "sqrt", "rsqrt",
        "floordiv", "mod",
    }
)  # fmt: skip


_WINDOW = 64
"""Points of a reduction up to which it is written out."""

_CASES = 8
"""Values of an axis up to which the cases that it decides between are written out."""

_FEW = 4
"""Points up to which a sum of products is no contraction: a tile would not pay."""


@dataclass(frozen=True, slots=True)
class Contraction:
    """A sum of products of two operands; positions of the stage's axes by where they occur.

    ``columns`` occur in the operand that is contiguous along the last axis of the output,
    ``rows`` in the other one, ``batch`` in both.
    """

    rows: tuple[int, ...]
    columns: tuple[int, ...]
    batch: tuple[int, ...]
    row_operand: Load
    column_operand: Load


def as_contraction(stage: Stage) -> Contraction | None:
    """Recognise a sum of products whose operands each lack an axis that the other one has."""
    factors = factors_of_product(stage)
    if factors is None or not stage.axes or is_window(stage, _FEW):
        return None
    left, right = factors
    last = stage.axes[-1].variable
    if last in variables_of_load(left) and last not in variables_of_load(right):
        left, right = right, left
    elif last not in variables_of_load(right) or last in variables_of_load(left):
        return None
    reduction = {axis.variable for axis in stage.reduction_axes}
    if not (reduction & variables_of_load(left) and reduction & variables_of_load(right)):
        return None
    rows: list[int] = []
    columns: list[int] = []
    batch: list[int] = []
    for position, axis in enumerate(stage.axes):
        in_left = axis.variable in variables_of_load(left)
        in_right = axis.variable in variables_of_load(right)
        kind = batch if in_left and in_right else rows if in_left else columns
        kind.append(position)
    if not rows:
        return None
    return Contraction(tuple(rows), tuple(columns), tuple(batch), left, right)


def factors_of_product(stage: Stage) -> tuple[Load, Load] | None:
    """Return the two loads of a sum of products that may be added in any order."""
    if stage.combiner is None or stage.combiner.name != "sum" or len(stage.tensors) != 1:
        return None
    if stage.combiner.ordered or not stage.reduction_axes:
        return None
    return _product_of_loads(stage.values[0])


def _product_of_loads(expr: Expr) -> tuple[Load, Load] | None:
    if not isinstance(expr, Call) or expr.function != "mul":
        return None
    loads = [_load_below(arg) for arg in expr.args]
    left, right = loads
    return None if left is None or right is None else (left, right)


def _load_below(expr: Expr) -> Load | None:
    """Return the load that an operand is made of: itself, or the only one in an expression."""
    if isinstance(expr, Load):
        return expr
    loads = loads_of(expr)
    cheap = isinstance(expr, Cast | Select) or not is_expensive(expr)
    return loads[0] if len(loads) == 1 and cheap else None


def variables_of_load(load: Load) -> frozenset[Var]:
    """Return every variable that the place of a load depends on."""
    return frozenset(v for index in load.indices for v in variables_of(index))


def packed_width(load: Load, columns: Var) -> int | None:
    """Return w if a load reads panels of w columns: ``B[j // w, k, j % w]``; else None."""
    if not load.indices:
        return None
    extent, last = load.tensor.shape[-1], load.indices[-1]
    if not extent.is_constant or extent.constant < 1 or last != affine(columns) % extent.constant:
        return None
    return extent.constant


def is_expensive(*values: Expr) -> bool:
    """Tell whether computing the values again costs more than reading them back."""
    calls = [e for e in iterate(*values) if isinstance(e, Call)]
    return len(calls) > 12 or any(call.function in EXPENSIVE for call in calls)


def is_map(stage: Stage) -> bool:
    """Tell whether a stage computes each element from others alone."""
    return stage.is_map


def reads(reader: Stage, stage: Stage) -> list[Load]:
    """Return the loads of ``stage``'s tensors in ``reader``."""
    return [load for load in loads_of(*reader.values) if load.tensor in stage.tensors]


def reads_last_axis(stage: Stage) -> bool:
    """Tell whether the reduction runs along contiguous memory: the last index of its loads."""
    reduction = {axis.variable for axis in stage.reduction_axes}
    for load in loads_of(*stage.values):
        if not load.indices:
            continue
        last = load.indices[-1]
        if any(linear_coefficient(last, variable) == 1 for variable in reduction):
            return True
    return False


def is_window(stage: Stage, most: int = _WINDOW) -> bool:
    """Tell whether a reduction runs over a small constant window, as a stencil's does."""
    points = 1
    for axis in stage.reduction_axes:
        if not axis.extent.is_constant:
            return False
        points *= axis.extent.constant
    return 0 < points <= most


def is_conditional(stage: Stage) -> bool:
    """Tell whether a stage chooses between values, as padding does."""
    return any(isinstance(expr, Select) for expr in iterate(*stage.values))


def case_axes(stage: Stage) -> list[Axis]:
    """Return the short axes whose value decides, in an equality with a number, what is computed.

    The rows of a small constant matrix are such cases: ``where(r == 0, a + b, a - b)``.
    """
    deciding: set[Var] = set()
    for select in (e for e in iterate(*stage.values) if isinstance(e, Select)):
        match select.condition:
            case Call(function="eq", args=(IndexValue(index=index), Const())) if stage.is_map:
                if len(index.terms) == 1:
                    deciding |= variables_of(index)
            case _:
                pass
    return [
        axis
        for axis in stage.axes
        if axis.variable in deciding
        and axis.extent.is_constant
        and 1 < axis.extent.constant <= _CASES
    ]
