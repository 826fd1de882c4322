"""The NumPy evaluator of a definition: the oracle of every test.

Input:  a ``Definition``, arrays, scalars and sizes
Output: the value of each output, each stage rounded once to its dtype

A stage is evaluated on all points of its axes at once, in blocks that fit in the cache; a
reduction combines along the last axes; a recurrence goes along its own axis one step at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tensorlang.dtypes import DType, to_numpy
from tensorlang.interpreter import arithmetic
from tensorlang.interpreter.routines import evaluate_routine
from tensorlang.ir.affine import Var, affine, evaluate
from tensorlang.ir.definition import Combiner, Definition, Scalar, Stage, Tensor
from tensorlang.ir.expr import Placeholder, loads_of
from tensorlang.lang.evaluate import Environment, evaluate_expr, evaluate_index, select

Array = Any
Block = tuple[tuple[int, int], ...]
"""A box of points: first and past-last value of each axis."""

_POINTS = 1 << 18
"""How many points are evaluated at once."""


def evaluate_definition(
    definition: Definition,
    arrays: Mapping[Tensor, np.ndarray[Any, Any]],
    scalars: Mapping[Scalar, object],
    sizes: Mapping[Var, int],
) -> tuple[np.ndarray[Any, Any], ...]:
    """Return the outputs of ``definition``.

    ``arrays`` holds one array for each input, of the input's dtype and with the shape that
    ``sizes`` give. Raises IndexError where data-dependent indices leave their tensor.
    """
    known = dict(arrays)
    values = {s: arithmetic.widen(to_numpy(s.dtype).type(v)) for s, v in scalars.items()}
    with np.errstate(all="ignore"):
        for stage in definition.stages:
            _evaluate_stage(stage, known, values, sizes)
    return tuple([known[output] for output in definition.outputs])


def _evaluate_stage(
    stage: Stage,
    arrays: dict[Tensor, np.ndarray[Any, Any]],
    scalars: Mapping[Scalar, Array],
    sizes: Mapping[Var, int],
) -> None:
    if stage.routine is not None:
        arrays[stage.tensor] = evaluate_routine(stage, arrays)
        return
    for tensor in stage.tensors:
        shape = [evaluate(extent, sizes) for extent in tensor.shape]
        arrays[tensor] = np.zeros(shape, to_numpy(tensor.dtype))
    box = tuple([(0, evaluate(axis.extent, sizes)) for axis in stage.axes])
    inner = tuple([(0, evaluate(axis.extent, sizes)) for axis in stage.reduction_axes])
    env = Environment(arrays, dict(sizes), scalars)
    along = _recurrence_axis(stage)
    for block in _blocks(box, max(1, _POINTS // max(1, min(_volume(inner), _POINTS))), along):
        values = _values_on(stage, env, block, inner)
        place = tuple([slice(low, high) for low, high in block])
        for tensor, value in zip(stage.tensors, values, strict=True):
            arrays[tensor][place] = _stored(value, tensor.dtype)


def _stored(value: Array, dtype: DType) -> Array:
    return arithmetic.round_to_storage(np.asarray(value), dtype)


def _recurrence_axis(stage: Stage) -> int | None:
    """Return the axis along which a stage reads its own earlier elements."""
    for load in loads_of(*stage.values):
        if load.tensor in stage.tensors:
            for place, (index, axis) in enumerate(zip(load.indices, stage.axes, strict=True)):
                if index != affine(axis.variable):
                    return place
    return None


def _volume(block: Block) -> int:
    volume = 1
    for low, high in block:
        volume *= high - low
    return volume


def _blocks(block: Block, limit: int, along: int | None = None) -> Iterator[Block]:
    """Yield pieces of ``block`` with at most ``limit`` points; single steps of axis ``along``."""
    if _volume(block) == 0:
        return
    if along is not None and block[along][1] - block[along][0] > 1:
        low, high = block[along]
        for step in range(low, high):
            yield from _blocks(_with(block, along, (step, step + 1)), limit, along)
        return
    if _volume(block) <= limit:
        yield block
        return
    axis = next(place for place, (low, high) in enumerate(block) if high - low > 1)
    low, high = block[axis]
    piece = max(1, (high - low) * limit // _volume(block))
    for start in range(low, high, piece):
        yield from _blocks(_with(block, axis, (start, min(start + piece, high))), limit, along)


def _with(block: Block, axis: int, bounds: tuple[int, int]) -> Block:
    return (*block[:axis], bounds, *block[axis + 1 :])


def _values_on(stage: Stage, env: Environment, block: Block, inner: Block) -> list[Array]:
    """Return the values of a stage's tensors on a block of its axes."""
    if stage.combiner is None:
        local = _on_points(env, stage.variables, block)
        shape = [high - low for low, high in block]
        return [np.broadcast_to(evaluate_expr(value, local), shape) for value in stage.values]
    shape = [high - low for low, high in block]
    start = [evaluate_expr(identity, env) for identity in stage.combiner.identity]
    state: list[Array] = [np.broadcast_to(value, shape) for value in start]
    for piece in _blocks(inner, max(1, _POINTS // max(1, _volume(block)))):
        elements, mask = _elements(stage, env, block + piece, len(block))
        state = _reduced(stage.combiner, state, elements, mask)
    return state


def _on_points(env: Environment, variables: Sequence[Var], block: Block) -> Environment:
    values = dict(env.variables)
    for place, (variable, (low, high)) in enumerate(zip(variables, block, strict=True)):
        shape = [1] * len(block)
        shape[place] = high - low
        values[variable] = np.arange(low, high, dtype=np.int64).reshape(shape)
    return Environment(env.arrays, values, env.scalars)


def _elements(
    stage: Stage, env: Environment, block: Block, outer: int
) -> tuple[list[Array], Array | None]:
    """Return what a reduction combines, its axes last and flattened, and where it does so.

    Outside the predicate the elements are the identity.
    """
    assert stage.combiner is not None
    local = _on_points(env, stage.variables, block)
    mask: Array = np.True_
    for form in stage.predicate:
        mask = mask & (evaluate_index(form, local) >= 0)
    local.mask = mask
    shape = tuple([high - low for low, high in block])
    flat = (*shape[:outer], int(np.prod(shape[outer:], dtype=np.int64)))
    result: list[Array] = []
    for value, identity in zip(stage.values, stage.combiner.identity, strict=True):
        element = evaluate_expr(value, local)
        if stage.predicate:
            element = select(mask, element, evaluate_expr(identity, env))
        result.append(np.broadcast_to(element, shape).reshape(flat))
    return result, np.broadcast_to(mask, shape).reshape(flat) if stage.predicate else None


_UFUNCS: dict[str, Any] = {
    "sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum,
    "all": np.logical_and, "any": np.logical_or,
}  # fmt: skip


def _reduced(
    combiner: Combiner, state: list[Array], elements: list[Array], mask: Array | None
) -> list[Array]:
    """Return ``state`` combined with all elements along their last axis."""
    ufunc = _UFUNCS.get(combiner.name)
    if ufunc is not None and not combiner.ordered:
        (element,), (before,) = elements, state
        return [ufunc(before, ufunc.reduce(element, axis=-1, dtype=element.dtype))]
    if combiner.ordered:
        for step in range(elements[0].shape[-1]):
            new = _combine(combiner, state, [element[..., step] for element in elements])
            if mask is not None:  # the identity of an ordered reduction need not be neutral
                new = [select(mask[..., step], a, b) for a, b in zip(new, state, strict=True)]
            state = new
        return state
    while elements[0].shape[-1] > 1:
        count = elements[0].shape[-1]
        pairs = count // 2
        left = [element[..., :pairs] for element in elements]
        right = [element[..., pairs : 2 * pairs] for element in elements]
        rest = [element[..., 2 * pairs :] for element in elements]
        combined = _combine(combiner, left, right)
        elements = [np.concatenate(parts, axis=-1) for parts in zip(combined, rest, strict=True)]
    return _combine(combiner, state, [element[..., 0] for element in elements])


def _combine(combiner: Combiner, left: list[Array], right: list[Array]) -> list[Array]:
    bound: dict[Placeholder, Array] = {}
    bound.update(zip(combiner.left, left, strict=True))
    bound.update(zip(combiner.right, right, strict=True))
    env = Environment({}, {}, placeholders=bound)
    shape = np.broadcast_shapes(*[np.shape(part) for part in (*left, *right)])
    return [np.broadcast_to(evaluate_expr(result, env), shape) for result in combiner.result]
