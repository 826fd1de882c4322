"""assume: a condition on the sizes that the schedule relies on, checked at each call.

``assume(N % 8 == 0)`` lets ``split(j, 8)`` do without a guard.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tensorlang.ir.affine import Affine, variables_of
from tensorlang.ir.definition import Condition
from tensorlang.ir.program import Program
from tensorlang.schedule.primitives.base import Outcome
from tensorlang.schedule.refusal import Refusal


@dataclass(frozen=True, slots=True)
class Assume:
    """Rely on ``form >= 0``, or on ``form == 0``."""

    form: Affine
    equality: bool
    text: str

    def check(self, program: Program) -> None:
        """Refuse conditions on anything but the operator's sizes, and those that never hold."""
        foreign = variables_of(self.form) - set(program.definition.sizes)
        if foreign:
            known = ", ".join(map(str, program.definition.sizes)) or "none that are symbolic"
            raise Refusal(
                f"{', '.join(sorted(map(str, foreign)))} is no size of {program.definition.name}",
                f"a condition on its sizes: {known}",
            )
        value = self.form.constant
        if self.form.is_constant and (value != 0 if self.equality else value < 0):
            raise Refusal(f"{self.text} never holds", "a condition that some sizes meet")

    def apply(self, program: Program) -> Outcome:
        """Return the program with the condition recorded."""
        condition = Condition(
            self.form, f"the schedule assumes {self.text}", equality=self.equality
        )
        return Outcome(replace(program, conditions=(*program.conditions, condition)))
