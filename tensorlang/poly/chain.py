"""The updates of an element form one chain, and who reads the element sees its end.

Input:  update -> the init or update that it continues, through copies
Output: nothing, or a step into another incarnation or out of order, a fork, or an early reader
"""

from __future__ import annotations

import islpy as isl

from tensorlang.poly.access import Accesses
from tensorlang.poly.dependence import Dependences, tensor_of_output_tag, union_of
from tensorlang.poly.domain import Instance, Nest
from tensorlang.poly.flow import access_of_tag
from tensorlang.poly.incarnation import CLAIM, Group
from tensorlang.poly.structure import Families
from tensorlang.poly.witness import (
    Counterexample,
    describe_instance,
    sample,
    witness_of_instance,
    witness_of_pair,
)


def find_step_fault(
    accesses: Accesses, group: Group, previous: isl.UnionMap, families: Families
) -> Counterexample | None:
    """Return a step out of its incarnation or, for an ordered reduction, out of its order."""
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
    return witness_of_pair(
        nest,
        CLAIM,
        f"the ordered reduction {group.stage.name} runs out of order",
        wrong,
        "continues",
    )


def _reduction_point(nest: Nest, group: Group, instance: Instance) -> isl.Map:
    stage = instance.compute.stage
    over = instance.compute.binding[len(stage.axes) :]
    target = f"K[{', '.join(nest.form(instance, index) for index in over)}]"
    points = nest.points(instance)
    return nest.relation(instance, group.tag(instance), target, points)


def _stays_inside(accesses: Accesses, group: Group, families: Families) -> bool:
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
    accesses: Accesses, group: Group, previous: isl.UnionMap
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
    return witness_of_pair(
        nest,
        CLAIM,
        f"an update of {group.stage.name} continues another buffer's",
        wrong,
        "continues",
    )


def find_fork(nest: Nest, previous: isl.UnionMap) -> Counterexample | None:
    """Return two updates that continue the same value, so that one of them is lost."""
    if previous.is_injective():
        return None
    pairs = previous.apply_range(previous.reverse()).subtract(previous.domain().identity())
    reason = "two updates continue the same value, so that one of them is lost"
    return witness_of_pair(nest, CLAIM, reason, pairs, "and")


def find_early_read(
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
