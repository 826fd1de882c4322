"""Rebuilds definitions: with sizes fixed, tensors renamed, or parameters bound to other tensors.

Input:  ``C[i < M, j < N] = sum(A[i, k] * B[k, j] for k < K)`` and ``{"K": 16}``
Output: ``C[i < M, j < N] = sum(A[i, k] * B[k, j] for k < 16)``, with tensors of its own

Stages, tensors and axes of the result are new; only sizes that stay free are shared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from tensorlang.dtypes import i64
from tensorlang.ir.affine import (
    Affine,
    AffineLike,
    Atom,
    FloorDiv,
    Min,
    Product,
    SymbolicDiv,
    ValueAtom,
    Var,
    affine,
    map_atoms,
    minimum,
    variables_of,
)
from tensorlang.ir.definition import (
    Axis,
    Combiner,
    Condition,
    Definition,
    Scalar,
    Stage,
    Tensor,
)
from tensorlang.ir.expr import (
    Call,
    Const,
    Expr,
    IndexValue,
    Load,
    ScalarRef,
    index_from_value,
    loads_of,
)
from tensorlang.ir.interval import bounds, is_nonnegative
from tensorlang.ir.walk import Done, rewrite_expr


@dataclass(frozen=True, slots=True)
class Replacement:
    """What takes the place of variables, tensors and scalars; the rest stays as it is.

    ``done`` and ``values`` remember what was replaced, so that what is shared stays shared.
    """

    variables: Mapping[Var, AffineLike] = field(default_factory=dict[Var, AffineLike])
    tensors: Mapping[Tensor, Tensor] = field(default_factory=dict[Tensor, Tensor])
    scalars: Mapping[Scalar, Expr] = field(default_factory=dict[Scalar, Expr])
    done: Done = field(default_factory=dict[int, "tuple[Expr, Expr]"], repr=False, compare=False)
    values: dict[ValueAtom, Affine] = field(
        default_factory=dict[ValueAtom, Affine], repr=False, compare=False
    )


def replace_in_index(index: Affine, new: Replacement) -> Affine:
    """Return an index expression with the replacements made at any depth."""
    return map_atoms(index, lambda atom: _replace_in_atom(atom, new))


def _replace_in_atom(atom: Atom, new: Replacement) -> AffineLike:
    match atom:
        case Var():
            return new.variables.get(atom, atom)
        case FloorDiv():
            return replace_in_index(atom.operand, new) // atom.divisor
        case SymbolicDiv():
            divisor = replace_in_index(atom.divisor, new)
            if divisor == affine(0):
                return 0  # an empty size; what is divided by it is never used
            return replace_in_index(atom.operand, new) // divisor
        case Product():
            result = affine(1)
            for factor in atom.factors:
                result = result * affine(_replace_in_atom(factor, new))
            return result
        case Min():
            return minimum(*[replace_in_index(operand, new) for operand in atom.operands])
        case ValueAtom():
            known = new.values.get(atom)
            if known is None:
                known = new.values[atom] = index_from_value(replace_in_expr(atom.expr, new))
            return known


def replace_in_expr(expr: Expr, new: Replacement) -> Expr:
    """Return a value expression with the replacements made at any depth."""

    def visit(node: Expr) -> Expr:
        match node:
            case IndexValue():
                return IndexValue(replace_in_index(node.index, new), node.dtype)
            case Load():
                indices = tuple([replace_in_index(index, new) for index in node.indices])
                return Load(new.tensors.get(node.tensor, node.tensor), indices)
            case ScalarRef():
                return new.scalars.get(node.scalar, node)
            case _:
                return node

    return rewrite_expr(expr, visit, new.done)


def rebuild_stages(
    stages: tuple[Stage, ...], given: Replacement, name_of: Callable[[Tensor], str]
) -> tuple[tuple[Stage, ...], dict[Tensor, Tensor]]:
    """Return new stages with new tensors and axes, and which tensor became which."""
    tensors = dict(given.tensors)
    result: list[Stage] = []
    for stage in stages:
        axes = _new_axes(stage.axes, given)
        reduction_axes = _new_axes(stage.reduction_axes, given)
        renamed = {
            old.variable: affine(fresh.variable)
            for old, fresh in zip(stage.all_axes, axes + reduction_axes, strict=True)
        }
        new = Replacement({**given.variables, **renamed}, tensors, given.scalars)
        for tensor in stage.tensors:
            shape = tuple([replace_in_index(extent, new) for extent in tensor.shape])
            tensors[tensor] = Tensor(name_of(tensor), shape, tensor.dtype)
        extents = {axis.variable: axis.extent for axis in axes + reduction_axes}
        rebuilt = replace(
            stage,
            tensors=tuple([tensors[tensor] for tensor in stage.tensors]),
            axes=axes,
            values=tuple(
                [_without_checks(replace_in_expr(value, new), extents) for value in stage.values]
            ),
            reduction_axes=reduction_axes,
            combiner=_replace_in_combiner(stage.combiner, new),
            predicate=tuple([replace_in_index(form, new) for form in stage.predicate]),
            copies=None if stage.copies is None else tensors.get(stage.copies, stage.copies),
        )
        result.append(rebuilt)
    return tuple(result), tensors


def _without_checks(value: Expr, extents: Mapping[Var, Affine]) -> Expr:
    """Return a value whose indices are no longer checked where the new sizes keep them inside.

    ``x[o // share * depth + c]`` of a convolution with groups cannot be decided while ``share`` is
    a symbol (see ``lang.bounds``), and is plainly inside once it is a number.
    """
    indices = [index for load in loads_of(value) for index in load.indices]
    if all(_checked_index(index) is None for index in indices):
        return value

    def visit(node: Expr) -> Expr:
        if not isinstance(node, Load):
            return node
        pairs = zip(node.indices, node.tensor.shape, strict=True)
        return Load(node.tensor, tuple([_decided(*pair, extents) for pair in pairs]))

    return rewrite_expr(value, visit)


def _checked_index(index: Affine) -> Affine | None:
    """Return the form in ``form | 0``, as indices to be checked are marked."""
    match index.terms:
        case ((ValueAtom(expr=Call(function="or", args=(IndexValue(index=form), mark))), 1),):
            return form if index.constant == 0 and mark == Const(0, i64) else None
        case _:
            return None


def _decided(index: Affine, extent: Affine, extents: Mapping[Var, Affine]) -> Affine:
    form = _checked_index(index)
    interval = None if form is None else bounds(form, extents)
    if form is None or interval is None:
        return index
    inside = is_nonnegative(interval[0]) and is_nonnegative(extent - 1 - interval[1])
    return form if inside else index


def _new_axes(axes: tuple[Axis, ...], new: Replacement) -> tuple[Axis, ...]:
    return tuple(
        [Axis(Var(axis.variable.name), replace_in_index(axis.extent, new)) for axis in axes]
    )


def _replace_in_combiner(combiner: Combiner | None, new: Replacement) -> Combiner | None:
    if combiner is None:
        return None
    return replace(
        combiner,
        result=tuple([replace_in_expr(result, new) for result in combiner.result]),
        identity=tuple([replace_in_expr(identity, new) for identity in combiner.identity]),
    )


def fix_sizes(definition: Definition, sizes: Mapping[str, int]) -> Definition:
    """Return ``definition`` with some of its sizes replaced by integers.

    Raises
    ------
    ValueError
        For a name that is no size of the definition, a negative size, and sizes that break a
        condition or make an extent negative.

    """
    variables = _variables_named(definition, sizes)
    if not variables:
        return definition
    new = Replacement(variables)
    inputs = {
        tensor: Tensor(
            tensor.name,
            tuple([replace_in_index(extent, new) for extent in tensor.shape]),
            tensor.dtype,
        )
        for tensor in definition.inputs
    }
    given = Replacement(variables, inputs)
    stages, tensors = rebuild_stages(definition.stages, given, lambda tensor: tensor.name)
    fixed = replace(
        definition,
        sizes=tuple([size for size in definition.sizes if size not in variables]),
        dims=tuple([size for size in definition.dims if size not in variables]),
        inputs=tuple(inputs.values()),
        stages=stages,
        outputs=tuple([tensors[output] for output in definition.outputs]),
        conditions=_remaining_conditions(definition, new),
    )
    _check_extents(definition, fixed)
    return fixed


def _variables_named(definition: Definition, sizes: Mapping[str, int]) -> dict[Var, AffineLike]:
    named = {size.name: size for size in definition.sizes}
    result: dict[Var, AffineLike] = {}
    for name, number in sizes.items():
        if name not in named:
            known = ", ".join(named) or "none"
            raise ValueError(f"{definition.name} has no size {name}; its sizes are: {known}")
        if number < 0:
            raise ValueError(f"{definition.name}: the size {name} = {number} is negative")
        result[named[name]] = int(number)
    return result


def _remaining_conditions(definition: Definition, new: Replacement) -> tuple[Condition, ...]:
    remaining: list[Condition] = []
    for condition in definition.conditions:
        form = replace_in_index(condition.form, new)
        if form.terms:
            remaining.append(replace(condition, form=form))
        elif form.constant < 0 or (condition.equality and form.constant):
            raise ValueError(f"{definition.name}: {condition.message}; {_shown(new)}")
    return tuple(remaining)


def _shown(new: Replacement) -> str:
    return ", ".join(f"{variable} = {value}" for variable, value in new.variables.items())


def _check_extents(original: Definition, fixed: Definition) -> None:
    for before, after in zip(extents_of(original), extents_of(fixed), strict=True):
        if not variables_of(after) and after.constant < 0:
            raise ValueError(f"{fixed.name}: the extent {before} is negative ({after})")


def extents_of(definition: Definition) -> list[Affine]:
    """Return every extent that a definition mentions: of its parameters, then of its stages."""
    extents = [extent for tensor in definition.inputs for extent in tensor.shape]
    for stage in definition.stages:
        extents.extend([axis.extent for axis in stage.all_axes])
    return extents
