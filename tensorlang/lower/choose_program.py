"""Put programs for ranges of sizes together: a call runs the first whose conditions hold.

Input:  a program that assumes M <= 32, and one for any sizes
Output::

    if M <= 32:
        ...
    else:
        ...

All are programs of one definition. What a special program assumes is tested here; the conditions
of the general one stay with the result, to be checked at the call.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tensorlang.ir.affine import Affine
from tensorlang.ir.program import If, Program


def choose_program(special: Sequence[Program], general: Program) -> Program:
    """Return one program out of several, of which the earlier ones are preferred."""
    body = general.body
    for program in reversed(special):
        body = If(_assumed(program), program.body, body)
    return general if not special else replace(general, body=body)


def _assumed(program: Program) -> tuple[Affine, ...]:
    """Return the forms that are >= 0 exactly where the conditions of a program hold."""
    forms: list[Affine] = []
    for condition in program.conditions:
        forms.append(condition.form)
        if condition.equality:
            forms.append(-condition.form)
    return tuple(forms)
