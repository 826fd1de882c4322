"""Where results go: fresh, aligned arrays, or the caller's ``out``.

Input:  ``out=C[:, ::2]``       Output: the same array, once it is known to be fit for writing

An ``out`` must be writable, of the result's dtype and shape, and no two of its elements may share
memory, nor may it share memory with an input: results are written while inputs are still read.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from math import prod
from typing import Any, cast

import numpy as np

from tensorlang.lang.foreign import as_numpy_view, is_foreign_array, like
from tensorlang.runtime.arrays import Array, TensorParameter
from tensorlang.runtime.plans import Result
from tensorlang.runtime.recycling import FROM_BYTES, allocate

_OVERLAP_EFFORT = 100_000  # of NumPy's exact test; its worst case is exponential
_SELF_OVERLAP_ELEMENTS = 1_000_000


def allocate_result(parameter: TensorParameter, shape: tuple[int, ...]) -> Array:
    """Return memory for a result; raises MemoryError, naming it, if there is none."""
    try:
        return allocate(shape, parameter.dtype)
    except MemoryError:
        size = prod(shape) * parameter.dtype.itemsize
        raise MemoryError(
            f"{parameter.function}: no memory for the result {parameter.name}, {parameter.type}"
            f" of shape {shape} ({size:,} bytes)"
        ) from None


def allocate_results(
    parameters: Sequence[TensorParameter], shapes: Sequence[tuple[int, ...]]
) -> tuple[Array, ...]:
    """Return memory for every result."""
    return tuple(map(allocate_result, parameters, shapes))


def to_allocate(parameters: Sequence[TensorParameter], arrays: Sequence[Array]) -> list[Result]:
    """Return how a fast call gets results like ``arrays``: small ones straight from NumPy."""
    return [
        Result(
            array.shape,
            array.dtype,
            partial(allocate_result, parameter, array.shape)
            if array.nbytes >= FROM_BYTES
            else None,
        )
        for parameter, array in zip(parameters, arrays, strict=True)
    ]


def returned_value(results: tuple[Array, ...], out: Any, arguments: Iterable[Any]) -> Any:
    """Return what a call returns: ``out`` itself, or its results as the kind of the arguments."""
    if out is not None:
        return out
    made = like(results, arguments)
    return made[0] if len(made) == 1 else made


def check_outputs(
    parameters: Sequence[TensorParameter],
    out: Any,
    shapes: Sequence[tuple[int, ...]],
    inputs: Sequence[tuple[str, Array]],
) -> tuple[Array, ...]:
    """Return the arrays of ``out`` (one, or a tuple of them), checked for being written to."""
    arrays = _as_tuple(parameters, out)
    for parameter, array, shape in zip(parameters, arrays, shapes, strict=True):
        _check_output(parameter, array, shape)
    for index, (parameter, array) in enumerate(zip(parameters, arrays, strict=True)):
        others = [(f"out ({p.name})", a) for p, a in zip(parameters[:index], arrays, strict=False)]
        for name, other in (*inputs, *others):
            if overlaps(array, other):
                raise ValueError(
                    f"{parameter.function}: out ({parameter.name}) shares memory with {name},"
                    " which would change while it is in use: pass an array of its own"
                )
    return arrays


def _as_tuple(parameters: Sequence[TensorParameter], out: Any) -> tuple[Array, ...]:
    arrays = cast("tuple[Any, ...]", out) if isinstance(out, tuple) else (out,)
    if len(arrays) != len(parameters):
        names = ", ".join(parameter.name for parameter in parameters)
        found = f"{len(arrays)} of them" if isinstance(out, tuple) else type(out).__name__
        raise TypeError(
            f"{parameters[0].function}: out must be a tuple of {len(parameters)} arrays"
            f" ({names}), found {found}"
        )
    return tuple([
        _as_output(parameter, value) for parameter, value in zip(parameters, arrays, strict=True)
    ])  # fmt: skip


def _as_output(parameter: TensorParameter, value: Any) -> Array:
    where = f"{parameter.function}: out ({parameter.name}) must be an array"
    if isinstance(value, np.ndarray) and not isinstance(value, np.ma.MaskedArray):
        return cast("Array", value)
    if isinstance(value, np.ma.MaskedArray) or not is_foreign_array(cast("object", value)):
        raise TypeError(f"{where}, found {type(cast('object', value)).__name__}")
    try:
        return as_numpy_view(value)
    except TypeError as error:
        raise TypeError(f"{where}, found {type(value).__name__}: {error}") from error


def _check_output(parameter: TensorParameter, array: Array, shape: tuple[int, ...]) -> None:
    where = f"{parameter.function}: out ({parameter.name})"
    if array.dtype != parameter.dtype:
        raise TypeError(
            f"{where} must hold {parameter.tensor.dtype.name} (np.{parameter.dtype.name}), found"
            f" {array.dtype.name if array.dtype.isnative else array.dtype.str}"
        )
    if array.shape != shape:
        raise ValueError(f"{where} must have shape {shape}, {parameter.type}, found {array.shape}")
    if not array.flags.writeable:
        raise ValueError(f"{where} is read-only")
    if overlaps_itself(array):
        raise ValueError(
            f"{where}: some of its elements share memory (strides {array.strides} for shape"
            f" {array.shape}), so it cannot hold a result: pass a copy"
        )


def overlaps(left: Array, right: Array) -> bool:
    """Tell whether two arrays share an element; in doubt (too hard to decide), say yes."""
    if not np.may_share_memory(left, right):
        return False
    try:
        return np.shares_memory(left, right, max_work=cast("Any", _OVERLAP_EFFORT))
    except np.exceptions.TooHardError:
        return True


def overlaps_itself(array: Array) -> bool:
    """Tell whether two elements of ``array`` share memory; in doubt, say yes."""
    if array.flags.c_contiguous or array.size == 0:
        return False
    steps = sorted(
        (abs(stride), extent)
        for stride, extent in zip(array.strides, array.shape, strict=True)
        if extent > 1
    )
    covered = array.dtype.itemsize  # bytes spanned by the axes of smaller stride
    for stride, extent in steps:
        if stride < covered:
            return _overlaps_exactly(array)
        covered += stride * (extent - 1)
    return False


def _overlaps_exactly(array: Array) -> bool:
    """Compare the positions of all elements, if they are few."""
    if array.size > _SELF_OVERLAP_ELEMENTS or any(
        stride == 0 and extent > 1
        for stride, extent in zip(array.strides, array.shape, strict=True)
    ):
        return True
    positions = np.zeros(1, np.int64)
    for stride, extent in zip(array.strides, array.shape, strict=True):
        steps = np.arange(extent, dtype=np.int64) * stride
        positions = (positions[:, np.newaxis] + steps).reshape(-1)
    ordered = np.sort(positions)
    return bool((np.diff(ordered) < array.dtype.itemsize).any())
