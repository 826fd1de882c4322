"""What extents must satisfy so that an operator means something, as a condition of the call.

Input:  ``require_equal(a.shape[1], b.shape[0], "matmul: ...")`` while an operator is traced
Output: nothing if both are known to agree; an error if they never do; else a condition on the
        sizes, checked at the call

Generic operators have a size of its own for each axis of each parameter, so what would be one dim
in an annotation must be said.
"""

from __future__ import annotations

from typing import Any

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
