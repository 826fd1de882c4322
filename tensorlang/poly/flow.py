"""Every read finds a value that was written: no read comes before its write.

Input:  the last writers of all reads
Output: nothing, or a read (by a stage, a copy on the way to one, or the caller) of a cell that
nobody has written at that time

Cells are named by logical indices and a copy only joins one family of tensors (``structure``), so
whoever wrote a cell last wrote the element that the definition names there; whether a reduction is
complete by then is the business of ``reduction``.
"""

from __future__ import annotations

import islpy as isl

from tensorlang.poly.access import Access, Accesses
from tensorlang.poly.dependence import Dependences, tensor_of_output_tag
from tensorlang.poly.domain import Nest
from tensorlang.poly.witness import (
    Counterexample,
    Sample,
    describe_access,
    instance_of_tag,
    named_sizes,
    sample,
    witness_of_instance,
)

CLAIM = "flow"


def find_read_before_write(accesses: Accesses, found: Dependences) -> Counterexample | None:
    """Return a read that sees a value which nobody has written, None if there is none."""
    for unwritten in (found.unwritten_reads, found.unwritten_own):
        if not unwritten.is_empty():
            return _witness(accesses, unwritten)
    lost = found.reads_of_unwritten_copies()
    if lost.is_empty():
        return None
    return _witness_through_copy(accesses, lost)


def _witness(accesses: Accesses, unwritten: isl.UnionMap) -> Counterexample:
    nest = accesses.nest
    point = sample(nest, unwritten.wrap())
    tag = point.tags[0]
    instance = instance_of_tag(nest, tag)
    if instance is None:
        return _output_witness(nest, point)
    access = access_of_tag(accesses, tag)
    reason = f"{access.storage.tensor.name} is read before it is written"
    if instance.compute.part == "update" and access in accesses.own:
        reason = f"an update finds nothing to continue: {access.storage.tensor.name} has no init"
    values = point.values(instance)
    return witness_of_instance(
        nest, CLAIM, reason, instance, point, (describe_access(access, values, "reads"),)
    )


def _output_witness(nest: Nest, point: Sample) -> Counterexample:
    tensor = tensor_of_output_tag(nest, point.tags[0])
    assert tensor is not None
    index = point.coordinates[len(point.coordinates) - len(tensor.shape) :]
    return Counterexample(
        CLAIM,
        f"an element of the output {tensor.name} is never written",
        named_sizes(point.sizes),
        {},
        (f"the caller reads {tensor.name}[{', '.join(map(str, index)) or '()'}]",),
        refuted=point.is_real,
    )


def _witness_through_copy(accesses: Accesses, lost: isl.UnionMap) -> Counterexample:
    """``lost``: read -> the copy that read a cell which nobody has written."""
    nest = accesses.nest
    point = sample(nest, lost.wrap())
    copy = access_of_tag(accesses, point.tags[1])
    start = len(point.coordinates) - len(copy.instance.variables)
    values = point.values(copy.instance, start)
    source = next(access for access in accesses.copies if access.instance is copy.instance)
    lines = [describe_access(source, values, "reads")]
    reader = instance_of_tag(nest, point.tags[0])
    if reader is None:
        lines.append("the caller reads the copy at the end")
    else:
        access = access_of_tag(accesses, point.tags[0])
        lines.append(f"then {describe_access(access, point.values(reader), 'reads')}")
    return witness_of_instance(
        nest,
        CLAIM,
        f"{source.storage.tensor.name} is copied before it is written, and the copy is read",
        copy.instance,
        point,
        tuple(lines),
        start,
    )


def access_of_tag(accesses: Accesses, tag: str) -> Access:
    """Return the access that a tag names."""
    for access in (*accesses.reads, *accesses.writes, *accesses.copies):
        if access.tag == tag:
            return access
    raise KeyError(tag)
