"""How much work a definition is: operations, and bytes that must move.

Input:  matmul with M = N = K = 64     Output: ``Work(operations=524288, bytes=49152, ...)``

The counts are those of the definition, whatever a schedule recomputes: they make the GFLOP/s of
two schedules comparable. A reduction with a predicate (``tl.range``) counts its whole box.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from tensorlang.ir.affine import Affine, Var, evaluate
from tensorlang.ir.definition import Definition, Stage, Tensor
from tensorlang.ir.expr import Call, Expr, iterate

# Relative to an addition, for the estimate alone: what polynomial approximations cost.
_COSTS = {
    "exp": 10, "exp2": 8, "expm1": 14, "log": 14, "log2": 14, "log1p": 16, "pow": 30,
    "sin": 16, "cos": 16, "tan": 24, "asin": 20, "acos": 20, "atan": 16, "atan2": 24,
    "sinh": 20, "cosh": 20, "tanh": 16, "erf": 20, "sigmoid": 14,
    "div": 4, "sqrt": 4, "rsqrt": 5, "floordiv": 20, "mod": 20,
}  # fmt: skip

# A processor's pace at well-scheduled code, on the slow side: operations and bytes per second.
_OPERATIONS_PER_SECOND = 50e9
_BYTES_PER_SECOND = 20e9


@dataclass(frozen=True, slots=True)
class Work:
    """Operations on numbers, bytes of inputs and outputs, an estimate of seconds on one thread."""

    operations: int
    bytes: int
    serial_seconds: float


@dataclass(frozen=True, slots=True)
class _StageWork:
    extents: tuple[Affine, ...]
    operations: int
    cost: int


class WorkCounter:
    """Counts the work of a definition for any sizes; the expressions are walked once."""

    def __init__(self, definition: Definition) -> None:
        self._stages = tuple(_stage_work(stage) for stage in definition.stages)
        self._tensors: tuple[Tensor, ...] = definition.inputs + definition.outputs

    def count(self, sizes: Mapping[Var, int]) -> Work:
        """Return the work for the given sizes."""
        operations, cost = 0, 0
        for stage in self._stages:
            points = prod(max(0, evaluate(extent, sizes)) for extent in stage.extents)
            operations += points * stage.operations
            cost += points * stage.cost
        moved = sum(
            prod(max(0, evaluate(extent, sizes)) for extent in tensor.shape)
            * (tensor.dtype.bits // 8)
            for tensor in self._tensors
        )
        seconds = cost / _OPERATIONS_PER_SECOND + moved / _BYTES_PER_SECOND
        return Work(operations, moved, seconds)


def _stage_work(stage: Stage) -> _StageWork:
    exprs = stage.values + (() if stage.combiner is None else stage.combiner.result)
    calls = [node for node in iterate(*exprs) if isinstance(node, Call) and _is_arithmetic(node)]
    return _StageWork(
        extents=tuple(axis.extent for axis in stage.all_axes),
        operations=sum(2 if call.function == "fma" else 1 for call in calls),
        # a copy costs something too: its loads and stores
        cost=1 + sum(_COSTS.get(call.function, 1) for call in calls),
    )


def _is_arithmetic(expr: Expr) -> bool:
    return expr.dtype.kind != "bool"
