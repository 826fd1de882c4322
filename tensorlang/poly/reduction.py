"""Every reduction combines each of its points exactly once, from one init, before it is read.

Input:  the updates and inits of one stage, and the last writers of what the updates continue
Output: nothing, or an update that is missing, repeated, not begun, forked, or read too early

One *incarnation* of a reduction is an iteration of the loops around the ``Alloc`` that its init
writes (the whole program for the caller's storage). Within it, for each element: one init; the
updates are exactly the points of the reduction; each continues, through copies, the init or an
update of the same element and incarnation, and no two continue the same one. Steps forward in
time that never fork and start at a single init form one chain through all updates; whoever reads
the element must see its end.
"""

from __future__ import annotations

from dataclasses import dataclass

import islpy as isl

from tensorlang.ir.affine import affine
from tensorlang.ir.definition import Stage
from tensorlang.poly.access import Access, Accesses
from tensorlang.poly.dependence import Dependences, tensor_of_output_tag, union_of
from tensorlang.poly.domain import Instance, Nest, Storage
from tensorlang.poly.flow import access_of_tag
from tensorlang.poly.isl_text import NotProvedError, holds_text
from tensorlang.poly.structure import Families
from tensorlang.poly.witness import (
    Counterexample,
    describe_instance,
    instance_of_tag,
    named_loops,
    named_sizes,
    sample,
    witness_of_instance,
)

CLAIM = "reductions"


@dataclass(frozen=True, slots=True, eq=False)
class _Group:
    """The inits and updates of one tensor of a stage that share the storage the inits write."""

    stage: Stage
    position: int
    storage: Storage
    inits: tuple[Instance, ...]
    updates: tuple[Instance, ...]

    def tag(self, instance: Instance) -> str:
        """Return the tag of what ``instance`` writes to the tensor."""
        return f"W{instance.number}_{self.position}"


def find_reduction_fault(
    accesses: Accesses, found: Dependences, families: Families
) -> Counterexample | None:
    """Return a point at which a reduction goes wrong, None if there is none."""
    nest = accesses.nest
    groups = _groups(accesses)
    if not groups and found.own.is_empty():
        return None
    for group in groups:
        fault = _find_point_fault(nest, group)
        if fault is not None:
            return fault
    previous = found.through_copies(found.own)
    for group in groups:
        fault = _find_step_fault(accesses, group, previous, families)
        if fault is not None:
            return fault
    if not previous.is_injective():
        return _fork_witness(accesses, previous)
    return _find_early_read(accesses, found, previous)


def _groups(accesses: Accesses) -> list[_Group]:
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
    return [_Group(*key, tuple(members), tuple(updates[key])) for key, members in inits.items()]


def _encloses(storage: Storage, instance: Instance, access: Access) -> bool:
    return (
        storage.alloc is None
        or storage is access.storage
        or storage in access.storage.outer
        or storage in instance.storages.values()
    )


# --- the set of points --------------------------------------------------------------------------


def _find_point_fault(nest: Nest, group: _Group) -> Counterexample | None:
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


def _point_map(nest: Nest, group: _Group, instance: Instance) -> isl.Map:
    """Return ``tag[l0, l1] -> E[incarnation, axes]``, an update's with its reduction axes."""
    prefix = instance.variables[: len(group.storage.prefix)]
    parts = [instance.names[variable] for variable in prefix]
    parts.extend(nest.form(instance, index) for index in instance.compute.binding)
    points = nest.sound_points(instance)
    return nest.relation(instance, group.tag(instance), f"E[{', '.join(parts)}]", points)


def _extension(nest: Nest, group: _Group) -> isl.Map:
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
    pairs = relation.apply_range(relation.reverse())
    same = relation.domain().identity()
    point = sample(nest, pairs.subtract(same).wrap())
    first, second = (instance_of_tag(nest, tag) for tag in point.tags)
    assert first is not None
    assert second is not None
    one = point.values(first)
    other = point.values(second, len(first.variables))
    loops = named_loops(first, one)
    loops.update(named_loops(second, other, "'"))
    return Counterexample(
        CLAIM,
        reason,
        named_sizes(point.sizes),
        loops,
        (describe_instance(first, one), f"again: {describe_instance(second, other)}"),
        first.compute,
        refuted=point.is_real,
    )


# --- the steps from one update to the next ------------------------------------------------------


