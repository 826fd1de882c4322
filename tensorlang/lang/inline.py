"""Calls of operators inside operators: the callee's stages become stages of the caller.

Input:  ``p = softmax(scores)`` while ``attention`` is traced
Output: stages ``softmax/top``, ``softmax/e``, ..., with the callee's sizes replaced by the
        caller's, and a handle of the result
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tensorlang.dtypes import DType
from tensorlang.ir.affine import Affine, AffineLike, Var, substitute
from tensorlang.ir.definition import Condition, Definition, Scalar, Tensor
from tensorlang.ir.expr import Expr, expr_variables
from tensorlang.ir.interval import is_nonnegative
from tensorlang.ir.specialize import Replacement, extents_of, rebuild_stages, replace_in_index
from tensorlang.lang.application import as_operand, index_form, is_index_like
from tensorlang.lang.arguments import arguments_by_name
from tensorlang.lang.binding import unify_sizes
from tensorlang.lang.conversion import adapt
from tensorlang.lang.mistakes import definition_error
from tensorlang.lang.tensor import TensorHandle
from tensorlang.lang.trace import Trace, current
from tensorlang.source import user_location

if TYPE_CHECKING:
    from tensorlang.lang.compute import Operator


def inline(operator: Operator, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """Add the stages of ``operator`` to the one being traced; return handles of its outputs."""
    trace = current(operator.name)
    trace.note_locals()
    try:
        arguments = arguments_by_name(operator.name, operator.parameters, args, kwargs)
    except TypeError as error:
        raise definition_error(str(error)) from None
    tensors = _tensor_arguments(operator, arguments, trace)
    definition = _definition(operator, arguments, tensors)
    scalars = _scalar_arguments(definition, arguments)
    sizes = _unify(operator.name, definition, tensors, arguments, trace)
    given = Replacement(
        sizes, {tensor: tensors[tensor.name].tensor for tensor in definition.inputs}, scalars
    )
    _take_conditions(definition, given, trace)
    prefix = _unique_prefix(operator.name, trace)
    stages, renamed = rebuild_stages(definition.stages, given, lambda _: "?")
    trace.stages.extend(stages)
    for stage in definition.stages:
        for tensor in stage.tensors:
            trace.inlined_names[renamed[tensor]] = f"{prefix}/{tensor.name}"
    handles = tuple([TensorHandle(renamed[output], trace) for output in definition.outputs])
    return handles[0] if len(handles) == 1 else handles


def _tensor_arguments(
    operator: Operator, arguments: Mapping[str, Any], trace: Trace
) -> dict[str, TensorHandle]:
    result: dict[str, TensorHandle] = {}
    for parameter in operator.parameters:
        if parameter.kind not in ("tensor", "generic"):
            continue
        value = arguments[parameter.name]
        if value is None and parameter.is_optional:
            continue
        if not isinstance(value, TensorHandle):
            value = _as_tensor(value, operator.name, parameter.name, trace)
        if value.trace is not trace:
            raise definition_error(f"{value} belongs to another operator; pass it as a parameter")
        if parameter.kind == "tensor":
            assert parameter.dtype is not None
            if value.ndim != len(parameter.shape) or value.dtype is not parameter.dtype:
                shape = ", ".join(map(str, parameter.shape))
                found = ", ".join(map(str, value.shape))
                raise definition_error(
                    f"{operator.name}: {parameter.name} is {parameter.dtype.name}[{shape}], but "
                    f"{value}, {value.dtype.name}[{found}], is given"
                )
        result[parameter.name] = value
    return result


def _as_tensor(value: object, operator: str, name: str, trace: Trace) -> TensorHandle:
    """Return a number without axes (the result of a reduction) as a tensor without axes."""
    from tensorlang.lang.application import as_value
    from tensorlang.lang.expression import Expression
    from tensorlang.lang.stages import add_map

    if not isinstance(value, Expression | int | float):
        raise definition_error(
            f"{operator}: {name} must be a tensor of the operator being defined, not "
            f"{type(value).__name__}"
        )
    number = as_value(value)
    if expr_variables(number.expr) - trace.size_set:
        raise definition_error(
            f"{operator}: {name} is an expression over axes; make it a tensor first: "
            "t = tl.tensor(... for i in N)"
        )
    return add_map(trace, (), (number,), user_location())[0]


def _definition(
    operator: Operator, arguments: Mapping[str, Any], tensors: Mapping[str, TensorHandle]
) -> Definition:
    described: dict[str, Any] = {}
    for parameter in operator.parameters:
        if parameter.kind in ("tensor", "generic"):
            handle = tensors.get(parameter.name)
            described[parameter.name] = handle
        elif parameter.kind == "attribute":
            described[parameter.name] = arguments[parameter.name]
    return operator.definition(**described)


def _scalar_arguments(definition: Definition, arguments: Mapping[str, Any]) -> dict[Scalar, Expr]:
    result: dict[Scalar, Expr] = {}
    for scalar in definition.scalars:
        value = as_operand(arguments[scalar.name])
        dtype: DType | None = getattr(value, "dtype", None)
        weak = getattr(value, "weak", True)
        if not weak and dtype is not scalar.dtype:
            raise definition_error(
                f"{definition.name}: the scalar {scalar.name} is {scalar.dtype.name}; cast the "
                f"argument: tl.cast(x, tl.{scalar.dtype.name})"
            )
        result[scalar] = adapt(value, scalar.dtype)
    return result


def _unify(
    name: str,
    definition: Definition,
    tensors: Mapping[str, TensorHandle],
    arguments: Mapping[str, Any],
    trace: Trace,
) -> dict[Var, AffineLike]:
    """Return the callee's sizes as forms over the caller's, and require what must agree."""
    sizes: dict[Var, AffineLike] = {}
    for size in definition.dims:
        value = arguments[size.name]
        if not is_index_like(value):
            raise definition_error(f"{name}: the size {size} must be an integer or a dim: {value}")
        sizes[size] = index_form(value)
    entries = [
        (tensor, axis, form, tensors[tensor.name].tensor.shape[axis])
        for tensor in definition.inputs
        for axis, form in enumerate(tensor.shape)
    ]
    unify_sizes([(form, found) for _, _, form, found in entries], sizes)
    for tensor, axis, form, found in entries:
        _require_equal(name, tensor, axis, substitute(form, sizes), found, trace)
    return sizes


def _require_equal(
    name: str, tensor: Tensor, axis: int, wanted: Affine, found: Affine, trace: Trace
) -> None:
    difference = found - wanted
    if not difference.terms and not difference.constant:
        return
    message = f"{name}: axis {axis} of {tensor} is {found}, but {wanted} is expected"
    if not difference.terms:
        raise definition_error(message)
    condition = Condition(difference, f"{message} ({user_location()})", equality=True)
    trace.conditions.append(condition)


def _take_conditions(definition: Definition, given: Replacement, trace: Trace) -> None:
    for condition in definition.conditions:
        form = replace_in_index(condition.form, given)
        if is_nonnegative(form) and not condition.equality:
            continue
        if not form.terms and (form.constant < 0 or (condition.equality and form.constant)):
            raise definition_error(f"{definition.name}: {condition.message}")
        trace.conditions.append(replace(condition, form=form))
    for extent in extents_of(definition):
        form = replace_in_index(extent, given)
        if not form.terms and form.constant < 0:
            raise definition_error(f"{definition.name}: the extent {extent} is negative ({form})")


def _unique_prefix(name: str, trace: Trace) -> str:
    prefix, number = name, 0
    while prefix in trace.prefixes:
        number += 1
        prefix = f"{name}_{number}"
    trace.prefixes.add(prefix)
    return prefix
