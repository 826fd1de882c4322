"""What the user's operators act on while an operator is traced: index and value expressions.

Input:  ``A[i, k] * 2 + i``     Output: a ``Value`` around the IR expression of that name

Two kinds exist. An ``Index`` is a quasi-affine form over axes and sizes (``y * stride + r``); it
stays one under ``+ - * // %``, minimum and maximum, and can be iterated when it depends on sizes
alone. A ``Value`` is anything else, with the dtype that the user sees: an expression of f16 is
computed in f32, so the expression inside has dtype f32 while ``Value.dtype`` is f16.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any, TypeAlias, cast

import numpy as np

from tensorlang.dtypes import DType, i64
from tensorlang.ir import affine as forms
from tensorlang.ir.affine import Affine
from tensorlang.ir.expr import Expr, IndexValue, Load, loads_of
from tensorlang.ir.printer import format_expr
from tensorlang.lang.expression import Expression
from tensorlang.lang.mistakes import definition_error, no_truth_value

Literal: TypeAlias = int | float

INTEGERS = cast("tuple[type[int], ...]", (int, np.integer))
BOOLS = cast("tuple[type[bool], ...]", (bool, np.bool_))
NUMPY_SCALARS = cast("tuple[type[Any], ...]", (np.generic,))
"""Python's and NumPy's scalars; for a type checker each NumPy scalar is the Python one."""


class Index(Expression):
    """A quasi-affine form over axes and sizes; iterable when it depends on sizes alone."""

    __slots__ = ("affine",)

    def __init__(self, index: forms.AffineLike) -> None:
        self.affine: Affine = forms.affine(index)
        _check_reach(self.affine)

    def as_value(self) -> Value:
        """Return the index as an i64 that adapts to floats."""
        return Value(IndexValue(self.affine, i64), i64, weak=True)

    @property
    def dtype(self) -> DType:
        """The dtype of an index that is used as a value: i64."""
        return i64

    def __hash__(self) -> int:
        return hash(self.affine)

    def __index__(self) -> int:
        if self.affine.is_constant:
            return self.affine.constant
        return super().__index__()

    __int__ = __index__

    def __iter__(self) -> Iterator[Any]:
        from tensorlang.lang.axes import iterate_extent

        return iterate_extent(self.affine, sys._getframe(1))  # pyright: ignore

    def __repr__(self) -> str:
        _name_axes()
        return str(self.affine)


_LARGEST_CONSTANT = 2**61
_LARGEST_COEFFICIENT = 2**31


def _check_reach(index: Affine) -> None:
    """Refuse an index form that could leave i64, in which forms are computed without wrapping.

    With coefficients below 2**31, constants below 2**61 and sizes below 2**31 neither a form nor
    the difference of two, which a comparison computes, does.
    """
    for _, coefficient in index.terms:
        if abs(coefficient) > _LARGEST_COEFFICIENT:
            raise _out_of_reach(coefficient)
    if abs(index.constant) > _LARGEST_CONSTANT:
        raise _out_of_reach(index.constant)


def _out_of_reach(number: int) -> Exception:
    return definition_error(
        f"an index expression holds {number}; indices are exact integers far inside i64. Compute "
        "with a value, which wraps as integers do: tl.cast(i, tl.i64)"
    )


class Value(Expression):
    """A value expression; ``weak`` if it is made of axes, sizes and literals alone.

    ``truth`` is the answer to a comparison of sizes as Python sees it (see ``compare_indices``).
    """

    __slots__ = ("_expr", "dtype", "truth", "weak")

    def __init__(
        self, expr: Expr | None, dtype: DType, weak: bool = False, truth: bool | None = None
    ) -> None:
        self._expr = expr
        self.dtype = dtype
        self.weak = weak
        self.truth = truth

    @property
    def expr(self) -> Expr:
        """The IR expression, of dtype ``evaluation_dtype(dtype)``."""
        assert self._expr is not None
        return self._expr

    @property
    def loads(self) -> tuple[Load, ...]:
        """The loads in the expression; none for a reduction that has no stage yet."""
        return () if self._expr is None else loads_of(self._expr)

    def as_value(self) -> Value:
        """Return the value itself."""
        return self

    @property
    def shape(self) -> tuple[()]:
        """A value has no axes."""
        return ()

    def __bool__(self) -> bool:
        if self.truth is None:
            raise no_truth_value()
        return self.truth

    __hash__ = Expression.__hash__

    def __iter__(self) -> Iterator[Any]:
        raise definition_error(
            f"{self} ({self.dtype.name}) is iterated; a loop runs over a size, which is made of "
            "dims and integers with + - * // %"
        )

    def __repr__(self) -> str:
        _name_axes()
        return format_expr(self.expr)


def _name_axes() -> None:
    """Give axes the names of their loop variables, before they are shown in a message."""
    from tensorlang.lang.trace import active

    trace = active()
    if trace is not None:
        trace.name_open_axes()
