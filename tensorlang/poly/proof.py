"""The whole-program proof: a scheduled program computes its definition, for all sizes.

Input:  a scheduled program after ``place_inits``
Output: ``Evidence``: each claim, whether it holds, and a counterexample for the first that fails

Whatever made the program, six claims together say that it is right: its form is sound, derived
stages compute what the definition's do, accesses stay in their storage, every read finds a value
that was written, reductions are complete when they are read, and concurrent iterations do not
meet. Sizes are symbolic, >= 0; the conditions checked at the call are assumed. What isl cannot
decide within its budget, or what is not affine, is "not proved": never accepted.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import islpy as isl

from tensorlang.ir.program import Program
from tensorlang.poly import (
    bounds,
    conflict,
    derivation,
    flow,
    folding,
    incarnation,
    layout,
    reduction,
    structure,
    threads,
)
from tensorlang.poly.access import Accesses
from tensorlang.poly.dependence import find_dependences
from tensorlang.poly.domain import Nest
from tensorlang.poly.isl_text import NotProvedError, limited, reason_of
from tensorlang.poly.witness import Counterexample

DEFAULT_BUDGET = 10_000_000
"""How many of isl's basic operations one proof may take: a few seconds.

A matmul blocked in five levels takes 0.1 million.
"""


@dataclass(frozen=True, slots=True)
class Claim:
    """One thing that was to be proved, and how it went."""

    name: str
    statement: str
    milliseconds: float
    holds: bool
    counterexample: Counterexample | None = None


@dataclass(frozen=True, slots=True)
class Evidence:
    """What was proved of a program; claims after the first that fails were not asked."""

    claims: tuple[Claim, ...]

    @property
    def ok(self) -> bool:
        """Whether every claim holds."""
        return all(claim.holds for claim in self.claims)

    @property
    def counterexample(self) -> Counterexample | None:
        """The counterexample of the claim that failed."""
        return next((claim.counterexample for claim in self.claims if not claim.holds), None)

    @property
    def milliseconds(self) -> float:
        """The time that the proof took."""
        return sum(claim.milliseconds for claim in self.claims)

    def __str__(self) -> str:
        lines = [
            f"{'proved' if claim.holds else _verdict(claim):>10}  {claim.milliseconds:6.1f} ms  "
            f"{claim.name}: {claim.statement}"
            for claim in self.claims
        ]
        failure = self.counterexample
        if failure is not None:
            lines.extend(f"    {line}" for line in str(failure).splitlines())
        return "\n".join(lines)


def _verdict(claim: Claim) -> str:
    found = claim.counterexample
    return "FALSE" if found is not None and found.refuted else "not proved"


_STATEMENTS = {
    "structure": "loops, copies and redirections are well formed",
    derivation.CLAIM: "derived stages compute what the definition's stages compute",
    layout.CLAIM: "layouts put different elements in different places of their memory",
    bounds.CLAIM: "every access stays in its storage",
    flow.CLAIM: "every read sees a value that was written, in the right element",
    folding.CLAIM: "an element of folded storage is read before another takes its place",
    incarnation.CLAIM: "every point of a reduction is combined once, before it is read",
    conflict.CLAIM: "iterations that run at once do not touch each other's elements",
    threads.CLAIM: "threads of a block meet in an element only across a barrier",
}


class _Ledger:
    """Collects the claims in order, and stops at the first that fails."""

    def __init__(self) -> None:
        self.claims: list[Claim] = []

    def ask(self, name: str, question: Callable[[], Counterexample | None]) -> bool:
        """Ask a question; return whether the claim holds."""
        start = time.perf_counter()
        try:
            found = question()
        except (NotProvedError, isl.Error) as error:
            found = Counterexample(name, reason_of(error), refuted=False)
        elapsed = (time.perf_counter() - start) * 1e3
        self.claims.append(Claim(name, _STATEMENTS[name], elapsed, found is None, found))
        return found is None


def prove(program: Program, budget: int = DEFAULT_BUDGET) -> Evidence:
    """Prove that ``program`` computes its definition; its inits must be placed.

    ``budget`` bounds isl's basic operations. The result is never an exception: what could not be
    proved is a claim that does not hold.
    """
    with limited(budget):
        return Evidence(tuple(_prove(program)))


def _prove(program: Program) -> list[Claim]:
    ledger = _Ledger()
    parts: list[Accesses] = []

    def check_structure() -> Counterexample | None:
        accepted, _ = derivation.accepted_stages(program)
        fault = structure.find_fault(program, accepted)
        if fault is not None:
            return Counterexample("structure", fault[0], compute=fault[1])
        parts.append(Accesses(Nest(program)))
        return None

    if program.derivations and not ledger.ask(
        derivation.CLAIM, lambda: derivation.accepted_stages(program)[1]
    ):
        return ledger.claims
    if not ledger.ask("structure", check_structure):
        return ledger.claims
    accesses = parts[0]
    has_layouts = any(s.alloc is not None and s.alloc.layout for s in accesses.nest.storages)
    if has_layouts and not ledger.ask(
        layout.CLAIM, lambda: layout.find_layout_fault(accesses.nest)
    ):
        return ledger.claims
    if not ledger.ask(bounds.CLAIM, lambda: bounds.find_access_outside(accesses)):
        return ledger.claims

    found = None

    def check_flow() -> Counterexample | None:
        nonlocal found
        found = find_dependences(accesses)
        return flow.find_read_before_write(accesses, found)

    def check_reductions() -> Counterexample | None:
        assert found is not None
        families = structure.families_of(program)
        return reduction.find_reduction_fault(accesses, found, families)

    def check_folds() -> Counterexample | None:
        assert found is not None
        return folding.find_lost_element(accesses, found)

    is_kernel = threads.has_threads(accesses.nest)
    has_folds = any(storage.is_folded for storage in accesses.nest.storages)
    if (
        ledger.ask(flow.CLAIM, check_flow)
        and (not has_folds or ledger.ask(folding.CLAIM, check_folds))
        and ledger.ask(incarnation.CLAIM, check_reductions)
        and ledger.ask(conflict.CLAIM, lambda: conflict.find_conflict_in(accesses))
        and is_kernel
    ):
        ledger.ask(threads.CLAIM, lambda: threads.find_race(accesses))
    return ledger.claims
