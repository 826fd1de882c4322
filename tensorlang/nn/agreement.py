"""What extents must satisfy so that an operator means something, as a condition of the call.

Input:  ``require_equal(a.shape[1], b.shape[0], "matmul: ...")`` while an operator is traced
Output: nothing if both are known to agree; an error if they never do; else a condition on the
        sizes, checked at the call

Generic operators have a size of its own for each axis of each parameter, so what would be one dim
in an annotation must be said.
"""

from __future__ import annotations

from typing import Any

import tensorlang as tl
from tensorlang.dtypes import is_float
from tensorlang.ir.affine import Affine
from tensorlang.ir.definition import Condition
from tensorlang.lang.application import index_form
from tensorlang.lang.mistakes import definition_error
from tensorlang.lang.trace import current


def require_equal(left: Any, right: Any, message: str) -> None:
    """Require that two extents are equal."""
    difference = index_form(left) - index_form(right)
    if not difference.terms and not difference.constant:
        return
    if not difference.terms:
        raise definition_error(message)
    current("require_equal").conditions.append(Condition(difference, message, equality=True))


def require_positive(extent: Any, message: str) -> None:
    """Require that an extent is at least one."""
    form: Affine = index_form(extent) - 1
    if form.terms:
        current("require_positive").conditions.append(Condition(form, message))
    elif form.constant < 0:
        raise definition_error(message)


def axis_position(axis: int, rank: int, operator: str) -> int:
    """Return ``axis`` counted from the front, or raise an error that names the operator."""
    place = axis + rank if axis < 0 else axis
    if not 0 <= place < rank:
        raise definition_error(f"{operator}: axis {axis} does not exist: there are {rank} axes")
    return place


def axis_positions(axis: Any, rank: int, operator: str) -> tuple[int, ...]:
    """Return the axes that ``axis`` names (None: all), counted from the front and in order."""
    if axis is None:
        return tuple(range(rank))
    given = (axis,) if isinstance(axis, int) else tuple(axis)
    places = sorted([axis_position(part, rank, operator) for part in given])
    if len(set(places)) < len(places):
        raise definition_error(f"{operator}: axis {axis} names an axis twice")
    return tuple(places)


def widened(value: Any) -> Any:
    """Return a value in f32 if it is an f16 or bf16, whose sums of squares would overflow."""
    narrow = is_float(value.dtype) and value.dtype.bits < 32
    return tl.cast(value, tl.f32) if narrow else value


def narrowed(value: Any, dtype: Any) -> Any:
    """Return a value rounded to ``dtype`` if that is an f16 or bf16."""
    narrow = is_float(dtype) and dtype.bits < 32
    return tl.cast(value, dtype) if narrow else value


def per_axis(value: Any, count: int, name: str, operator: str, least: int) -> tuple[int, ...]:
    """Return an attribute given as one integer, or as one for each of ``count`` axes."""
    given: Any = (value,) * count if isinstance(value, int) else value
    every = given * count if isinstance(given, tuple) and len(given) == 1 else given  # pyright: ignore
    fits = isinstance(every, tuple) and len(every) == count  # pyright: ignore[reportUnknownArgumentType]
    if not fits or any(not isinstance(part, int) or part < least for part in every):  # pyright: ignore
        several = {1: "one", 2: "two", 3: "three"}.get(count, str(count))
        raise definition_error(
            f"{operator}: {name} must be an integer of at least {least}, or {several} of them, "
            f"not {value!r}"
        )
    return every  # pyright: ignore


def product_of(extents: Any) -> Any:
    """Return how many elements a tensor of these extents has."""
    count: Any = 1
    for extent in extents:
        count = count * extent
    return count
