"""What is known of sizes while rules choose: fixed sizes, and what a schedule assumes.

Input:  a program with ``assume(M <= 32)``; the extent ``2 * M + 1``
Output: ``Range(1, 65)``
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tensorlang.ir.affine import Affine, Var
from tensorlang.ir.definition import Condition


@dataclass(frozen=True, slots=True)
class Range:
    """The least and the greatest value that a size may have; None: no bound is known."""

    low: int
    high: int | None

    @property
    def exact(self) -> int | None:
        """The value, if there is only one."""
        return self.low if self.low == self.high else None

    def is_at_most(self, limit: int) -> bool:
        """Tell whether every value is at most ``limit``."""
        return self.high is not None and self.high <= limit


ANY = Range(0, None)


class Facts:
    """The ranges of sizes under conditions."""

    def __init__(self, conditions: Iterable[Condition] = ()) -> None:
        self._ranges: dict[Var, Range] = {}
        for condition in conditions:
            self._learn(condition)

    def range_of(self, form: Affine) -> Range:
        """Return the range of a sum of sizes; ``ANY`` for what is more than that."""
        least: int | None = form.constant
        greatest: int | None = form.constant
        for atom, coef in form.terms:
            known = self._ranges.get(atom, ANY) if isinstance(atom, Var) else None
            if known is None:
                return ANY
            ends = (known.low, known.high) if coef > 0 else (known.high, known.low)
            least = None if least is None or ends[0] is None else least + coef * ends[0]
            greatest = None if greatest is None or ends[1] is None else greatest + coef * ends[1]
        return Range(max(0, least or 0), greatest)

    def _learn(self, condition: Condition) -> None:
        if len(condition.form.terms) != 1:
            return
        (atom, coef), constant = condition.form.terms[0], condition.form.constant
        if not isinstance(atom, Var):
            return
        known = self._ranges.get(atom, ANY)
        if coef < 0 or condition.equality:  # coef * size + constant >= 0 bounds it from above
            limit = constant // -coef if coef < 0 else -constant // coef
            high = limit if known.high is None else min(known.high, limit)
            known = Range(known.low, high)
        if coef > 0 or condition.equality:
            limit = -(constant // coef) if coef > 0 else constant // -coef
            known = Range(max(known.low, limit), known.high)
        self._ranges[atom] = known
