"""How a step refuses: the claim that fails, the place, a counterexample, and what to try instead.

A primitive raises :class:`Refusal`, which knows nothing of the user; the ``Schedule`` turns it into
a ``ScheduleError`` that names the user's line and shows the loop nest with the place marked.
"""

from __future__ import annotations

from tensorlang.errors import ScheduleError
from tensorlang.ir.affine import Var
from tensorlang.ir.printer import format_stmt
from tensorlang.ir.program import Compute, For, Fused, Program, Stmt
from tensorlang.ir.rename import distinct_names
from tensorlang.ir.walk import iterate
from tensorlang.schedule.tree import handle_of
from tensorlang.source import SourceLocation


class Refusal(Exception):  # noqa: N818 - it is an answer, not an error
    """A step that may not be taken, and why."""

    def __init__(
        self,
        claim: str,
        advice: str,
        *,
        loops: tuple[Var, ...] = (),
        compute: Compute | None = None,
        counterexample: str = "",
    ) -> None:
        super().__init__(claim)
        self.claim = claim
        self.advice = advice
        self.loops = loops
        self.compute = compute
        self.counterexample = counterexample


def schedule_error(
    refusal: Refusal, step: str, location: SourceLocation, program: Program | None
) -> ScheduleError:
    """Return the error that a user sees for a refused step."""
    lines = [
        f"{step} is refused: {refusal.claim}",
        f"  at {location}: {location.text}".rstrip(": "),
    ]
    if program is not None and (refusal.loops or refusal.compute is not None):
        lines.append("")
        lines.extend(f"    {line}" for line in marked_nest(program, refusal))
    if refusal.counterexample:
        lines += ["", f"Counterexample: {refusal.counterexample}"]
    if refusal.advice:
        lines += ["", f"Try: {refusal.advice}"]
    return ScheduleError("\n".join(lines))


def marked_nest(program: Program, refusal: Refusal) -> list[str]:
    """Return the printed program with an arrow at the loops or statement in question."""

    def is_meant(stmt: Stmt) -> bool:
        if isinstance(stmt, For | Fused):
            return any(handle_of(stmt) is variable for variable in refusal.loops)
        return stmt is refusal.compute

    printed = distinct_names(program.body)  # statement by statement the same tree
    pairs = zip(iterate(program.body), iterate(printed), strict=True)
    meant = {id(new) for old, new in pairs if is_meant(old)}
    return list(
        format_stmt(printed, mark=lambda stmt: "    # <-- here" if id(stmt) in meant else "")
    )
