"""``tl.sort``, ``tl.argsort`` and ``tl.topk``: elements of a tensor in order, along one axis.

Input:  ``tl.sort(x, axis=1)`` with x of shape (M, N)
Output: a stage of the positions, ``P[i, j] = order(x[i, :])[j]``, and ``S[i, j] = x[i, P[i, j]]``

All three are built on one routine, the order; what they return besides is gathered with it.
"""

from __future__ import annotations

from typing import Any

from tensorlang.dtypes import evaluation_dtype, i64
from tensorlang.ir.affine import Affine, Var, affine
from tensorlang.ir.definition import Axis, Order, Stage, Tensor
from tensorlang.ir.expr import Expr, Load, value_atom
from tensorlang.ir.routines import order_stage_operand
from tensorlang.lang.application import index_form, is_index_like
from tensorlang.lang.conversion import convert
from tensorlang.lang.mistakes import definition_error
from tensorlang.lang.stages import add_map
from tensorlang.lang.tensor import TensorHandle
from tensorlang.lang.trace import Trace, current
from tensorlang.lang.values import Value
from tensorlang.source import SourceLocation, user_location


def argsort(x: Any, *, axis: int = -1, descending: bool = False) -> TensorHandle:
    """Return the positions that sort a tensor along an axis, as i64.

    The order is stable: equal elements (0.0 and -0.0 are equal) stay as they stand, descending
    too. NaN counts as greater than every number: it comes last, or first if ``descending``.

    Parameters
    ----------
    x
        A tensor with at least one axis, of any dtype.
    axis
        The axis along which to sort; negative ones count from the last.
    descending
        The greatest element first.

    Returns
    -------
    A tensor of the shape of ``x``, dtype i64.

    Raises
    ------
    DefinitionError
        If ``x`` is no tensor, or has no such axis.

    Examples
    --------
    >>> import numpy as np, tensorlang as tl
    >>> N = tl.dim("N")
    >>> @tl.compute
    ... def places(x: tl.f32[N]):
    ...     return tl.argsort(x)
    >>> places.reference(np.array([3, 1, 2], np.float32))
    array([1, 2, 0])

    """
    trace, place = _checked(x, axis, "tl.argsort")
    return _add_order(trace, x.tensor, place, descending, user_location())


def sort(x: Any, *, axis: int = -1, descending: bool = False) -> TensorHandle:
    """Return a tensor sorted along an axis; ties, NaN and errors are those of ``argsort``.

    Examples
    --------
    >>> import numpy as np, tensorlang as tl
    >>> M, N = tl.dims("M N")
    >>> @tl.compute
    ... def sorted_rows(x: tl.f32[M, N]):
    ...     return tl.sort(x, descending=True)
    >>> sorted_rows.reference(np.array([[1, 3, 2]], np.float32))
    array([[3., 2., 1.]], dtype=float32)

    """
    trace, place = _checked(x, axis, "tl.sort")
    location = user_location()
    positions = _add_order(trace, x.tensor, place, descending, location)
    result = _gathered(trace, x.tensor, positions.tensor, place, x.tensor.shape, location)
    trace.derived_names[positions.tensor] = (result.tensor, "order")
    return result


def topk(
    x: Any, k: Any, *, axis: int = -1, largest: bool = True
) -> tuple[TensorHandle, TensorHandle]:
    """Return the ``k`` greatest elements along an axis, greatest first, and their positions.

    ``k`` is an integer or a size; at the call, ValueError if the axis has fewer elements. With
    ``largest=False``, the least elements, least first. Of equal ones the earlier comes first; NaN
    counts as greater than every number. Errors are those of ``argsort``.

    Returns
    -------
    Values (of the dtype of ``x``) and positions (i64), both with extent ``k`` along the axis.

    Examples
    --------
    >>> import numpy as np, tensorlang as tl
    >>> N = tl.dim("N")
    >>> @tl.compute
    ... def best_two(x: tl.f32[N]):
    ...     return tl.topk(x, 2)
    >>> best_two.reference(np.array([3, 1, 4], np.float32))
    (array([4., 3.], dtype=float32), array([2, 0]))

    """
    trace, place = _checked(x, axis, "tl.topk")
    if not is_index_like(k):
        raise definition_error(f"k of tl.topk must be an integer or a size, not {k!r}")
    count = index_form(k)
    if count.is_constant and count.constant < 0:
        raise definition_error(f"k of tl.topk is {count}; it must not be negative")
    trace.check_sizes(count)
    location = user_location()
    order = _add_order(trace, x.tensor, place, largest, location)
    shape = (*x.tensor.shape[:place], count, *x.tensor.shape[place + 1 :])
    axes = _axes_over(shape)
    first = Value(Load(order.tensor, _variables(axes)), i64)
    positions = add_map(trace, axes, (first,), location)[0]
    values = _gathered(trace, x.tensor, positions.tensor, place, shape, location)
    trace.derived_names[order.tensor] = (positions.tensor, "order")
    trace.derived_names[positions.tensor] = (values.tensor, "positions")
    return values, positions


def _checked(x: Any, axis: object, reader: str) -> tuple[Trace, int]:
    """Return the trace and the axis, counted from the first."""
    trace = current(reader)
    if not isinstance(x, TensorHandle):
        raise definition_error(
            f"{reader} takes a tensor, not {x!r}; make one first: t = tl.tensor(... for i in N)"
        )
    if x.trace is not trace:
        raise definition_error(f"{x} belongs to another operator; pass it as a parameter instead")
    if trace.scopes:
        raise definition_error(
            f"{reader} stands inside a comprehension; make a tensor of it before: t = {reader}(...)"
        )
    if not isinstance(axis, int) or isinstance(axis, bool) or not -x.ndim <= axis < x.ndim:
        raise definition_error(f"{x} has {x.ndim} axes; {reader} cannot run along axis {axis!r}")
    return trace, axis % x.ndim


def _add_order(
    trace: Trace, source: Tensor, axis: int, descending: bool, location: SourceLocation
) -> TensorHandle:
    trace.note_locals()
    axes = _axes_over(source.shape)
    tensor = Tensor("?", source.shape, i64)
    operand = order_stage_operand(source, axes, axis)
    routine = Order(axis, bool(descending))
    trace.stages.append(Stage((tensor,), axes, (operand,), location=location, routine=routine))
    return TensorHandle(tensor, trace)


def _gathered(
    trace: Trace,
    source: Tensor,
    positions: Tensor,
    axis: int,
    shape: tuple[Affine, ...],
    location: SourceLocation,
) -> TensorHandle:
    """Return the elements of ``source`` at ``positions`` along an axis."""
    axes = _axes_over(shape)
    indices = list(_variables(axes))
    indices[axis] = affine(value_atom(Load(positions, _variables(axes))))
    load = Load(source, tuple(indices))
    trace.load_places[id(load)] = (load, location)
    value: Expr = convert(load, evaluation_dtype(source.dtype))
    return add_map(trace, axes, (Value(value, source.dtype),), location)[0]


def _axes_over(shape: tuple[Affine, ...]) -> tuple[Axis, ...]:
    names = "ijlmnpqr" if len(shape) <= 8 else ""
    return tuple(
        [
            Axis(Var(names[axis] if names else f"i{axis}"), extent)
            for axis, extent in enumerate(shape)
        ]
    )


def _variables(axes: tuple[Axis, ...]) -> tuple[Affine, ...]:
    return tuple([affine(axis.variable) for axis in axes])
