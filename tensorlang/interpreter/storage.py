"""Boxes in memory: where a layout puts each element, and arrays as lists of elements.

Input:  ``Layout((k, n), (n // 16, k, n % 16), (N // 16, K, 16))`` for a box of 2 x 32
Output: ``[0, 1, ..., 15, 32, ...]``: for each row-major position, the number of its cell
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tensorlang.dtypes import DType, from_numpy, to_numpy
from tensorlang.interpreter.failures import POISON, InterpreterError
from tensorlang.ir.affine import Var, evaluate
from tensorlang.ir.program import Layout

Table = list[int]


def layout_tables(
    layout: Layout, name: str, sizes: Mapping[Var, int]
) -> Callable[..., tuple[Table, int]]:
    """Return a function from the extents of a box to its table and its number of cells.

    The function raises InterpreterError for a layout that leaves its physical shape or puts two
    elements in one place.
    """
    known: dict[tuple[int, ...], tuple[Table, int]] = {}

    def tables(*extents: int) -> tuple[Table, int]:
        if extents not in known:
            known[extents] = _layout_table(layout, name, sizes, extents)
        return known[extents]

    return tables


def _layout_table(
    layout: Layout, name: str, sizes: Mapping[Var, int], extents: tuple[int, ...]
) -> tuple[Table, int]:
    shape = tuple([evaluate(form, sizes) for form in layout.shape])
    owners: dict[tuple[int, ...], tuple[int, ...]] = {}
    table: Table = []
    for position in itertools.product(*map(range, extents)):
        values = dict(sizes) | dict(zip(layout.variables, position, strict=True))
        physical = tuple([evaluate(form, values) for form in layout.indices])
        if not all(0 <= p < extent for p, extent in zip(physical, shape, strict=True)):
            raise InterpreterError(
                f"the layout of {name} puts position {position} at {physical}, "
                f"outside its physical shape {shape}"
            )
        owner = owners.setdefault(physical, position)
        if owner != position and not layout.folded:
            raise InterpreterError(
                f"the layout of {name} puts the positions {owner} and {position} "
                f"in one place, {physical}"
            )
        table.append(row_major(physical, shape))
    return table, math.prod(shape)


def row_major(index: Sequence[int], shape: Sequence[int]) -> int:
    """Return the number of an element in row-major order."""
    flat = 0
    for position, extent in zip(index, shape, strict=True):
        flat = flat * extent + position
    return flat


def check_input(name: str, array: NDArray[Any], dtype: DType) -> None:
    """Raise TypeError unless ``array`` holds elements of ``dtype``."""
    if from_numpy(array.dtype) is not dtype:
        raise TypeError(f"{name} must be an array of {dtype.name}, not of {array.dtype}")


def cells_of(array: NDArray[Any]) -> list[Any]:
    """Return the elements of an array in row-major order, as NumPy scalars."""
    return list(np.ascontiguousarray(array).reshape(-1))


def flat_cells_of(array: NDArray[Any], size: int) -> list[Any]:
    """Return ``size`` cells as they lie in memory from the first element on.

    What lies between the elements of a strided array is poison. Raises ValueError for strides
    that are negative or no multiples of the element.
    """
    strides = [stride // array.itemsize for stride in array.strides]
    if any(stride < 0 or stride % array.itemsize for stride in array.strides):
        raise ValueError("strides must be positive multiples of the element's size")
    cells: list[Any] = [POISON] * size
    for index, value in np.ndenumerate(array):
        place = sum(i * stride for i, stride in zip(index, strides, strict=True))
        if place < size:
            cells[place] = value
    return cells


def array_of(cells: list[Any], shape: tuple[int, ...], dtype: DType) -> NDArray[Any]:
    """Return written cells as an array."""
    return np.array(cells, dtype=to_numpy(dtype)).reshape(shape)


def check_written(cells: list[Any], shape: tuple[int, ...], name: str) -> None:
    """Raise InterpreterError if an output has an element that was never written."""
    for number, cell in enumerate(cells):
        if cell is POISON:
            index = tuple(int(i) for i in np.unravel_index(number, shape)) if shape else ()
            raise InterpreterError(
                f"the output {name}[{', '.join(map(str, index)) or '()'}] was never written"
            )
