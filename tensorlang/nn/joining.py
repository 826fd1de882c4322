"""Several tensors in one, and back: concat, stack, split, chunk.

Input:  ``concat((a, b), axis=1)`` with ``a: [M, N]``, ``b: [M, K]``
Output: ``[M, N + K]``

An operator has a fixed number of parameters, so there is one for each number of tensors, made when
it is first needed.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from functools import cache
from typing import Any

import tensorlang as tl
from tensorlang.lang.application import index_form, is_index_like
from tensorlang.lang.compute import Operator
from tensorlang.lang.mistakes import definition_error
from tensorlang.nn.agreement import axis_position, require_equal
from tensorlang.nn.shapes import Slice, take_slice

PUBLIC = ("chunk", "concat", "split", "stack")


def concat(tensors: Sequence[Any], *, axis: int = 0, **options: Any) -> Any:
    """Return tensors one after the other along ``axis``; their other extents are equal.

    Examples
    --------
    >>> import numpy as np, tensorlang as tl
    >>> tl.nn.concat((np.array([1.0]), np.array([2.0, 3.0])))
    array([1., 2., 3.])

    """
    return concat_of(_count(tensors, "concat"))(*tensors, axis=axis, **options)


def stack(tensors: Sequence[Any], *, axis: int = 0, **options: Any) -> Any:
    """Return tensors of one shape along a new axis, number ``axis`` of the result.

    Examples
    --------
    >>> import numpy as np, tensorlang as tl
    >>> tl.nn.stack((np.array([1.0, 2.0]), np.array([3.0, 4.0])), axis=1)
    array([[1., 3.],
           [2., 4.]])

    """
    return stack_of(_count(tensors, "stack"))(*tensors, axis=axis, **options)


def split(x: Any, sizes: int | Sequence[int], *, axis: int = 0) -> tuple[Any, ...]:
    """Return parts of ``x`` along ``axis``: of ``sizes``, or of one size, the last one smaller.

    With one size for all, the extent must be known, since the number of parts depends on it.

    Raises
    ------
    DefinitionError
        If the sizes do not add up to an extent that is known.

    Examples
    --------
    >>> import numpy as np, tensorlang as tl
    >>> tl.nn.split(np.arange(5.0), 3)
    (array([0., 1., 2.]), array([3., 4.]))

    """
    place = axis_position(axis, len(x.shape), "split")
    extent = _known(x.shape[place])
    if isinstance(sizes, int):
        if extent is None or sizes < 1:
            raise definition_error(
                "split: one size for all parts is at least 1, and needs a known extent: give the "
                "size of each part"
            )
        parts = [min(sizes, extent - start) for start in range(0, max(extent, 1), sizes)]
    else:
        parts = list(sizes)
    if any(part < 0 for part in parts) or (extent is not None and sum(parts) != extent):
        raise definition_error(f"split: the parts {parts} do not add up to axis {axis}, {extent}")
    result: list[Any] = []
    start = 0
    for part in parts:
        result.append(_part(x, place, start, start + part))
        start += part
    return tuple(result)


def chunk(x: Any, chunks: int, *, axis: int = 0) -> tuple[Any, ...]:
    """Return at most ``chunks`` parts of ``x`` along ``axis``, of equal size but for the last.

    The extent must be known (see ``split``).
    """
    extent = _known(x.shape[axis_position(axis, len(x.shape), "chunk")])
    if extent is None or chunks < 1:
        raise definition_error("chunk: there is at least 1 part, and the extent must be known")
    if not extent:
        return split(x, [0] * chunks, axis=axis)
    return split(x, -(-extent // chunks), axis=axis)


@cache
def concat_of(count: int) -> Operator:
    """Return the operator that concatenates ``count`` tensors."""

    def join(*tensors: Any, axis: int = 0):
        first = tensors[0]
        place = axis_position(axis, first.ndim, "concat")
        starts: list[Any] = [0]
        for tensor in tensors:
            _check_others("concat", first, tensor, place)
            starts.append(starts[-1] + tensor.shape[place])

        def chosen(i: Any) -> Any:
            value = tensors[-1][i.replace(place, i[place] - starts[-2])]
            for tensor, start, end in zip(
                tensors[-2::-1], starts[-3::-1], starts[-2::-1], strict=False
            ):
                element = tensor[i.replace(place, i[place] - start)]
                value = tl.where(i[place] < end, element, value)
            return value

        return tl.tensor(chosen(i) for i in tl.grid(first.shape.replace(place, starts[-1])))

    return _operator(join, "concat", count)


@cache
def stack_of(count: int) -> Operator:
    """Return the operator that stacks ``count`` tensors."""

    def join(*tensors: Any, axis: int = 0):
        first = tensors[0]
        place = axis_position(axis, first.ndim + 1, "stack")
        for tensor in tensors:
            _check_others("stack", first, tensor, None)

        def chosen(i: Any) -> Any:
            value = tensors[-1][i.drop(place)]
            for number in reversed(range(count - 1)):
                value = tl.where(i[place] == number, tensors[number][i.drop(place)], value)
            return value

        return tl.tensor(chosen(i) for i in tl.grid(first.shape.insert(place, count)))

    return _operator(join, "stack", count)


def _operator(join: Any, name: str, count: int) -> Operator:
    """Return a function of any number of tensors as an operator of ``count`` of them."""
    kinds = inspect.Parameter
    tensors = [kinds(f"x{n}", kinds.POSITIONAL_OR_KEYWORD) for n in range(count)]
    axis = kinds("axis", kinds.KEYWORD_ONLY, default=0)
    join.__signature__ = inspect.Signature([*tensors, axis])
    join.__name__ = join.__qualname__ = name
    return tl.compute(join)


def _count(tensors: Sequence[Any], operator: str) -> int:
    if not isinstance(tensors, tuple | list) or not tensors:
        raise definition_error(f"{operator} takes a list or tuple of at least one tensor")
    return len(tensors)


def _check_others(operator: str, first: Any, other: Any, place: int | None) -> None:
    if other.ndim != first.ndim or other.dtype is not first.dtype:
        raise definition_error(f"{operator}: the tensors have the same rank and dtype")
    for axis, (a, b) in enumerate(zip(first.shape, other.shape, strict=True)):
        if axis != place:
            require_equal(a, b, f"{operator}: axis {axis} of all tensors must be equal")


def _known(extent: Any) -> int | None:
    form = index_form(extent) if is_index_like(extent) else None
    return form.constant if form is not None and not form.terms else None


def _part(x: Any, place: int, start: int, stop: int) -> Any:
    slices: list[Slice] = [(None, None, None)] * len(x.shape)
    slices[place] = (start, stop, None)
    return take_slice(x, slices=tuple(slices))
