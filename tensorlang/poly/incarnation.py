"""The incarnations of a reduction: one init for each element, and each point updated once.

Input:  the inits and updates of one tensor of a stage
Output: nothing, or an element with two inits, or a point that is missing, repeated or too much

An incarnation is an iteration of the loops around the ``Alloc`` that the inits write; the caller's
storage has a single one.
"""

from __future__ import annotations

from dataclasses import dataclass

import islpy as isl

from tensorlang.ir.affine import affine
from tensorlang.ir.definition import Stage
from tensorlang.poly.access import Access, Accesses
from tensorlang.poly.dependence import union_of
from tensorlang.poly.domain import Instance, Nest, Storage
from tensorlang.poly.isl_text import NotProvedError, holds_text
from tensorlang.poly.witness import (
    Counterexample,
    instance_of_tag,
    named_sizes,
    sample,
    witness_of_instance,
    witness_of_pair,
)

CLAIM = "reductions"


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """The inits and updates of one tensor of a stage that share the storage the inits write."""

    stage: Stage
    position: int
    storage: Storage
    inits: tuple[Instance, ...]
    updates: tuple[Instance, ...]

    def tag(self, instance: Instance) -> str:
        """Return the tag of what ``instance`` writes to the tensor."""
        return f"W{instance.number}_{self.position}"


def groups_of(accesses: Accesses) -> list[Group]:
    """Return the groups of a program, each update in the innermost one around it."""
    inits: dict[tuple[Stage, int, Storage], list[Instance]] = {}
    for access in accesses.writes:
        if access.instance.compute.part == "init":
            key = access.instance.compute.stage, access.position, access.storage
            inits.setdefault(key, []).append(access.instance)
    updates: dict[tuple[Stage, int, Storage], list[Instance]] = {key: [] for key in inits}
    for access in accesses.own:
        instance = access.instance
        around = [
            key
            for key in inits
            if key[0] is instance.compute.stage
            and key[1] == access.position
            and _encloses(key[2], instance, access)
        ]
        if not around:
            raise NotProvedError(f"no init of {instance.compute.stage} lies around its update")
        updates[max(around, key=lambda key: len(key[2].prefix))].append(instance)
    return [Group(*key, tuple(members), tuple(updates[key])) for key, members in inits.items()]


def _encloses(storage: Storage, instance: Instance, access: Access) -> bool:
    return (
        storage.alloc is None
        or storage is access.storage
        or storage in access.storage.outer
        or storage in instance.storages.values()
    )


def find_point_fault(nest: Nest, group: Group) -> Counterexample | None:
    """Return a point of the reduction that is not updated exactly once, None if there is none."""
    prefix = group.storage.prefix
    inits = union_of(nest, [_point_map(nest, group, init) for init in group.inits])
    updates = union_of(nest, [_point_map(nest, group, update) for update in group.updates])
    if not inits.is_injective():
        return _twice(nest, inits, f"an element of {group.stage.name} gets two inits")
    if not updates.is_injective():
        return _twice(nest, updates, f"a point of the reduction {group.stage.name} is added twice")
    expected = inits.range().apply(isl.UnionMap.from_map(_extension(nest, group)))
    done = updates.range()
    if expected.is_equal(done):
        return None
    extra = updates.subtract_range(expected)
    if not extra.is_empty():
        point = sample(nest, extra.domain())
        instance = instance_of_tag(nest, point.tags[0])
        assert instance is not None
        reason = f"a point outside the reduction {group.stage.name} is added, or one without init"
        return witness_of_instance(nest, CLAIM, reason, instance, point)
    point = sample(nest, expected.subtract(done))
    values = dict(zip(prefix, point.coordinates, strict=False))
    names = [axis.variable.name for axis in group.stage.all_axes]
    index = ", ".join(
        f"{name}={value}"
        for name, value in zip(names, point.coordinates[len(prefix) :], strict=True)
    )
    return Counterexample(
        CLAIM,
        f"a point of the reduction {group.stage.name} is never added",
        named_sizes(point.sizes),
        {variable.name: value for variable, value in values.items()},
        (f"{group.stage.name}[{index}] has no update",),
        group.updates[0].compute if group.updates else group.inits[0].compute,
        refuted=point.is_real,
    )


def _point_map(nest: Nest, group: Group, instance: Instance) -> isl.Map:
    """Return ``tag[l0, l1] -> E[incarnation, axes]``, an update's with its reduction axes."""
    prefix = instance.variables[: len(group.storage.prefix)]
    parts = [instance.names[variable] for variable in prefix]
    parts.extend(nest.form(instance, index) for index in instance.compute.binding)
    points = nest.sound_points(instance)
    return nest.relation(instance, group.tag(instance), f"E[{', '.join(parts)}]", points)


def _extension(nest: Nest, group: Group) -> isl.Map:
    """Return ``E[incarnation, axes] -> E[incarnation, axes, reduction axes]``."""
    stage, parameters = group.stage, nest.parameters
    outer = [f"u{n}" for n in range(len(group.storage.prefix))]
    data = [f"x{n}" for n in range(len(stage.axes))]
    over = [f"k{n}" for n in range(len(stage.reduction_axes))]
    names = dict(zip(stage.variables, data + over, strict=True))
    parts: list[str] = []
    for axis in stage.reduction_axes:
        parts.append(f"{names[axis.variable]} >= 0")
        parts.append(holds_text(axis.extent - 1 - affine(axis.variable), names, parameters))
    parts.extend(holds_text(form, names, parameters) for form in stage.predicate)
    left, right = ", ".join(outer + data), ", ".join(outer + data + over)
    return parameters.map(f"E[{left}] -> E[{right}] : {' and '.join(parts) or 'true'}")


def _twice(nest: Nest, relation: isl.UnionMap, reason: str) -> Counterexample:
    """Return two different instances with one image under ``relation``."""
    pairs = relation.apply_range(relation.reverse()).subtract(relation.domain().identity())
    return witness_of_pair(nest, CLAIM, reason, pairs, "again:")
