"""Who wrote what a read sees: the last writers of all reads, by isl's exact dataflow.

Input:  the accesses of a program
Output: ``R4_1[l0, l1] -> W2_0[l0]``, the write that each read sees, and the reads that see none

All reads are asked at once: those of stages, the copies', each update's reading of the value that
it continues, and the caller's reading of every output at the end. What a copy wrote is traced to
what the copy read, until a stage that computes (or an input) is reached.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import islpy as isl

from tensorlang.ir.affine import Var, variables_of
from tensorlang.ir.definition import Tensor
from tensorlang.poly.access import Access, Accesses
from tensorlang.poly.domain import Nest, Storage
from tensorlang.poly.isl_text import NotProvedError

_ROUNDS, _MOST_ROUNDS = 3, 9
"""Chains of few copies are followed step by step, longer ones by isl's transitive closure where it
is exact, else step by step up to the greater number."""

_OUTPUT_TAG = "X"


@dataclass(eq=False)
class Dependences:
    """The last writers of a program's reads, as relations from reads to writes.

    ``reads`` are those of stages and of the caller, ``own`` the updates' of the value that they
    continue, ``copies`` those of copies. The ``unwritten`` ones map a read to its cell.
    """

    nest: Nest
    reads: isl.UnionMap
    own: isl.UnionMap
    copies: isl.UnionMap
    unwritten_reads: isl.UnionMap
    unwritten_own: isl.UnionMap
    unwritten_copies: isl.UnionMap

    @cached_property
    def _copies_of_copies(self) -> isl.UnionMap:
        """A copy -> each copy that its value came through before, however many there were."""
        step = self.copies.intersect_range(self.copies.domain())
        result = further = step
        for _ in range(_ROUNDS):
            further = further.apply_range(step)
            if further.is_empty():
                return result
            result = result.union(further)
        # Of fewer and plainer pieces, isl finds an exact closure more often.
        closure, exact = step.detect_equalities().coalesce().transitive_closure()
        if exact:
            return closure
        for _ in range(_MOST_ROUNDS - _ROUNDS):
            further = further.apply_range(step)
            if further.is_empty():
                return result
            result = result.union(further)
        raise NotProvedError("a value passes through more copies than can be traced")

    def through_copies(self, relation: isl.UnionMap) -> isl.UnionMap:
        """Return ``relation`` with writes by copies replaced by what the copies read."""
        copied = self.copies.domain()
        part = relation.intersect_range(copied)
        if part.is_empty():
            return relation
        part = part.union(part.apply_range(self._copies_of_copies))
        made = part.apply_range(self.copies).subtract_range(copied)
        return relation.subtract_range(copied).union(made)

    def reads_of_unwritten_copies(self) -> isl.UnionMap:
        """Return the reads that see, through copies, a cell that nobody has written."""
        lost = self.unwritten_copies.domain()
        relation = self.reads.union(self.own)
        if not lost.is_empty():
            part = relation.intersect_range(self.copies.domain())
            part = part.union(part.apply_range(self._copies_of_copies))
            relation = relation.union(part.apply_range(self.copies))
        return relation.intersect_range(lost)


def find_dependences(accesses: Accesses) -> Dependences:
    """Return the last writer of every read of storage that the program writes."""
    nest = accesses.nest
    reads = [access for access in accesses.reads if not access.storage.is_input]
    copies = [access for access in accesses.copies if not access.storage.is_input]
    sinks = [accesses.relation(access, sound=True) for access in (*reads, *copies, *accesses.own)]
    sources = [
        nest.relation(w.instance, w.tag, accesses.cell_text(w), nest.points(w.instance))
        for w in accesses.writes
    ]
    instances = {access.tag: access.instance for access in (*accesses.writes, *reads)}
    times = [
        nest.relation(instance, tag, nest.time_text(instance), nest.points(instance))
        for tag, instance in instances.items()
    ]
    for relation in _output_reads(accesses):
        sinks.append(relation)
        times.append(_at_the_end(nest, relation))
    flow = (
        isl.UnionAccessInfo.from_sink(union_of(nest, map(canonical, sinks)))
        .set_must_source(union_of(nest, map(canonical, sources)))
        .set_schedule_map(union_of(nest, times))
        .compute_flow()
    )
    own_tags = {access.tag for access in accesses.own}
    copy_tags = {access.tag for access in copies}
    writers = _split(nest, flow.get_must_dependence().reverse(), own_tags, copy_tags)
    unwritten = _split(nest, flow.get_must_no_source(), own_tags, copy_tags)
    return Dependences(nest, *writers, *unwritten)


def _split(
    nest: Nest, relation: isl.UnionMap, own_tags: set[str], copy_tags: set[str]
) -> tuple[isl.UnionMap, isl.UnionMap, isl.UnionMap]:
    """Split by who reads: stages and the caller, updates of their own, copies."""
    parts: tuple[list[isl.Map], list[isl.Map], list[isl.Map]] = ([], [], [])

    def sort(single: isl.Map) -> None:
        tag = single.get_tuple_name(isl.dim_type.in_)
        parts[1 if tag in own_tags else 2 if tag in copy_tags else 0].append(single)

    relation.foreach_map(sort)
    return union_of(nest, parts[0]), union_of(nest, parts[1]), union_of(nest, parts[2])


def canonical(relation: isl.Map) -> isl.Map:
    """Return ``relation`` with its equalities found and its divisions in terms of them.

    Without that, isl's dataflow depends on what was asked of the relation before, which leaves its
    divisions known or unknown, and in a rare case loses the writer of a read: an index such as
    ``(80 * l1 + l4 - 16 * o) mod 16``, whose ``l4 // 16`` a guard names too.
    """
    return relation.detect_equalities()


def union_of(nest: Nest, relations: Iterable[isl.Map]) -> isl.UnionMap:
    """Return the union of relations, perhaps of none."""
    result = isl.UnionMap.read_from_str(nest.parameters.context, f"{nest.parameters.prefix}{{ }}")
    for relation in relations:
        result = result.union(isl.UnionMap.from_map(relation))
    return result


# --- the caller's reads -----------------------------------------------------------------------


def _output_reads(accesses: Accesses) -> list[isl.Map]:
    """Return ``X0_2[...] -> cell`` for every element of every output.

    Asked in the coordinates of a nest that writes them (the init's, where there is one): isl then
    compares like with like. If those nests do not reach every element, in plain coordinates.
    """
    nest = accesses.nest
    result: list[isl.Map] = []
    for number, tensor in enumerate(dict.fromkeys(nest.program.definition.outputs)):
        storage = nest.outer[tensor]
        writes = [access for access in accesses.writes if access.storage is storage]
        inits = [access for access in writes if access.instance.compute.part == "init"]
        relations = [
            _in_coordinates_of(accesses, access, f"{_OUTPUT_TAG}{number}_{position}")
            for position, access in enumerate(inits or writes)
        ]
        box = _box(nest, storage)
        covered = union_of(nest, relations).range()
        if isl.UnionSet.from_set(box).is_subset(covered):
            result.extend(relations)
        else:
            identity = box.identity().set_tuple_name(isl.dim_type.in_, f"{_OUTPUT_TAG}{number}")
            result.append(identity)
    return result


def _in_coordinates_of(accesses: Accesses, access: Access, tag: str) -> isl.Map:
    nest, instance = accesses.nest, access.instance
    used: set[Var] = set()
    for index in instance.data_binding:
        used |= variables_of(index)
    points = nest.sound_points(instance)
    kept = [variable for variable in instance.variables if variable in used]
    for position in reversed(range(len(instance.variables))):
        if instance.variables[position] not in used:
            points = points.project_out(isl.dim_type.set, position, 1)
    head = f"{tag}[{', '.join(instance.names[variable] for variable in kept)}]"
    relation = nest.parameters.map(f"{head} -> {accesses.cell_text(access)}")
    return relation.intersect_domain(points.set_tuple_name(tag))


def _box(nest: Nest, storage: Storage) -> isl.Set:
    names = [f"x{dimension}" for dimension in range(len(storage.shape))]
    parts = [
        f"0 <= {name} < {nest.parameters_text(extent)}"
        for name, extent in zip(names, storage.shape, strict=True)
    ]
    text = f"{storage.name}[{', '.join(names)}] : {' and '.join(parts) or 'true'}"
    return nest.parameters.set(text)


def _at_the_end(nest: Nest, relation: isl.Map) -> isl.Map:
    count = relation.dim(isl.dim_type.in_)
    tag = relation.get_tuple_name(isl.dim_type.in_)
    names = ", ".join(f"x{n}" for n in range(count))
    end = nest.parameters.map(f"{tag}[{names}] -> {nest.end_text()}")
    return end.intersect_domain(relation.domain())


def tensor_of_output_tag(nest: Nest, tag: str) -> Tensor | None:
    """Return the output that a tag of :func:`find_dependences` reads, None for other tags."""
    if not tag.startswith(_OUTPUT_TAG):
        return None
    number = int(tag[len(_OUTPUT_TAG) :].split("_")[0])
    return tuple(dict.fromkeys(nest.program.definition.outputs))[number]
