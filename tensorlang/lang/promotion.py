"""The dtype of an expression from those of its operands: NumPy 2's rules, with weak operands.

Input:  ``i32`` and ``f32``         Output: ``f64``
Input:  ``f32`` and a weak index    Output: ``f32``

Weak are Python literals (they adapt to the other operand) and everything that is made of axes and
sizes alone (i64 beside integers, but adapting beside floats, so that ``total / N`` stays f32).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

import numpy as np

from tensorlang.dtypes import (
    DType,
    bf16,
    bool_,
    f16,
    f32,
    f64,
    from_numpy,
    i64,
    is_float,
    to_numpy,
)


@cache
def promote(left: DType, right: DType) -> DType:
    """Return the dtype in which two strong operands meet."""
    if left is right:
        return left
    if bf16 in (left, right):
        other = right if left is bf16 else left
        if other is f16:
            return f32
        return other if other in (f32, f64) else bf16
    result = from_numpy(np.promote_types(to_numpy(left), to_numpy(right)))
    assert result is not None
    return result


@dataclass(frozen=True, slots=True)
class Operands:
    """What is known of a call's operands: strong dtypes, and which kinds of weak ones there are."""

    strong: tuple[DType, ...]
    weak_float: bool = False
    weak_index: bool = False
    literal_int: bool = False


def result_type(operands: Operands) -> tuple[DType, bool]:
    """Return the common dtype of the operands, and whether the result is weak itself."""
    if not operands.strong:
        return (f64 if operands.weak_float else i64), True
    dtype = promote_all(operands.strong)
    if is_float(dtype):
        return dtype, False
    if operands.weak_float:
        return f64, False
    if operands.weak_index or (operands.literal_int and dtype is bool_):
        return promote(dtype, i64), False
    return dtype, False


def promote_all(dtypes: Iterable[DType]) -> DType:
    """Return the dtype in which all of ``dtypes`` meet."""
    first, *others = dtypes
    for other in others:
        first = promote(first, other)
    return first
