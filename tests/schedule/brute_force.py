"""Which steps are legal, by trying: a judge of the primitives' own checks.

A step is applied without asking its ``check``; the program that results is *legal* if it is well
formed and the interpreter, which detects races and reads of what was never written, gives the
reference's result at a number of small sizes. A check is wrong if it accepts what is not legal,
and narrow if it refuses what is.

    python -m tests.schedule.brute_force --count 2000

prints, for each primitive, how many steps were accepted and refused, and how many of the refused
were legal: because there is nothing that they could act on (``EMPTY``), by a documented restriction
(``RESTRICTIONS``), or for no good reason.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import Any

import tensorlang as tl
from tensorlang.ir.affine import variables_of
from tensorlang.ir.program import Program
from tensorlang.ir.verify import VerificationError, verify_scheduled
from tensorlang.schedule.primitives.base import Primitive
from tensorlang.schedule.refusal import Refusal
from tensorlang.schedule.session import checked
from tests.schedule.checks import agrees, meets_conditions
from tests.schedule.operators import CASES, Case
from tests.schedule.random_steps import Call, random_call

EMPTY = (
    "nothing inside .* reads|is a loop of .* itself",
    "compute_inline: .* is an output, which the caller sees whole",
    "is streamed already",
    "is no tail",
    "has no tail",
    "no axis of .* stands before axis 0",
)
"""Claims that nothing is there to act on: what the user wrote was meant for something else."""

RESTRICTIONS = (
    "needs a constant number of iterations",
    "have been scheduled already",
    "needs a serial loop",
    "one loop runs in one way",
    "lanes, and blocks of .* would have more",
    "would be nested",
    "without being perfectly nested",
    "lanes of .* bits are more than",
    "would write out .* statements",
    "has a layout already",
    "is a copy, and stays",
    "nothing may stand between",
    "needs a loop over one variable",
    "inside the vectorized loop",
    "stands inside the",
    "registers need constant ones",
    "is allocated inside",
    "several tails meet",
    "has been decomposed already",
    "is an output, which the caller sees whole",
    "named twice",
    "is no elementwise stage",
    "changes with an outer loop",
    "would combine into .* again",
    "combines in a fixed order",  # which other orders of whole numbers do not show
    "is accumulated in place",
    "reads the same box of",
)
"""Claims that restrict what a schedule may say, whatever the program computes."""


class _Captured(Exception):
    """Carries a primitive out of the method that made it."""

    def __init__(self, primitive: Primitive) -> None:
        super().__init__()
        self.primitive = primitive


def primitive_of(schedule: tl.Schedule, call: Call) -> Primitive | None:
    """Return the primitive that a call makes; None if it names what is not there."""
    probe: Any = schedule.fork()

    def capture(step: object, make: Any) -> object:
        raise _Captured(make())

    probe._take = capture
    try:
        call.take(probe)
    except _Captured as captured:
        return captured.primitive
    except Refusal:
        return None
    return None


@dataclass(frozen=True)
class Verdict:
    """What a check said of a step, and what trying it showed."""

    call: Call
    accepted: bool
    legal: bool
    claim: str = ""
    fault: str = ""

    @property
    def is_empty(self) -> bool:
        """Whether the step was refused since it would do nothing."""
        return self._matches(EMPTY)

    @property
    def is_restriction(self) -> bool:
        """Whether the step was refused by a documented restriction."""
        return self._matches(RESTRICTIONS)

    def _matches(self, patterns: tuple[str, ...]) -> bool:
        claim = f"{self.call.name}: {self.claim}"
        return any(re.search(pattern, claim) for pattern in patterns)


def judge(
    case: Case, schedule: tl.Schedule, call: Call, sizes: list[Mapping[str, int]]
) -> Verdict | None:
    """Return the verdict on a step; None if it names what is not there."""
    primitive = primitive_of(schedule, call)
    if primitive is None:
        return None
    claim = ""
    try:
        checked(primitive, schedule.program)
    except Refusal as refusal:
        claim = refusal.claim
    try:
        after = primitive.apply(schedule.program).program
    except Exception as error:
        return Verdict(call, not claim, False, claim, f"cannot be applied: {error!r}")
    fault = find_fault(case, after, sizes)
    return Verdict(call, not claim, fault is None, claim, fault or "")


def find_fault(case: Case, program: Program, sizes: list[Mapping[str, int]]) -> str | None:
    """Return what is wrong with a program, in its form or when it is run at one of ``sizes``."""
    try:
        verify_scheduled(program)
    except (VerificationError, AssertionError) as error:  # or it cannot even be printed
        return f"badly formed: {error}"
    known = set(program.definition.sizes)
    if any(not variables_of(condition.form) <= known for condition in program.conditions):
        return "badly formed: a condition that no call can check"
    if any(
        condition.form.is_constant and condition.form.constant for condition in program.conditions
    ):
        return "badly formed: a condition that no call meets"
    for values in sizes:
        if not meets_conditions(program, values):
            continue
        for seed in range(2):
            try:
                agrees(case, program, values, seed)
            except (tl.TensorlangError, AssertionError, ValueError, IndexError) as error:
                return f"at {dict(values)}: {str(error).strip().splitlines()[0]}"
    return None


def sample_sizes(schedule: tl.Schedule) -> list[Mapping[str, int]]:
    """Return small sizes, equal and unequal ones, zero, one, primes, and around tiles."""
    names = [size.name for size in schedule.definition.sizes]
    largest = 9 if len(names) < 3 else 5 if len(names) < 4 else 3
    rows = [(0, 0), (1, 1), (2, 3), (5, 4), (3, 7), (9, 8), (0, 3), (4, 0)]
    return [{n: min(largest, row[i % 2]) for i, n in enumerate(names)} for row in rows]


def draw(random: Random) -> tuple[Case, tl.Schedule]:
    """Return a schedule after a few random steps."""
    case = random.choice(CASES)
    fixed = {name: random.choice((0, 1, 3, 4, 8)) for name in case.sizes if random.random() < 0.4}
    try:
        schedule = case.schedule(**fixed)
    except ValueError:  # sizes that make an extent negative
        schedule = case.schedule()
    for _ in range(random.randint(0, 3)):
        call = random_call(schedule, random)
        if call is not None:
            with suppress(tl.ScheduleError):
                call.take(schedule)
    return case, schedule


def verdicts(seed: int, count: int) -> Iterator[tuple[tl.Schedule, Verdict]]:
    """Yield verdicts on ``count`` random steps, each on a schedule of its own."""
    for number in range(count):
        random = Random(f"{seed}/{number}")
        case, schedule = draw(random)
        call = random_call(schedule, random)
        verdict = call and judge(case, schedule, call, sample_sizes(schedule))
        if verdict:
            yield schedule, verdict


@dataclass
class Tally:
    """Counts of verdicts on one primitive."""

    accepted: int = 0
    refused: int = 0
    legal: int = 0
    empty: int = 0
    restricted: int = 0
    narrow: int = 0
    claims: Counter[str] = field(default_factory=Counter)


def main() -> None:
    """Print a table of verdicts, and every wrong one."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--show", action="store_true", help="print legal steps that are refused")
    options = parser.parse_args()
    tallies: dict[str, Tally] = defaultdict(Tally)
    for schedule, verdict in verdicts(options.seed, options.count):
        tally = tallies[verdict.call.name]
        tally.legal += verdict.legal
        if verdict.accepted:
            tally.accepted += 1
            if not verdict.legal:
                print(f"WRONG: {verdict.call} is accepted; {verdict.fault}\n{schedule}\n")
                print(schedule.to_python())
            continue
        tally.refused += 1
        if verdict.legal and verdict.is_empty:
            tally.empty += 1
        elif verdict.legal and verdict.is_restriction:
            tally.restricted += 1
        elif verdict.legal:
            tally.narrow += 1
            tally.claims[re.sub(r"[\w./#]+", "_", verdict.claim)] += 1
            if options.show:
                print(f"NARROW: {verdict.call} is refused: {verdict.claim}\n{schedule}\n")
    columns = ("accepted", "refused", "legal", "empty", "restricted", "narrow")
    print(f"{'primitive':22}" + "".join(f"{column:>11}" for column in columns))
    for name, tally in sorted(tallies.items()):
        print(f"{name:22}" + "".join(f"{getattr(tally, column):11}" for column in columns))
    total = {column: sum(getattr(t, column) for t in tallies.values()) for column in columns}
    legal = total["legal"] - total["empty"]
    print(f"legal steps: {legal}, and {total['empty']} refused as nothing was there to act on")
    print(f"refused by a documented restriction: {total['restricted'] / legal:.1%}")
    print(f"refused for no good reason: {total['narrow'] / legal:.1%}")


if __name__ == "__main__":
    main()
