"""Every access stays inside its storage: the box of an ``Alloc``, or the shape of a tensor.

Input:  ``B.local[k, 16 * j.o + j.i]`` in a box ``[K, 16] at [0, 16 * j.o]``
Output: nothing, since ``0 <= j.i < 16``; else the instance that leaves the box

What the guard or interval arithmetic shows is not asked again; the rest goes to isl, one question
for all accesses of a statement.
"""

from __future__ import annotations

from dataclasses import dataclass

import islpy as isl

from tensorlang.ir.affine import Affine, Var, affine, evaluate
from tensorlang.ir.definition import Stage
from tensorlang.poly.access import (
    Access,
    Accesses,
    StageRead,
    depends_on_data,
    is_affine,
    reads_of_stage,
)
from tensorlang.poly.division import is_nonnegative_with_divisions
from tensorlang.poly.domain import Instance, Nest
from tensorlang.poly.isl_text import NotProvedError, condition_text, fails_text, holds_text
from tensorlang.poly.witness import (
    Counterexample,
    describe_access,
    sample,
    witness_of_instance,
)

CLAIM = "bounds"


@dataclass(frozen=True, slots=True)
class _Question:
    """``form`` must be >= 0 wherever ``access`` happens."""

    access: Access
    form: Affine


def find_access_outside(accesses: Accesses) -> Counterexample | None:
    """Return an access that leaves its storage, None if there is none."""
    nest = accesses.nest
    waiting: dict[Instance, list[_Question]] = {}
    for access in (*accesses.writes, *accesses.reads, *accesses.copies):
        for form in _inside_forms(access):
            if access.instance.holds(form):
                continue
            question = _Question(access, form)
            if access.is_conditional:
                found = _ask(accesses, [question], accesses.points(access))
                if found is not None:
                    return found
            else:
                waiting.setdefault(access.instance, []).append(question)
    for instance, questions in waiting.items():
        found = _ask(accesses, questions, nest.points(instance))
        if found is not None:
            return found
    return _find_load_outside(nest)


def _inside_forms(access: Access) -> list[Affine]:
    """Return the forms that are >= 0 exactly where the access lies in its storage."""
    forms: list[Affine] = []
    storage = access.storage
    for dimension, index in enumerate(access.indices):
        origin, shape = storage.origin[dimension], storage.shape[dimension]
        if index is None:  # anything inside the tensor
            if storage.alloc is not None:
                forms.extend((-origin, origin + shape - access.tensor.shape[dimension]))
        else:
            forms.extend((index - origin, origin + shape - 1 - index))
    return forms


def _ask(accesses: Accesses, questions: list[_Question], points: isl.Set) -> Counterexample | None:
    nest, instance = accesses.nest, questions[0].access.instance
    forms = dict.fromkeys(question.form for question in questions)
    outside = " or ".join(
        f"({fails_text(form, instance.names, nest.parameters)})" for form in forms
    )
    tag = instance.tuple_text(f"S{instance.number}")
    bad = points.intersect(nest.parameters.set(f"{tag} : {outside}"))
    if bad.is_empty():
        return None
    found = sample(nest, bad)
    values = found.values(instance)
    culprit = next(q.access for q in questions if evaluate(q.form, values) < 0)
    verb = "writes" if culprit in accesses.writes else "reads"
    storage = culprit.storage
    low = [evaluate(form, values) for form in storage.origin]
    high = [start + evaluate(form, values) for start, form in zip(low, storage.shape, strict=True)]
    box = ", ".join(f"{a} <= . < {b}" for a, b in zip(low, high, strict=True))
    return witness_of_instance(
        nest,
        CLAIM,
        f"an access leaves the storage of {storage.tensor.name}",
        instance,
        found,
        (describe_access(culprit, values, verb), f"the storage holds [{box}]"),
    )


# --- the definition's own loads ---------------------------------------------------------------


def _find_load_outside(nest: Nest) -> Counterexample | None:
    """Return a load that leaves its tensor at a point of its stage's own domain.

    With a padded buffer an access may lie in its storage and yet outside the tensor.
    """
    stages = dict.fromkeys(instance.compute.stage for instance in nest.instances)
    for stage in stages:
        for read in reads_of_stage(stage):
            found = _check_load(nest, stage, read)
            if found is not None:
                return found
    return None


def _check_load(nest: Nest, stage: Stage, read: StageRead) -> Counterexample | None:
    extents: dict[Var, Affine] = {axis.variable: axis.extent for axis in stage.all_axes}
    names = {variable: f"x{n}" for n, variable in enumerate(stage.variables)}
    parameters = nest.parameters
    unknown: list[Affine] = []
    for index, extent in zip(read.load.indices, read.load.tensor.shape, strict=True):
        if depends_on_data(index):
            continue  # checked when it runs
        forms = [form for form in (index, extent - 1 - index) if not _plain(form, extents, stage)]
        if forms and not (is_affine(index, nest) and is_affine(extent, nest)):
            raise NotProvedError(
                f"{index} is not affine, and may leave {read.load.tensor.name} in {stage}"
            )
        unknown.extend(forms)
    if not unknown:
        return None
    parts = [
        holds_text(form, names, parameters)
        for variable, extent in extents.items()
        for form in (affine(variable), extent - 1 - variable)
    ]
    parts.extend(holds_text(form, names, parameters) for form in stage.predicate)
    ways: list[str] = []
    for branch in read.branches:
        texts = [condition_text(cond, taken, names, parameters) for cond, taken in branch]
        ways.append(" and ".join(text for text in texts if text is not None) or "true")
    parts.append(f"({' or '.join(ways)})")
    outside = " or ".join(f"({fails_text(form, names, parameters)})" for form in unknown)
    head = f"[{', '.join(names.values())}]"
    bad = parameters.set(f"{head} : {' and '.join(parts)} and ({outside})")
    if bad.is_empty():
        return None
    found = sample(nest, bad)
    point = dict(zip(stage.variables, found.coordinates, strict=True))
    values = {**found.sizes, **point}
    read_at = ", ".join(str(_value(index, values)) for index in read.load.indices)
    shape = ", ".join(str(_value(extent, values)) for extent in read.load.tensor.shape)
    where = ", ".join(f"{variable}={value}" for variable, value in point.items())
    return Counterexample(
        CLAIM,
        f"the definition of {stage.name} reads {read.load.tensor.name} outside its shape",
        {variable.name: value for variable, value in found.sizes.items()},
        {variable.name: value for variable, value in point.items()},
        (
            f"{stage.name}[{where}] reads {read.load.tensor.name}[{read_at}]",
            f"its shape is [{shape}]",
        ),
        refuted=found.is_real,
    )


def _value(form: Affine, values: dict[Var, int]) -> int | str:
    return "?" if depends_on_data(form) else evaluate(form, values)


def _plain(form: Affine, extents: dict[Var, Affine], stage: Stage) -> bool:
    if is_nonnegative_with_divisions(form, extents):
        return True
    return any(
        (form - known).is_constant and (form - known).constant >= 0 for known in stage.predicate
    )
