"""Folded storage: no element is overwritten before its last reader has run.

Input:  the accesses of a program, and who wrote what each read sees, by logical index
Output: nothing, or a read that finds another element in its place: ``rows`` kept in 3 rows in a
circle, of which a fourth is read

The same question is asked twice, with cells named by their elements and by their places in memory.
Every read must have the same last writer both times.
"""

from __future__ import annotations

import islpy as isl

from tensorlang.poly.access import Accesses
from tensorlang.poly.dependence import Dependences, find_dependences
from tensorlang.poly.flow import access_of_tag
from tensorlang.poly.isl_text import NotProvedError
from tensorlang.poly.threads import has_threads
from tensorlang.poly.witness import (
    Counterexample,
    describe_access,
    instance_of_tag,
    sample,
    witness_of_instance,
)

CLAIM = "folding"


def find_lost_element(accesses: Accesses, found: Dependences) -> Counterexample | None:
    """Return a read of folded storage that sees what another element left, None if there is none.

    ``found`` are the dependences by logical index.
    """
    nest = accesses.nest
    if has_threads(nest):
        raise NotProvedError("folded storage among the threads of a kernel")
    placed = Accesses(nest, in_memory=True)
    in_memory = find_dependences(placed)
    for wanted, seen in (
        (found.reads, in_memory.reads),
        (found.own, in_memory.own),
        (found.copies, in_memory.copies),
    ):
        wrong = seen.subtract(wanted)
        if not wrong.is_empty():
            return _witness(placed, wrong)
    return None


def _witness(accesses: Accesses, wrong: isl.UnionMap) -> Counterexample:
    """``wrong``: read -> the write that took the place of the element."""
    nest = accesses.nest
    point = sample(nest, wrong.wrap())
    reader, writer = (instance_of_tag(nest, tag) for tag in point.tags)
    assert reader is not None
    assert writer is not None
    read, write = (access_of_tag(accesses, tag) for tag in point.tags)
    lines = (
        describe_access(read, point.values(reader), "reads"),
        "whose place was taken when "
        + describe_access(write, point.values(writer, len(reader.variables)), "writes"),
    )
    return witness_of_instance(
        nest,
        CLAIM,
        f"an element of {read.storage.tensor.name} is overwritten before it is read",
        reader,
        point,
        lines,
    )
