"""``tl.scan``: running combinations along one axis, as a stage that reads its own tensor.

Input:  ``tl.tensor(tl.scan(add, 0, (X[i, j] for j in N)) for i in M)``
Output: ``S[i, j] = where(j > 0, S[i, j - 1] + X[i, j], 0 + X[i, j])``

A reverse scan is the same over the flipped axis, followed by a stage that flips the result.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any

from tensorlang.dtypes import DType, bool_, evaluation_dtype, i64
from tensorlang.ir.affine import Affine, affine
from tensorlang.ir.definition import Axis, Combiner, Stage, Tensor
from tensorlang.ir.expr import Call, Const, Expr, IndexValue, Load, Placeholder, Select
from tensorlang.ir.walk import replace_placeholders, substitute_in_expr
from tensorlang.lang.bounds import Domain, check_loads
from tensorlang.lang.conversion import convert
from tensorlang.lang.expression import Expression
from tensorlang.lang.mistakes import definition_error
from tensorlang.lang.read_reduction import make_combiner, read, state_values
from tensorlang.lang.stages import add_checked_conditions, check_variables, state_dtype
from tensorlang.lang.tensor import TensorHandle
from tensorlang.lang.trace import Trace
from tensorlang.lang.values import Value
from tensorlang.source import SourceLocation, user_location


@dataclass(frozen=True, slots=True, eq=False)
class ScanValue(Expression):
    """A scan that ``tl.tensor`` has not made a stage of yet."""

    axis: Axis
    values: tuple[Expr, ...]
    dtypes: tuple[DType, ...]
    combiner: Combiner
    exclusive: bool
    reverse: bool

    def as_value(self) -> Value:
        """Refuse: a scan is a tensor along its axis, and no number."""
        raise definition_error(
            "tl.scan is part of an expression; it must be the whole body of tl.tensor: make it a "
            "tensor first, and index that"
        )


def scan(
    combine: Callable[..., Any],
    identity: Any,
    generator: Generator[Any, None, None],
    *,
    exclusive: bool = False,
    reverse: bool = False,
) -> Any:
    """Return running combinations along one axis, which becomes the last axis of the tensor.

    Parameters
    ----------
    combine
        Takes the running state and an element's state, each a number or a tuple of numbers.
    identity
        The state before the first element.
    generator
        A comprehension over exactly one size whose body is the element's state.
    exclusive
        Leave out the element itself: the first result is ``identity``.
    reverse
        Run from the last element to the first.

    Returns
    -------
    The body of a ``tl.tensor`` comprehension over the other axes; outside of one, the tensor.

    Examples
    --------
    >>> import numpy as np, tensorlang as tl
    >>> N = tl.dim("N")
    >>> @tl.compute
    ... def cumulative_sum(x: tl.f64[N]):
    ...     return tl.scan(lambda a, b: a + b, 0, (x[j] for j in N))
    >>> cumulative_sum.reference(np.array([1.0, 2.0, 3.0]))
    array([1., 3., 6.])

    """
    trace, body, scope, _, predicate = read(generator, "tl.scan")
    if len(scope.axes) != 1 or predicate:
        raise definition_error("tl.scan runs along exactly one axis, from 0: give it one loop")
    axis = scope.axes[0]
    if axis.shown.affine != affine(axis.axis.variable):
        raise definition_error("the axis of tl.scan must start at 0")
    values = state_values(body)
    value = ScanValue(
        axis.axis,
        tuple([value.expr for value in values]),
        tuple([value.dtype for value in values]),
        make_combiner(combine, identity, values, ordered=True),
        exclusive,
        reverse,
    )
    if trace.scopes:
        return value
    handles = add_scan(trace, (), value, user_location())
    return handles[0] if len(handles) == 1 else handles


def add_scan(
    trace: Trace, outer: tuple[Axis, ...], scan: ScanValue, location: SourceLocation
) -> tuple[TensorHandle, ...]:
    """Add the stages of a scan and return a handle for each component of its state."""
    trace.note_locals()
    axes = (*outer, scan.axis)
    check_variables(trace, axes, scan.values)
    elements, conditions = check_loads(scan.values, Domain(axes), trace.load_places, trace.name_of)
    add_checked_conditions(trace, conditions)
    shape = tuple([axis.extent for axis in axes])
    running = tuple([Tensor("?", shape, state_dtype(dtype)) for dtype in scan.dtypes])
    values = _recurrence(running, axes, elements, scan)
    trace.stages.append(Stage(running, axes, values, location=location))
    return tuple(
        [
            _presented(trace, state, axes, dtype, scan.reverse, location)
            for state, dtype in zip(running, scan.dtypes, strict=True)
        ]
    )


def _recurrence(
    running: tuple[Tensor, ...], axes: tuple[Axis, ...], elements: tuple[Expr, ...], scan: ScanValue
) -> tuple[Expr, ...]:
    step = affine(scan.axis.variable)
    position = step - 1 if scan.exclusive else step
    if scan.reverse:
        position = scan.axis.extent - 1 - position
    moved = [substitute_in_expr(e, {scan.axis.variable: position}) for e in elements]
    indices: tuple[Affine, ...] = (*[affine(axis.variable) for axis in axes[:-1]], step - 1)
    previous: list[Expr] = [Load(tensor, indices) for tensor in running]
    identity = scan.combiner.identity
    later = _combined(scan.combiner, previous, moved)
    first = identity if scan.exclusive else _combined(scan.combiner, list(identity), moved)
    started = Call("gt", (IndexValue(step, i64), Const(0, i64)), bool_)
    return tuple(
        [
            Select(started, then, otherwise, evaluation_dtype(tensor.dtype))
            for tensor, then, otherwise in zip(running, later, first, strict=True)
        ]
    )


def _combined(combiner: Combiner, left: list[Expr], right: list[Expr]) -> tuple[Expr, ...]:
    bound: dict[Placeholder, Expr] = {}
    bound.update(zip(combiner.left, left, strict=True))
    bound.update(zip(combiner.right, right, strict=True))
    return tuple([replace_placeholders(result, bound) for result in combiner.result])


def _presented(
    trace: Trace,
    state: Tensor,
    axes: tuple[Axis, ...],
    dtype: DType,
    reverse: bool,
    location: SourceLocation,
) -> TensorHandle:
    """Return the handle of a component: the running state itself, or flipped or rounded."""
    if state.dtype is dtype and not reverse:
        return TensorHandle(state, trace)
    result = Tensor("?", state.shape, dtype)
    *outer, last = [affine(axis.variable) for axis in axes]
    load = Load(state, (*outer, axes[-1].extent - 1 - last if reverse else last))
    value = convert(load, evaluation_dtype(dtype))
    trace.stages.append(Stage((result,), axes, (value,), location=location))
    trace.derived_names[state] = (result, "reversed" if reverse else "acc")
    return TensorHandle(result, trace)
