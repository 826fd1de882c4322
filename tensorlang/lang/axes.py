"""Axes of comprehensions: iterating a size, ``tl.range``, ``tl.grid``, and tuples of axes.

Input:  ``for j in tl.range(0, i + 1)`` with i < M
Output: an axis j < M with the predicate ``i - j >= 0``

The extent of an axis depends on sizes alone and is never negative for bounds of ``tl.range``;
what the bounds say beyond that is a predicate.
"""

from __future__ import annotations

import opcode
import sys
from collections.abc import Iterable, Iterator
from types import FrameType
from typing import Any, TypeVar

from tensorlang.ir.affine import ZERO, Affine, from_terms, variables_of
from tensorlang.ir.interval import bounds, is_nonnegative
from tensorlang.lang.application import index_form, is_index_like
from tensorlang.lang.mistakes import definition_error
from tensorlang.lang.trace import Scope, SecondPointError, Trace, TracedAxis, active, python_loop
from tensorlang.lang.values import Index

T = TypeVar("T")


class AxisIterator(Iterator[Any]):
    """Yields one symbolic point, then refuses: Python must not iterate a size itself."""

    __slots__ = ("_high", "_is_extent", "_low", "_scope")

    def __init__(self, low: Affine, high: Affine, is_extent: bool = True) -> None:
        self._low = low
        self._high = high
        self._is_extent = is_extent
        self._scope: Scope | None = None

    def __next__(self) -> Any:
        return self._step(sys._getframe(1))  # pyright: ignore[reportPrivateUsage]

    def _step(self, caller: FrameType) -> Any:
        trace = _enter(self._high - self._low, self._scope, caller)
        self._scope = trace.scopes[-1]
        return _make_axis(trace, self._low, self._high, self._is_extent).shown


class GridIterator(Iterator[Any]):
    """Yields one tuple of axes."""

    __slots__ = ("_scope", "_shape")

    def __init__(self, shape: tuple[Affine, ...]) -> None:
        self._shape = shape
        self._scope: Scope | None = None

    def __next__(self) -> Any:
        caller = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
        trace = _enter(self._shape[0] if self._shape else ZERO, self._scope, caller)
        self._scope = trace.scopes[-1]
        self._scope.has_grid = True
        return IndexTuple([_make_axis(trace, ZERO, extent, True).shown for extent in self._shape])


def _enter(extent: Affine, scope: Scope | None, caller: FrameType) -> Trace:
    """Return the trace, unless the loop has run already or runs outside any comprehension."""
    trace = active()
    if trace is None or not trace.scopes:
        raise python_loop(extent, caller)
    open_scope = trace.scopes[-1]
    if scope is not None:
        if open_scope.probing or caller is open_scope.frame:
            raise StopIteration
        raise python_loop(extent, caller)
    if open_scope.probing:
        raise SecondPointError
    return trace


def _make_axis(trace: Trace, low: Affine, high: Affine, is_extent: bool) -> TracedAxis:
    """Add an axis to the open comprehension.

    An extent must not be negative at the call. Two bounds in a reduction mean what they mean in
    Python: no points unless ``low < high``.
    """
    is_extent = is_extent or trace.scopes[-1].reader in ("tl.tensor", "tl.scan")
    inner = {axis.axis.variable: axis.axis.extent for axis in trace.open_axes()}
    for form in (low, high):
        trace.check_sizes(form)
    if variables_of(low).isdisjoint(inner) and variables_of(high).isdisjoint(inner):
        extent = high - low
        if is_extent or is_nonnegative(extent):
            return trace.new_axis(extent, low)
    lowest, highest = bounds(low, inner), bounds(high, inner)
    if lowest is None or highest is None:
        raise definition_error(
            f"the bounds of tl.range({Index(low)}, {Index(high)}) must be affine in the outer axes"
        )
    base, end = lowest[0], highest[1]
    if not is_nonnegative(end - base):
        base, end = _below(base), _above(end)
    axis = trace.new_axis(end - base, base)
    position = axis.shown.affine
    needed = (position - low, high - 1 - position)
    inner[axis.axis.variable] = axis.axis.extent
    predicate = tuple([form for form in needed if not is_nonnegative(form, inner)])
    axis = TracedAxis(axis.axis, axis.shown, predicate)
    trace.scopes[-1].axes[-1] = axis
    return axis


def _above(form: Affine) -> Affine:
    """Return a form that is >= ``form`` and >= 0 whatever the sizes are."""
    return from_terms(max(form.constant, 0), tuple([(a, c) for a, c in form.terms if c > 0]))


def _below(form: Affine) -> Affine:
    return -_above(-form)


