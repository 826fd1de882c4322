"""Sorts and scatters: on whole arrays for the reference, element by element for programs.

Input:  ``Order(axis=1)`` of ``[[3, 1, 2]]``     Output: ``[[1, 2, 0]]``

A scheduled program computes each element by itself, as the definition says: the row is sorted
anew for each of its positions, and each element of a scatter looks at all updates. That is slow
and shares nothing with what lowering makes of a routine, which is the point.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tensorlang.dtypes import DType, evaluation_dtype
from tensorlang.interpreter import arithmetic
from tensorlang.interpreter.accesses import Element, Origin, locate, read
from tensorlang.interpreter.context import Context, Storage
from tensorlang.interpreter.conversions import widen
from tensorlang.interpreter.expressions import OPERATORS
from tensorlang.interpreter.failures import InterpreterError
from tensorlang.interpreter.forms import form_text
from tensorlang.ir.definition import Order, Scatter, Stage, Tensor
from tensorlang.ir.program import Compute
from tensorlang.ir.routines import operands_of

Array = NDArray[Any]

# --- whole arrays ----------------------------------------------------------------------------


def evaluate_routine(stage: Stage, arrays: Mapping[Tensor, Array]) -> Array:
    """Return the tensor of a routine stage; IndexError if a scatter leaves its base."""
    operands = [arrays[tensor] for tensor in operands_of(stage)]
    match stage.routine:
        case Order(axis=axis, descending=descending):
            return positions_in_order(arithmetic.widen(operands[0]), axis, descending)
        case Scatter(combine=combine):
            base, *indices, value = operands
            return _scattered(stage, base, indices, value, combine)
        case None:
            raise TypeError(f"{stage} is no routine")


def positions_in_order(keys: Array, axis: int, descending: bool) -> Array:
    """Return the stable order along an axis; NaN counts as greater than every number."""
    if not descending:
        return np.argsort(keys, axis=axis, kind="stable").astype(np.int64)
    # From the back, so that equal elements keep their order when the result is turned round.
    backwards = np.argsort(np.flip(keys, axis), axis=axis, kind="stable")
    return np.flip(keys.shape[axis] - 1 - backwards, axis).astype(np.int64)


_COMBINING: dict[str, Any] = {
    "add": np.add, "mul": np.multiply, "minimum": np.minimum, "maximum": np.maximum,
}  # fmt: skip


def _scattered(
    stage: Stage, base: Array, indices: list[Array], value: Array, combine: str | None
) -> Array:
    for axis, index in enumerate(indices):
        extent = base.shape[axis]
        outside = (index < 0) | (index >= extent)
        if np.any(outside):
            bad = int(index[outside].flat[0])
            raise IndexError(
                f"index {bad} is out of range for axis {axis} of {stage.tensor}, "
                f"which has {extent} elements"
            )
    places = tuple([index.astype(np.int64).reshape(-1) for index in indices])
    updates = value.reshape(-1)
    result = np.array(base)
    if combine is None:
        for place, update in zip(zip(*places, strict=True), updates, strict=True):
            result[place] = update
        return result
    wide = arithmetic.widen(result)
    _COMBINING[combine].at(wide, places, arithmetic.widen(updates))
    return arithmetic.round_to_storage(wide, stage.tensor.dtype)


# --- one element -----------------------------------------------------------------------------


def write_routine(context: Context, compute: Compute, origin: Origin, target: Element) -> str:
    """Write the computation of one element of a routine; return the source of its value."""
    match compute.stage.routine:
        case Order():
            return _write_order(context, compute, compute.stage.routine, origin)
        case Scatter():
            return _write_scatter(context, compute, compute.stage.routine, origin, target)
        case None:
            raise InterpreterError(f"{compute.stage.name} is no routine")


def _write_order(context: Context, compute: Compute, order: Order, origin: Origin) -> str:
    writer, (operand,) = context.writer, operands_of(compute.stage)
    keys, step = writer.fresh("keys"), writer.fresh("k")
    writer.line(f"{keys} = []")
    extent = form_text(operand.shape[order.axis], context.names)
    indices = list(origin.values)
    indices[order.axis] = step
    with writer.block(f"for {step} in range({extent}):"):
        writer.line(f"{keys}.append({_read(context, compute, operand, tuple(indices), origin)})")
    sorted_positions = writer.constant(_order_of_list)
    return f"{sorted_positions}({keys}, {order.descending})[{origin.values[order.axis]}]"


def _order_of_list(keys: list[Any], descending: bool) -> list[Any]:
    array = np.array(keys)
    return list(positions_in_order(array, 0, descending))


def _write_scatter(
    context: Context, compute: Compute, scatter: Scatter, origin: Origin, target: Element
) -> str:
    writer = context.writer
    base, *indices, value = operands_of(compute.stage)
    state = writer.fresh("state")
    writer.line(f"{state} = {_read(context, compute, base, origin.values, origin)}")
    steps = [writer.fresh("k") for _ in value.shape]
    with ExitStack() as stack:
        for step, extent in zip(steps, value.shape, strict=True):
            text = form_text(extent, context.names)
            stack.enter_context(writer.block(f"for {step} in range({text}):"))
        place: list[str] = []
        for index in indices:
            place.append(writer.fresh("i"))
            found = _read(context, compute, index, tuple(steps), origin)
            writer.line(f"{place[-1]} = int({found})")
        locate(context, target.storage, tuple(place), origin, "writes", from_data=True)
        here = " and ".join(f"{i} == {v}" for i, v in zip(place, origin.values, strict=True))
        with writer.block(f"if {here}:"):
            update = _read(context, compute, value, tuple(steps), origin)
            writer.line(f"{state} = {_combined(context, scatter.combine, state, update)}")
    return state


def _combined(context: Context, combine: str | None, state: str, update: str) -> str:
    if combine is None:
        return update
    operator = OPERATORS.get(combine)
    if operator is not None:
        return operator.format(state, update)
    return f"{context.writer.constant(arithmetic.implementation(combine))}({state}, {update})"


def _read(
    context: Context, compute: Compute, tensor: Tensor, indices: tuple[str, ...], origin: Origin
) -> str:
    storage = context.storages.get(compute.redirect(tensor))
    if storage is None:
        raise InterpreterError(f"{origin.statement} reads {tensor}, which has no storage")
    return _widened(context, read(context, _located(context, storage, indices, origin)), tensor)


def _located(
    context: Context, storage: Storage, indices: tuple[str, ...], origin: Origin
) -> Element:
    return locate(context, storage, indices, origin, "reads")


def _widened(context: Context, text: str, tensor: Tensor) -> str:
    dtype: DType = tensor.dtype
    if evaluation_dtype(dtype) is dtype:
        return text
    return f"{context.writer.constant(widen)}({text})"
