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

from tensorlang.poly.access import Accesses
from tensorlang.poly.chain import find_early_read, find_fork, find_step_fault
from tensorlang.poly.dependence import Dependences
from tensorlang.poly.incarnation import find_point_fault, groups_of
from tensorlang.poly.structure import Families
from tensorlang.poly.witness import Counterexample


def find_reduction_fault(
    accesses: Accesses, found: Dependences, families: Families
) -> Counterexample | None:
    """Return a point at which a reduction goes wrong, None if there is none."""
    groups = groups_of(accesses)
    for group in groups:
        fault = find_point_fault(accesses.nest, group)
        if fault is not None:
            return fault
    if not groups:
        return None
    previous = found.through_copies(found.own)
    for group in groups:
        fault = find_step_fault(accesses, group, previous, families)
        if fault is not None:
            return fault
    return find_fork(accesses.nest, previous) or find_early_read(accesses, found, previous)