def iterate_extent(extent: Affine, caller: FrameType) -> Iterator[Any]:
    """Return the iterator of an axis from 0 to ``extent`` - 1, for a ``for`` of ``caller``."""
    _check_iterated_by_for(extent, caller)
    return AxisIterator(ZERO, extent)


def _check_iterated_by_for(extent: Affine, caller: FrameType) -> None:
    """Refuse ``zip(M, N)`` and ``enumerate(M)``, which would meet one point of each loop only."""
    if caller.f_lasti < 0:
        return
    instruction = opcode.opname[caller.f_code.co_code[caller.f_lasti]]
    if instruction.startswith(("CALL", "PRECALL", "UNPACK", "LIST_EXTEND", "SET_UPDATE")):
        raise python_loop(extent, caller)


class Range:
    """What ``tl.range`` returns: iterable inside a comprehension."""

    __slots__ = ("_high", "_is_extent", "_low")

    def __init__(self, low: Affine, high: Affine, is_extent: bool) -> None:
        self._low = low
        self._high = high
        self._is_extent = is_extent

    def __iter__(self) -> Iterator[Any]:
        _check_iterated_by_for(self._high - self._low, sys._getframe(1))  # pyright: ignore
        return AxisIterator(self._low, self._high, self._is_extent)

    def __repr__(self) -> str:
        return f"tl.range({self._low}, {self._high})"


def range(low: object, high: object = None) -> Range:
    """Return an axis from ``low`` (0 if only one bound is given) to ``high`` - 1.

    Parameters
    ----------
    low, high
        Integers, dims, or forms over dims and outer axes. A lower bound, and bounds that depend
        on outer axes, are for reductions, which visit no point unless ``low < high``; an axis of
        ``tl.tensor`` starts at 0, and one bound alone is an extent, which must not be negative.

    Raises
    ------
    DefinitionError
        If a bound is not an integer or an index expression.

    Examples
    --------
    >>> import tensorlang as tl
    >>> N = tl.dim("N")
    >>> @tl.compute
    ... def running_total(x: tl.f32[N]):
    ...     return tl.tensor(tl.sum(x[j] for j in tl.range(0, i + 1)) for i in N)

    """
    is_extent = high is None
    if high is None:
        low, high = 0, low
    for bound in (low, high):
        if not is_index_like(bound):
            raise definition_error(
                f"a bound of tl.range must be an integer, a dim or an index expression, not {bound}"
            )
    return Range(index_form(low), index_form(high), is_extent)


def _position(axis: int, count: int) -> int:
    place = axis + count if axis < 0 else axis
    if not 0 <= place < count:
        raise definition_error(f"axis {axis} does not exist: there are {count} axes")
    return place


class _Editable(tuple[Any, ...]):
    """A tuple with the three edits that code for any rank needs; negative axes count back."""

    __slots__ = ()

    def insert(self, axis: int, value: Any) -> Any:
        """Return the tuple with ``value`` as its new element ``axis``."""
        place = _position(axis, len(self) + 1)
        return type(self)((*self[:place], value, *self[place:]))

    def replace(self, axis: int, value: Any) -> Any:
        """Return the tuple with element ``axis`` replaced."""
        place = _position(axis, len(self))
        return type(self)((*self[:place], value, *self[place + 1 :]))

    def drop(self, axis: int) -> Any:
        """Return the tuple without element ``axis``."""
        place = _position(axis, len(self))
        return type(self)((*self[:place], *self[place + 1 :]))


class IndexTuple(_Editable):
    """One point of a grid: a tuple of axes that indexes a tensor, ``x[i]``."""

    __slots__ = ()


class Shape(_Editable):
    """The extents of a tensor; each can be iterated, and integers compare as such."""

    __slots__ = ()


class Grid:
    """What ``tl.grid`` returns: iterable inside a comprehension."""

    __slots__ = ("_shape",)

    def __init__(self, shape: tuple[Affine, ...]) -> None:
        self._shape = shape

    def __iter__(self) -> Iterator[Any]:
        extent = self._shape[0] if self._shape else ZERO
        _check_iterated_by_for(extent, sys._getframe(1))  # pyright: ignore
        return GridIterator(self._shape)


def grid(shape: Iterable[object]) -> Grid:
    """Return a loop over all points of ``shape``; its variable is one index, a tuple of axes.

    Parameters
    ----------
    shape
        Integers, dims or expressions over them, such as ``x.shape``. ``()`` has one point.

    Examples
    --------
    >>> import tensorlang as tl
    >>> @tl.compute
    ... def double(x):
    ...     return tl.tensor(2 * x[i] for i in tl.grid(x.shape))

    """
    extents = tuple(shape)
    for extent in extents:
        if not is_index_like(extent):
            raise definition_error(f"an extent of tl.grid must be an integer or a dim: {extent}")
    return Grid(tuple([index_form(extent) for extent in extents]))
