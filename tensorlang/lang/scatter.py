"""``tl.scatter``: a tensor with updates at indices that depend on data.

Input:  ``tl.scatter(base, ((index[k], value[k]) for k in K), combine="add")``
Output: stages of the indices and the values where they are no tensors yet, and a stage
        ``S[e] = scatter(base[e], (index[:]), value[:], add)``
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, cast

from tensorlang.dtypes import DType, bool_, evaluation_dtype, i64, is_float
from tensorlang.ir.affine import Var, affine
from tensorlang.ir.definition import Axis, Scatter, Stage, Tensor
from tensorlang.ir.expr import Cast, Expr, Load
from tensorlang.ir.routines import scatter_operands
from tensorlang.lang.application import as_value
from tensorlang.lang.conversion import adapt, convert
from tensorlang.lang.mistakes import definition_error
from tensorlang.lang.stages import add_map
from tensorlang.lang.tensor import TensorHandle, in_i64
from tensorlang.lang.trace import Trace, TracedAxis, current
from tensorlang.lang.values import Value
from tensorlang.source import SourceLocation, user_location

_COMBINES: dict[object, str | None] = {
    None: None, "add": "add", "mul": "mul", "max": "maximum", "min": "minimum",
}  # fmt: skip


def scatter(
    base: Any, updates: Generator[Any, None, None], combine: str | None = None
) -> TensorHandle:
    """Return ``base`` with some elements replaced or combined with updates.

    Updates happen one after the other, in row-major order of the comprehension.

    Parameters
    ----------
    base
        A tensor with at least one axis; it is not changed.
    updates
        A comprehension over sizes whose body is a pair ``index, value``: an integer expression, or
        a tuple of one for each axis of ``base``; and a value of the dtype of ``base``.
    combine
        None: the last update of an element wins. "add", "mul", "max", "min": the element becomes
        ``element + value``, ... (f16 and bf16 add and multiply in f32, rounded once at the end).

    Returns
    -------
    A tensor of the shape and dtype of ``base``. At the call, IndexError for an index that leaves
    ``base``; negative ones do not count from the end.

    Raises
    ------
    DefinitionError
        If the comprehension's body is no such pair, or the dtypes differ.

    Examples
    --------
    >>> import numpy as np, tensorlang as tl
    >>> N, B = tl.dims("N B")
    >>> @tl.compute
    ... def histogram(x: tl.i64[N], zeros: tl.i64[B]):
    ...     return tl.scatter(zeros, ((x[i], 1) for i in N), "add")
    >>> histogram.reference(np.array([1, 0, 1]), np.zeros(3, np.int64))
    array([1, 2, 0])

    """
    trace = current("tl.scatter")
    location = user_location()
    wanted = _combine(combine)
    _check_base(base, trace)
    body, scope = trace.advance(updates, "tl.scatter")
    _check_axes(scope.axes)
    if trace.scopes:
        raise definition_error(
            "tl.scatter stands inside a comprehension; make a tensor of it before: "
            "t = tl.scatter(...)"
        )
    indices, update = _pair(base, body)
    dtype: DType = base.dtype
    if wanted in ("add", "mul") and dtype is bool_:
        raise definition_error(f"bools have no {combine}; cast {base} and the values to tl.i64")
    axes = tuple([axis.axis for axis in scope.axes])
    wide = evaluation_dtype(dtype) if wanted in ("add", "mul") else dtype
    value = Value(convert(adapt(_matching(update, dtype), dtype), evaluation_dtype(dtype)), wide)
    source = _copied(trace, base.tensor, wide, location)
    operands = [_operand(trace, axes, index, location) for index in indices]
    values = _operand(trace, axes, value, location)
    result = _add_scatter(trace, source, tuple(operands), values, wanted, location)
    presented = TensorHandle(_copied(trace, result, dtype, location), trace)
    made = [("base", source), ("acc", result), ("value", values)]
    made += [(f"index{n}" if len(operands) > 1 else "index", t) for n, t in enumerate(operands)]
    for kind, tensor in made:
        is_given = tensor in (base.tensor, presented.tensor) or tensor in trace.local_names
        if not is_given and tensor not in trace.inputs:
            trace.derived_names.setdefault(tensor, (presented.tensor, kind))
    return presented


def _combine(combine: object) -> str | None:
    if combine not in _COMBINES:
        raise definition_error(
            f'combine of tl.scatter must be None, "add", "mul", "max" or "min", not {combine!r}'
        )
    return _COMBINES[combine]


def _check_base(base: object, trace: Trace) -> None:
    if not isinstance(base, TensorHandle):
        raise definition_error(
            f"tl.scatter updates a tensor, not {base!r}; make one first: "
            "t = tl.tensor(0.0 for i in N)"
        )
    if base.trace is not trace:
        raise definition_error(
            f"{base} belongs to another operator; pass it as a parameter instead"
        )
    if base.ndim == 0:
        raise definition_error(f"{base} has no axes, and so no index to update it at")


def _check_axes(axes: list[TracedAxis]) -> None:
    for axis in axes:
        if axis.predicate or axis.shown.affine != affine(axis.axis.variable):
            raise definition_error(
                f"the axis {axis.axis.variable} of tl.scatter must run from 0 to an extent that "
                "depends on sizes alone; shift the index instead"
            )


def _pair(base: TensorHandle, body: object) -> tuple[list[Value], object]:
    """Return the index of each axis, as i64, and what updates the element."""
    parts = cast("tuple[object, ...]", body)
    if not isinstance(body, tuple) or len(parts) != 2:
        raise definition_error(
            "the body of tl.scatter must be a pair of an index and a value: "
            "((index[k], value[k]) for k in K)"
        )
    place, update = parts
    index = cast("tuple[object, ...]", place if isinstance(place, tuple) else (place,))
    if len(index) != base.ndim:
        raise definition_error(
            f"{base} has {base.ndim} axes, but the update's index has {len(index)}"
        )
    return [_index(base, axis, part) for axis, part in enumerate(index)], update


def _index(base: TensorHandle, axis: int, part: object) -> Value:
    value = as_value(part)
    if is_float(value.dtype) or value.dtype is bool_:
        raise definition_error(
            f"index {axis} of {base} must be an integer, not {value.dtype.name}; "
            "tl.cast(x, tl.i64) makes one of a value that counts elements"
        )
    expr = in_i64(value.expr)
    return Value(expr, expr.dtype) if isinstance(expr, Load) else Value(_as_i64(expr), i64)


def _as_i64(expr: Expr) -> Expr:
    return expr if expr.dtype is i64 else Cast(expr, i64)


def _matching(update: object, dtype: DType) -> Value:
    value = as_value(update)
    fits = value.dtype is dtype or (value.weak and (is_float(dtype) or not is_float(value.dtype)))
    if not fits:
        raise definition_error(
            f"the values of tl.scatter are {value.dtype.name} and the base is {dtype.name}; cast "
            f"them: tl.cast(x, tl.{dtype.name})"
        )
    return value


def _operand(
    trace: Trace, axes: tuple[Axis, ...], value: Value, location: SourceLocation
) -> Tensor:
    """Return a tensor of the values at all points of the axes: the one that is read, or a stage."""
    expr, shape = value.expr, tuple([axis.extent for axis in axes])
    here = tuple([affine(axis.variable) for axis in axes])
    if isinstance(expr, Load) and expr.indices == here and expr.tensor.shape == shape:
        return expr.tensor
    return add_map(trace, axes, (value,), location)[0].tensor


def _copied(trace: Trace, tensor: Tensor, dtype: DType, location: SourceLocation) -> Tensor:
    """Return a tensor in another dtype, itself in its own."""
    if tensor.dtype is dtype:
        return tensor
    axes = _axes_of(tensor)
    load = Load(tensor, tuple([affine(axis.variable) for axis in axes]))
    value = Value(convert(load, evaluation_dtype(dtype)), dtype)
    return add_map(trace, axes, (value,), location)[0].tensor


def _add_scatter(
    trace: Trace,
    base: Tensor,
    indices: tuple[Tensor, ...],
    values: Tensor,
    combine: str | None,
    location: SourceLocation,
) -> Tensor:
    trace.note_locals()
    axes = _axes_of(base)
    tensor = Tensor("?", base.shape, base.dtype)
    operands = scatter_operands(base, indices, values, axes)
    routine = Scatter(combine)
    trace.stages.append(Stage((tensor,), axes, operands, location=location, routine=routine))
    return tensor


def _axes_of(tensor: Tensor) -> tuple[Axis, ...]:
    return tuple([Axis(Var(f"e{axis}"), extent) for axis, extent in enumerate(tensor.shape)])
