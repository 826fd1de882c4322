"""The interpreter's entries: run a program of either grammar on NumPy arrays.

Input:  ``run_program(program, {A: a, B: b}, {M: 3, N: 5, K: 4})``
Output: ``{C: array of shape (3, 5)}``

The program becomes one Python function, made for the sizes at hand and run once.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tensorlang.interpreter import failures
from tensorlang.interpreter.context import Context, Place, Storage
from tensorlang.interpreter.failures import POISON, InterpreterError
from tensorlang.interpreter.forms import divide
from tensorlang.interpreter.statements import write_stmt
from tensorlang.interpreter.storage import (
    array_of,
    cells_of,
    check_input,
    check_written,
    flat_cells_of,
)
from tensorlang.interpreter.threads import block_of
from tensorlang.interpreter.writer import Writer
from tensorlang.ir.affine import Var, evaluate
from tensorlang.ir.definition import Condition, Scalar, Tensor
from tensorlang.ir.lowered import Buffer, LoweredProgram
from tensorlang.ir.program import Program

Array = NDArray[Any]


def run_program(
    program: Program,
    inputs: Mapping[Tensor, Array],
    sizes: Mapping[Var, int],
    scalars: Mapping[Scalar, Any] | None = None,
    *,
    seed: int = 0,
    detect_races: bool = True,
) -> dict[Tensor, Array]:
    """Execute a scheduled program whose inits are placed; return its outputs.

    ``seed`` orders the iterations of parallel loops. Without ``detect_races``, a conflict between
    iterations shows only in the results. Raises InterpreterError for everything that a program
    must not do, ValueError for sizes that break a condition, IndexError for an index taken from
    data that leaves its tensor.
    """
    definition = program.definition
    _check_sizes(definition.sizes, sizes)
    _check_conditions(definition.conditions + program.conditions, sizes)
    context = _context(sizes, dict(scalars or {}), seed, detect_races)
    for tensor in definition.inputs:
        array = inputs[tensor]
        check_input(tensor.name, array, tensor.dtype)
        shape = _shape(tensor, sizes)
        if array.shape != shape:
            raise ValueError(f"{tensor.name} must have shape {shape}, not {array.shape}")
        _add_storage(context, tensor, cells_of(array), shape, is_input=True)
    outputs: dict[Tensor, list[Any]] = {}
    for tensor in definition.outputs:
        shape = _shape(tensor, sizes)
        outputs[tensor] = [POISON] * int(np.prod(shape, dtype=np.int64))
        _add_storage(context, tensor, outputs[tensor], shape)
    with block_of(context, program.body):
        write_stmt(context, program.body)
    _execute(context)
    results: dict[Tensor, Array] = {}
    for tensor, cells in outputs.items():
        shape = _shape(tensor, sizes)
        check_written(cells, shape, tensor.name)
        results[tensor] = array_of(cells, shape, tensor.dtype)
    return results


def run_lowered(
    program: LoweredProgram,
    inputs: Sequence[Array],
    scalars: Sequence[Any],
    sizes: Sequence[int],
    output_shapes: Sequence[tuple[int, ...]] | None = None,
    *,
    seed: int = 0,
    detect_races: bool = True,
) -> list[Array]:
    """Execute a lowered program; return its outputs, in ``output_shapes`` or else flat.

    ``sizes`` are the values of ``program.sizes``, strides included; a strided input is read as it
    lies in memory, from its first element on. Errors are those of :func:`run_program`.
    """
    values = dict(zip(program.sizes, sizes, strict=True))
    _check_conditions(program.conditions, values)
    context = _context(values, dict(zip(program.scalars, scalars, strict=True)), seed, detect_races)
    context.check_sites = program.check_sites
    for buffer, array in zip(program.inputs, inputs, strict=True):
        check_input(buffer.name, array, buffer.dtype)
        size = _size(buffer, values)
        _add_storage(context, buffer, flat_cells_of(array, size), (size,), is_input=True)
    outputs: list[list[Any]] = []
    for buffer in program.outputs:
        size = _size(buffer, values)
        outputs.append([POISON] * size)
        _add_storage(context, buffer, outputs[-1], (size,))
    with block_of(context, program.body):
        write_stmt(context, program.body)
    _execute(context)
    shapes = output_shapes or [(len(cells),) for cells in outputs]
    results: list[Array] = []
    for buffer, cells, shape in zip(program.outputs, outputs, shapes, strict=True):
        check_written(cells, (len(cells),), buffer.name)
        results.append(array_of(cells, shape, buffer.dtype))
    return results


def _context(
    sizes: Mapping[Var, int], scalars: Mapping[Scalar, object], seed: int, detect_races: bool
) -> Context:
    writer = Writer()
    writer.namespace |= {
        "POISON": POISON,
        "divide": divide,
        "shuffled": _shuffled(seed),
        "unwritten": failures.unwritten,
        "outside": failures.outside,
        "race": failures.race,
        "thread_race": failures.thread_race,
        "failed_check": failures.failed_check,
    }
    names = {variable: _literal(value) for variable, value in sizes.items()}
    return Context(writer, names, sizes, scalars, detect_races)


def _literal(value: int) -> str:
    return str(int(value)) if value >= 0 else f"({int(value)})"


def _shuffled(seed: int) -> Callable[[int], list[int]]:
    generator = random.Random(seed)
    return lambda count: generator.sample(range(count), max(count, 0))


def _add_storage(
    context: Context,
    place: Place,
    cells: list[Any],
    shape: tuple[int, ...],
    is_input: bool = False,
) -> None:
    name = context.writer.constant(cells, "cells")
    extents = tuple(map(str, shape))
    origin = ("0",) * len(shape)
    context.storages[place] = Storage(
        place.name, place.dtype, name, origin, extents, 0, is_input=is_input
    )


def _execute(context: Context) -> None:
    run = context.writer.compile()
    with np.errstate(all="ignore"):
        run()


def _shape(tensor: Tensor, sizes: Mapping[Var, int]) -> tuple[int, ...]:
    shape = tuple([evaluate(form, sizes) for form in tensor.shape])
    for extent, form in zip(shape, tensor.shape, strict=True):
        if extent < 0:
            raise ValueError(f"{tensor.name} would have the negative extent {form} = {extent}")
    return shape


def _size(buffer: Buffer, sizes: Mapping[Var, int]) -> int:
    size = evaluate(buffer.size, sizes)
    if size < 0:
        raise ValueError(f"{buffer.name} would have the negative size {buffer.size} = {size}")
    return size


def _check_sizes(variables: tuple[Var, ...], sizes: Mapping[Var, int]) -> None:
    for variable in variables:
        if variable not in sizes:
            raise InterpreterError(f"the size {variable} was not given a value")


def _check_conditions(conditions: tuple[Condition, ...], sizes: Mapping[Var, int]) -> None:
    for condition in conditions:
        value = evaluate(condition.form, sizes)
        if value < 0 or (condition.equality and value != 0):
            raise ValueError(condition.message)
