"""Small questions that a primitive asks before it changes a program.

Input:  a program and what is to be done with it
Output: a counterexample, or None if the step is legal

These are the proof's own claims, asked of a part. The program need not have its inits placed to
be asked about conflicts.
"""

from __future__ import annotations

import islpy as isl

from tensorlang.ir.affine import Var
from tensorlang.ir.program import Program
from tensorlang.poly import conflict, flow, layout, reduction, structure
from tensorlang.poly.access import Accesses
from tensorlang.poly.dependence import find_dependences
from tensorlang.poly.domain import Nest
from tensorlang.poly.isl_text import NotProvedError, limited, reason_of
from tensorlang.poly.witness import Counterexample

QUESTION_BUDGET = 2_000_000
"""How many of isl's basic operations one question may take: about a second."""


def find_conflict(
    program: Program, loop_variable: Var, budget: int = QUESTION_BUDGET
) -> Counterexample | None:
    """Return a conflict that running the iterations of a loop at once would have.

    ``loop_variable`` is the loop's handle. A loop whose freedom from conflicts cannot be proved
    gives a counterexample that is not ``refuted``.
    """
    with limited(budget):
        try:
            return conflict.find_conflict_in(Accesses(Nest(program)), loop_variable)
        except (NotProvedError, isl.Error) as error:
            return Counterexample(conflict.CLAIM, reason_of(error), refuted=False)


def find_layout_fault(program: Program, budget: int = QUESTION_BUDGET) -> Counterexample | None:
    """Return a position that the layout of a buffer puts outside its memory, or onto another."""
    with limited(budget):
        try:
            return layout.find_layout_fault(Nest(program))
        except (NotProvedError, isl.Error) as error:
            return Counterexample(layout.CLAIM, reason_of(error), refuted=False)


def find_order_violation(program: Program, budget: int = QUESTION_BUDGET) -> Counterexample | None:
    """Return a read that a new order of the statements gives a wrong value; inits are placed."""
    with limited(budget):
        try:
            accesses = Accesses(Nest(program))
            found = find_dependences(accesses)
            families = structure.families_of(program)
            return flow.find_read_before_write(accesses, found) or reduction.find_reduction_fault(
                accesses, found, families
            )
        except (NotProvedError, isl.Error) as error:
            return Counterexample(flow.CLAIM, reason_of(error), refuted=False)