def _find_step_fault(
    accesses: Accesses, group: _Group, previous: isl.UnionMap, families: Families
) -> Counterexample | None:
    """Each update continues its own incarnation, and an ordered reduction runs in order."""
    nest = accesses.nest
    if not _stays_inside(accesses, group, families):
        fault = _find_strayed_step(accesses, group, previous)
        if fault is not None:
            return fault
    combiner = group.stage.combiner
    if combiner is None or not combiner.ordered or not group.updates:
        return None
    count = len(group.stage.reduction_axes)
    position = union_of(nest, [_reduction_point(nest, group, update) for update in group.updates])
    steps = previous.intersect_domain(position.domain()).intersect_range(position.domain())
    moved = steps.apply_domain(position).apply_range(position)
    left, right = (", ".join(f"{side}{n}" for n in range(count)) for side in "ab")
    ways = [
        " and ".join([*(f"a{m} = b{m}" for m in range(n)), f"a{n} > b{n}"]) for n in range(count)
    ]
    forward = nest.parameters.map(f"K[{left}] -> K[{right}] : {' or '.join(ways) or 'false'}")
    if moved.is_subset(isl.UnionMap.from_map(forward)):
        return None
    backward = moved.subtract(isl.UnionMap.from_map(forward))
    wrong = steps.intersect(position.apply_range(backward).apply_range(position.reverse()))
    return _pair_witness(
        accesses,
        wrong,
        f"the ordered reduction {group.stage.name} runs out of order",
        "continues",
    )


def _reduction_point(nest: Nest, group: _Group, instance: Instance) -> isl.Map:
    stage = instance.compute.stage
    over = instance.compute.binding[len(stage.axes) :]
    target = f"K[{', '.join(nest.form(instance, index) for index in over)}]"
    points = nest.points(instance)
    return nest.relation(instance, group.tag(instance), target, points)


def _stays_inside(accesses: Accesses, group: _Group, families: Families) -> bool:
    """Whether no storage of the family outlives the storage that the init writes."""
    if not group.storage.prefix:
        return True
    family = families.of(group.stage.tensors[group.position])
    prefix = group.storage.prefix
    return all(
        storage.prefix[: len(prefix)] == prefix
        for storage in accesses.written
        if families.of(storage.tensor) is family
        and any(access.storage is storage for access in (*accesses.own, *accesses.copies))
    )


def _find_strayed_step(
    accesses: Accesses, group: _Group, previous: isl.UnionMap
) -> Counterexample | None:
    nest, count = accesses.nest, len(group.storage.prefix)
    where: list[isl.Map] = []
    for instance in (*group.inits, *group.updates):
        names = [instance.names[variable] for variable in instance.variables[:count]]
        target = f"I[{', '.join(names)}]"
        points = nest.points(instance)
        where.append(nest.relation(instance, group.tag(instance), target, points))
    incarnation = union_of(nest, where)
    steps = previous.intersect_domain(incarnation.domain())
    same = incarnation.apply_range(incarnation.reverse())
    wrong = steps.subtract(same)
    if wrong.is_empty():
        return None
    return _pair_witness(
        accesses, wrong, f"an update of {group.stage.name} continues another buffer's", "continues"
    )


def _fork_witness(accesses: Accesses, previous: isl.UnionMap) -> Counterexample:
    nest = accesses.nest
    pairs = previous.apply_range(previous.reverse()).subtract(previous.domain().identity())
    point = sample(nest, pairs.wrap())
    first, second = (access_of_tag(accesses, tag).instance for tag in point.tags)
    one, other = point.values(first), point.values(second, len(first.variables))
    loops = named_loops(first, one)
    loops.update(named_loops(second, other, "'"))
    return Counterexample(
        CLAIM,
        f"two updates of {first.compute.stage.name} continue the same value, so that one is lost",
        named_sizes(point.sizes),
        loops,
        (describe_instance(first, one), describe_instance(second, other)),
        first.compute,
        refuted=point.is_real,
    )


# --- the readers --------------------------------------------------------------------------------


def _find_early_read(
    accesses: Accesses, found: Dependences, previous: isl.UnionMap
) -> Counterexample | None:
    """Return a read that does not see the end of its chain: an update continues what it sees."""
    readers = found.through_copies(found.reads)
    early = readers.intersect_range(previous.range())
    if early.is_empty():
        return None
    nest = accesses.nest
    point = sample(nest, early.wrap())
    writer = access_of_tag(accesses, point.tags[1]).instance
    start = len(point.coordinates) - len(writer.variables)
    values = point.values(writer, start)
    output = tensor_of_output_tag(nest, point.tags[0])
    if output is not None:
        reader = f"the caller, reading {output.name} at the end, sees"
    else:
        access = access_of_tag(accesses, point.tags[0])
        reader = f"{describe_instance(access.instance, point.values(access.instance))} sees"
    return witness_of_instance(
        nest,
        CLAIM,
        f"{writer.compute.stage.name} is read before its last update",
        writer,
        point,
        (reader, describe_instance(writer, values), "which a later update continues"),
        start,
    )


def _pair_witness(
    accesses: Accesses, wrong: isl.UnionMap, reason: str, verb: str
) -> Counterexample:
    point = sample(accesses.nest, wrong.wrap())
    first, second = (access_of_tag(accesses, tag).instance for tag in point.tags)
    one, other = point.values(first), point.values(second, len(first.variables))
    loops = named_loops(first, one)
    loops.update(named_loops(second, other, "'"))
    return Counterexample(
        CLAIM,
        reason,
        named_sizes(point.sizes),
        loops,
        (f"{describe_instance(first, one)} {verb}", describe_instance(second, other)),
        first.compute,
        refuted=point.is_real,
    )
