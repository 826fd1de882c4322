"""The stages that primitives made compute what the definition's stages do.

Input:  ``Inlined(original, replacement, inlined)`` or ``Factored(original, partial, final, ...)``
Output: the stages that a program may use, or the first record that does not hold

Nothing is taken from the primitive that wrote the record: an inlined stage is substituted anew and
compared node by node, and a factored reduction must map its points onto the original's one to one.
"""

from __future__ import annotations

from collections.abc import Mapping

import islpy as isl

from tensorlang.ir.affine import Affine, AffineLike, Var, affine, substitute
from tensorlang.ir.definition import Axis, Stage
from tensorlang.ir.derivation import Derivation, Factored, Inlined
from tensorlang.ir.expr import Load
from tensorlang.ir.program import Program
from tensorlang.ir.walk import substitute_in_expr
from tensorlang.poly.expression import inline, is_same
from tensorlang.poly.isl_text import Parameters, form_text, holds_text
from tensorlang.poly.witness import Counterexample

CLAIM = "derivations"


def accepted_stages(program: Program) -> tuple[frozenset[Stage], Counterexample | None]:
    """Return the stages known to compute what the definition says, and a record that fails."""
    accepted = set(program.definition.stages)
    for record in program.derivations:
        fault = _fault(program, record, accepted)
        if fault is not None:
            return frozenset(accepted), Counterexample(CLAIM, fault)
        if isinstance(record, Inlined):
            accepted.add(record.replacement)
        else:
            accepted.update((record.partial, record.final))
    return frozenset(accepted), None


def _fault(program: Program, record: Derivation, accepted: set[Stage]) -> str | None:
    match record:
        case Inlined():
            for stage in (record.original, record.inlined):
                if stage not in accepted:
                    return f"{stage} is not a stage of the definition, nor derived from one"
            return _inlined_fault(record)
        case Factored():
            if record.original not in accepted:
                return f"{record.original} is not a stage of the definition, nor derived from one"
            return _factored_fault(program, record)


# --- inlining -----------------------------------------------------------------------------------


def _inlined_fault(record: Inlined) -> str | None:
    old, new, inlined = record.original, record.replacement, record.inlined
    if not inlined.is_map or old.routine is not None or new.routine is not None:
        return f"{inlined} is not a plain map of its inputs and cannot be inlined"
    if len(new.tensors) != len(old.tensors) or any(
        a is not b for a, b in zip(new.tensors, old.tensors, strict=True)
    ):
        return f"the stage with {inlined} inlined writes other tensors than {old}"
    if _extents(new.axes) != _extents(old.axes) or (
        _extents(new.reduction_axes) != _extents(old.reduction_axes)
    ):
        return f"the stage with {inlined} inlined runs over other axes than {old}"
    if new.combiner is not old.combiner:
        return f"the stage with {inlined} inlined combines otherwise than {old}"
    renaming = dict(zip(old.variables, new.variables, strict=True))
    predicate = tuple(substitute(form, renaming) for form in old.predicate)
    if new.predicate != predicate:
        return f"the stage with {inlined} inlined has another predicate than {old}"
    for value, found in zip(old.values, new.values, strict=True):
        expected = inline(substitute_in_expr(value, renaming), inlined)
        if not is_same(expected, found):
            return f"inlining {inlined} into {old} gives another expression"
    return None


def _extents(axes: tuple[Axis, ...]) -> tuple[Affine, ...]:
    return tuple(axis.extent for axis in axes)


# --- rfactor ------------------------------------------------------------------------------------


def _factored_fault(program: Program, record: Factored) -> str | None:
    old, partial, final = record.original, record.partial, record.final
    combiner = old.combiner
    if combiner is None or len(record.reduction) != len(old.reduction_axes):
        return f"{old} is not the reduction that is factored"
    if combiner.ordered:
        return f"{old} runs in order and cannot be factored"
    if partial.combiner is not combiner or final.combiner is not combiner:
        return f"the factors of {old} combine otherwise"
    if [t.dtype for t in partial.tensors] != [t.dtype for t in old.tensors]:
        return f"{partial} accumulates in another type than {old}"
    count = len(old.axes)
    if _extents(partial.axes[:count]) != _extents(old.axes):
        return f"{partial} runs over other data axes than {old}"
    fault = _final_fault(old, partial, final, count)
    if fault is not None:
        return fault
    mapping: dict[Var, AffineLike] = {
        axis.variable: new.variable for axis, new in zip(old.axes, partial.axes, strict=False)
    }
    mapping.update(
        {
            axis.variable: form
            for axis, form in zip(old.reduction_axes, record.reduction, strict=True)
        }
    )
    for value, found in zip(old.values, partial.values, strict=True):
        if not is_same(substitute_in_expr(value, mapping), found):
            return f"{partial} computes another expression than {old}"
    return _points_fault(program, old, partial, mapping)


def _final_fault(old: Stage, partial: Stage, final: Stage, count: int) -> str | None:
    if len(final.tensors) != len(old.tensors) or any(
        a is not b for a, b in zip(final.tensors, old.tensors, strict=True)
    ):
        return f"the final combination of {partial} writes other tensors than {old}"
    if _extents(final.axes) != _extents(old.axes) or (
        _extents(final.reduction_axes) != _extents(partial.axes[count:])
    ):
        return f"the final combination of {partial} runs over other axes"
    if final.predicate:
        return f"the final combination of {partial} leaves parts out"
    indices = tuple(affine(axis.variable) for axis in final.all_axes)
    for tensor, value in zip(partial.tensors, final.values, strict=True):
        if not is_same(Load(tensor, indices), value):
            return f"the final combination of {partial} reads something else"
    return None


def _points_fault(
    program: Program, old: Stage, partial: Stage, mapping: Mapping[Var, AffineLike]
) -> str | None:
    """Map the points of ``partial`` onto those of ``old``, one to one."""
    conditions = (*program.definition.conditions, *program.conditions)
    parameters = Parameters(program.definition.sizes, conditions)
    old_set, old_names = _points(parameters, old)
    new_set, new_names = _points(parameters, partial)
    head = f"[{', '.join(new_names.values())}]"
    image = [form_text(affine(mapping[variable]), new_names, parameters) for variable in old_names]
    relation = parameters.map(f"{head} -> [{', '.join(image)}]").intersect_domain(new_set)
    if not relation.is_injective():
        return f"{partial} and its final combination count a point of {old} twice"
    if not relation.range().is_equal(old_set):
        return f"{partial} and its final combination do not cover the points of {old}"
    return None


def _points(parameters: Parameters, stage: Stage) -> tuple[isl.Set, dict[Var, str]]:
    names = {variable: f"x{n}" for n, variable in enumerate(stage.variables)}
    parts = [f"{name} >= 0" for name in names.values()]
    parts.extend(
        holds_text(axis.extent - 1 - affine(axis.variable), names, parameters)
        for axis in stage.all_axes
    )
    parts.extend(holds_text(form, names, parameters) for form in stage.predicate)
    text = f"[{', '.join(names.values())}] : {' and '.join(parts) or 'true'}"
    return parameters.set(text), names
