"""Makes stages of what comprehensions yielded, and adds them to the trace.

Input:  axes, values, perhaps a combiner
Output: an IR ``Stage`` in the trace, and a handle for each tensor that the user sees

Tensors are called ``?`` until the operator's function has returned (see ``finish``). A stage over
f16 or bf16 that accumulates does so in f32, in a stage of its own whose result is rounded once.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tensorlang.dtypes import DType, evaluation_dtype
from tensorlang.ir.affine import ONE, Affine, affine, maximum, variables_of
from tensorlang.ir.definition import Axis, Combiner, Condition, Stage, Tensor
from tensorlang.ir.expr import Expr, Load, expr_variables
from tensorlang.ir.interval import is_nonnegative
from tensorlang.lang.bounds import Domain, check_loads
from tensorlang.lang.conversion import strengthen
from tensorlang.lang.mistakes import definition_error
from tensorlang.lang.tensor import TensorHandle
from tensorlang.lang.trace import Trace, TracedAxis
from tensorlang.lang.values import Value
from tensorlang.source import SourceLocation


@dataclass(slots=True, eq=False)
class Reduction:
    """A reduction that has been read, but has no stage yet.

    ``values`` and the combiner's state have the dtypes of ``states``; ``results`` says which
    components the user sees, and in which dtype. ``enclosing`` are the axes around it. With
    ``needs_element`` (argmax), an empty reduction is an error at the call.
    """

    kind: str
    axes: tuple[Axis, ...]
    predicate: tuple[Affine, ...]
    values: tuple[Expr, ...]
    states: tuple[DType, ...]
    combiner: Combiner
    results: tuple[tuple[int, DType], ...]
    enclosing: tuple[TracedAxis, ...]
    location: SourceLocation
    needs_element: bool = False
    handles: tuple[TensorHandle, ...] | None = field(default=None)


def add_map(
    trace: Trace, axes: tuple[Axis, ...], values: tuple[Value, ...], location: SourceLocation
) -> tuple[TensorHandle, ...]:
    """Add a stage that stores ``values`` and return a handle for each of its tensors."""
    trace.note_locals()
    strong = [strengthen(value) for value in values]
    exprs = tuple([value.expr for value in strong])
    check_variables(trace, axes, exprs)
    exprs, conditions = check_loads(exprs, Domain(axes), trace.load_places, trace.name_of)
    add_checked_conditions(trace, conditions)
    shape = tuple([axis.extent for axis in axes])
    tensors = tuple([Tensor("?", shape, value.dtype) for value in strong])
    trace.stages.append(Stage(tensors, axes, exprs, location=location))
    return tuple([TensorHandle(tensor, trace) for tensor in tensors])


def add_reduction(
    trace: Trace, axes: tuple[Axis, ...], reduction: Reduction
) -> tuple[TensorHandle, ...]:
    """Add the stage of a reduction and return a handle for each component the user sees."""
    trace.note_locals()
    every = axes + reduction.axes
    check_variables(trace, every, reduction.values)
    domain = Domain(every, reduction.predicate)
    values, conditions = check_loads(reduction.values, domain, trace.load_places, trace.name_of)
    add_checked_conditions(trace, conditions)
    if reduction.needs_element:
        _require_elements(trace, axes, reduction)
    shape = tuple([axis.extent for axis in axes])
    states = tuple([Tensor("?", shape, dtype) for dtype in reduction.states])
    stage = Stage(
        states, axes, values, reduction.axes, reduction.combiner, reduction.predicate,
        location=reduction.location,
    )  # fmt: skip
    trace.stages.append(stage)
    handles = tuple(
        [_result(trace, states[place], axes, dtype, stage) for place, dtype in reduction.results]
    )
    visible = {place for place, _ in reduction.results}
    for place, tensor in enumerate(states):
        if place not in visible:
            trace.derived_names[tensor] = (handles[0].tensor, "value")
    return handles


def _result(
    trace: Trace, state: Tensor, axes: tuple[Axis, ...], dtype: DType, stage: Stage
) -> TensorHandle:
    """Return the handle of a component, rounded by a stage of its own where its dtype asks it."""
    if state.dtype is dtype:
        return TensorHandle(state, trace)
    rounded = Tensor("?", state.shape, dtype)
    indices = tuple([affine(axis.variable) for axis in axes])
    trace.stages.append(Stage((rounded,), axes, (Load(state, indices),), location=stage.location))
    trace.derived_names[state] = (rounded, "acc")
    return TensorHandle(rounded, trace)


def hoist(trace: Trace, reduction: Reduction) -> tuple[TensorHandle, ...]:
    """Give a reduction that stands inside an expression its own stage.

    Its axes are those enclosing ones on which it depends: ``x[i, j] / tl.sum(x[i, k] ...)`` sums
    once for each i.
    """
    if reduction.handles is None:
        axes = hoisted_axes(reduction)
        reduction.handles = add_reduction(trace, axes, reduction)
        for handle in reduction.handles:
            trace.derived_names[handle.tensor] = (None, reduction.kind)
    return reduction.handles


def hoisted_axes(reduction: Reduction) -> tuple[Axis, ...]:
    """Return the enclosing axes that a reduction depends on, outer ones first."""
    used = expr_variables(*reduction.values)
    for form in reduction.predicate:
        used |= variables_of(form)
    return tuple([axis.axis for axis in reduction.enclosing if axis.axis.variable in used])


def state_dtype(dtype: DType) -> DType:
    """Return the dtype in which values of ``dtype`` accumulate: f32 for f16 and bf16."""
    return evaluation_dtype(dtype)


def check_variables(trace: Trace, axes: tuple[Axis, ...], exprs: tuple[Expr, ...]) -> None:
    """Check that a stage's expressions use its own axes and the operator's sizes only."""
    known = trace.size_set | {axis.variable for axis in axes}
    unknown = expr_variables(*exprs) - known
    if not unknown:
        return
    enclosing = {axis.axis.variable for axis in trace.open_axes()}
    first = min(unknown, key=lambda variable: variable.serial)
    if first in enclosing:
        raise definition_error(
            f"tl.tensor inside a comprehension depends on the axis {first} of that comprehension; "
            "make it a tensor of its own, with that axis, before"
        )
    raise trace.unknown_variable(first)


def add_checked_conditions(trace: Trace, conditions: list[Condition]) -> None:
    """Add conditions that are checked at the call, each once."""
    known = {condition.form for condition in trace.conditions}
    trace.conditions.extend([c for c in conditions if c.form not in known])


def _require_elements(trace: Trace, axes: tuple[Axis, ...], reduction: Reduction) -> None:
    for axis in reduction.axes:
        if is_nonnegative(axis.extent - 1):
            continue
        empty = [-outer.extent for outer in axes if not outer.extent.is_constant]
        form = maximum(axis.extent - ONE, *empty)
        message = (
            f"{reduction.kind} needs at least one element: {axis.extent} must not be 0 "
            f"({reduction.location})"
        )
        trace.conditions.append(Condition(form, message))
