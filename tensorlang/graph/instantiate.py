"""An operator's definition in terms of a graph: its sizes and tensors replaced by the graph's.

Input:  the definition of ``matmul`` for ``a: f32[a0, a1], b: f32[b0, b1]``, and x, w
Output: ``Node("matmul_1")`` over ``x: f32[B, 784], w: f32[784, 10]``, whose output has shape
        ``[B, 10]``; or an error at the user's line, if the shapes cannot agree
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from tensorlang.graph.program import Node, complete
from tensorlang.ir.affine import Affine, AffineLike, Var, substitute
from tensorlang.ir.definition import Attribute, Condition, Definition, Scalar, Tensor
from tensorlang.ir.expr import Expr
from tensorlang.ir.interval import is_nonnegative
from tensorlang.ir.printer import format_tensor_type
from tensorlang.ir.specialize import Replacement, extents_of, rebuild_stages, replace_in_index
from tensorlang.lang.binding import unify_sizes
from tensorlang.lang.mistakes import definition_error
from tensorlang.source import SourceLocation


def instantiate(
    definition: Definition,
    name: str,
    tensors: Mapping[str, Tensor],
    scalars: Mapping[Scalar, Expr],
    dims: Mapping[str, Affine],
    attributes: tuple[tuple[str, Attribute], ...],
    location: SourceLocation,
) -> Node:
    """Return a node called ``name`` that applies ``definition`` to tensors of the graph.

    ``tensors`` and ``dims`` go by the names of the definition's parameters. Raises
    DefinitionError where an extent is known to be wrong; what depends on sizes of the graph
    becomes a condition, checked at the call.
    """
    sizes, equalities = _unify(definition, tensors, dims)
    given = Replacement(
        sizes, {tensor: tensors[tensor.name] for tensor in definition.inputs}, scalars
    )
    conditions = (*equalities, *_conditions(definition, given, tensors))
    single = len(definition.outputs) == 1

    def name_of(tensor: Tensor) -> str:
        if single and tensor is definition.outputs[0]:
            return name
        return f"{name}/{tensor.name.rpartition('/')[2] if single else tensor.name}"

    stages, renamed = rebuild_stages(definition.stages, given, _distinct(name_of))
    arguments = tuple([tensors[tensor.name] for tensor in definition.inputs])
    instance = replace(
        definition,
        inputs=tuple(dict.fromkeys(arguments)),
        scalars=(),
        stages=stages,
        outputs=tuple([renamed[output] for output in definition.outputs]),
        conditions=conditions,
        attributes=(),
        location=location,
    )
    return Node(name, complete(instance), arguments, attributes, location)


def _distinct(name_of: Callable[[Tensor], str]) -> Callable[[Tensor], str]:
    """Return the same names with a number behind those that come again."""
    taken: set[str] = set()

    def distinct(tensor: Tensor) -> str:
        wanted = name = name_of(tensor)
        number = 0
        while name in taken:
            number += 1
            name = f"{wanted}_{number}"
        taken.add(name)
        return name

    return distinct


def _unify(
    definition: Definition, tensors: Mapping[str, Tensor], dims: Mapping[str, Affine]
) -> tuple[dict[Var, AffineLike], list[Condition]]:
    """Return the definition's sizes as forms over the graph's, and what must be equal for that."""
    sizes: dict[Var, AffineLike] = {size: dims[size.name] for size in definition.dims}
    entries = [
        (tensor, axis, form, tensors[tensor.name].shape[axis])
        for tensor in definition.inputs
        for axis, form in enumerate(tensor.shape)
    ]
    entries.sort(key=lambda entry: not entry[3].is_constant)  # stable: known extents bind first
    unify_sizes([(form, found) for _, _, form, found in entries], sizes)
    conditions: list[Condition] = []
    for tensor, axis, form, found in entries:
        wanted = substitute(form, sizes)
        difference = found - wanted
        if not difference.terms and not difference.constant:
            continue
        message = (
            f"axis {axis} of {tensors[tensor.name]} ({tensor} of {definition.name}) is {found},"
            f" but {wanted} is expected"
        )
        if not difference.terms:
            raise _shape_error(definition, message, tensors)
        conditions.append(Condition(difference, message, equality=True))
    return sizes, conditions


def _conditions(
    definition: Definition, given: Replacement, tensors: Mapping[str, Tensor]
) -> list[Condition]:
    remaining: list[Condition] = []
    for condition in definition.conditions:
        form = replace_in_index(condition.form, given)
        if is_nonnegative(form) and not condition.equality:
            continue
        if form.terms:
            remaining.append(replace(condition, form=form))
        elif form.constant < 0 or (condition.equality and form.constant):
            raise _shape_error(definition, condition.message, tensors)
    for extent in extents_of(definition):
        form = replace_in_index(extent, given)
        if not form.terms and form.constant < 0:
            message = f"the extent {extent} would be {form.constant}"
            raise _shape_error(definition, message, tensors)
        if form.terms and not is_nonnegative(form):
            remaining.append(Condition(form, f"the extent {form} must not be negative"))
    return remaining


def _shape_error(definition: Definition, message: str, tensors: Mapping[str, Tensor]) -> Exception:
    given = [tensors[tensor.name] for tensor in definition.inputs]
    listing = ", ".join(f"{tensor}: {format_tensor_type(tensor)}" for tensor in given)
    return definition_error(f"{definition.name}({listing}): {message}")
