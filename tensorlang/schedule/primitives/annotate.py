"""annotate: a hint for a backend or a rule, attached to a loop; it changes no meaning.

Before                      After ``annotate(k, unroll_by=4)``
::

    for k in K:                 for k in K:  # unroll_by=4
        ...                         ...
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from tensorlang.ir.affine import Var
from tensorlang.ir.program import Program, Stmt
from tensorlang.schedule.primitives.base import Outcome
from tensorlang.schedule.refusal import Refusal
from tensorlang.schedule.tree import Loop, replace_loop


@dataclass(frozen=True, slots=True)
class Annotate:
    """Attach ``hints`` to ``loop``; a hint given again replaces the old one."""

    loop: Var
    hints: tuple[tuple[str, Any], ...]

    def check(self, program: Program) -> None:
        """Refuse hints that are neither numbers nor strings."""
        for key, value in self.hints:
            if not isinstance(value, str | int | bool | float):
                raise Refusal(
                    f"the hint {key} is a {type(value).__name__}",
                    "a string, a number or a truth value",
                    loops=(self.loop,),
                )

    def apply(self, program: Program) -> Outcome:
        """Return the program with the hints attached."""
        new = dict(self.hints)

        def annotated(loop: Loop) -> Stmt:
            kept = tuple((key, value) for key, value in loop.hints if key not in new)
            return replace(loop, hints=kept + self.hints)

        return Outcome(replace(program, body=replace_loop(program.body, self.loop, annotated)))
