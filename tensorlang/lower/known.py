"""What holds at a place of a program: the ranges of the loops around it, and the conditions.

Input:  loops ``i.o < (M + 5) // 6``, ``i.i < 6``; the condition ``M % 6 == 0``
Output: ``known.proves(M - 1 - 6 * i.o - i.i)`` is True, so that guard can go

Interval arithmetic only: microseconds a question, and "not proved" where it does not see.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from tensorlang.ir.affine import (
    Affine,
    AffineLike,
    FloorDiv,
    Min,
    Var,
    affine,
    linear_coefficient,
    substitute,
    variables_of,
)
from tensorlang.ir.definition import Condition
from tensorlang.ir.interval import bounds, is_nonnegative
from tensorlang.ir.program import For, Fused, Program, Stmt


@dataclass(frozen=True, slots=True)
class Known:
    """Ranges of the loops around a place, forms known to be >= 0, and facts about the sizes.

    ``facts`` rewrite sizes: ``{N: 8 * q}`` says that N is a multiple of 8, ``{N: n + 64}`` that it
    is at least 64.
    """

    extents: Mapping[Var, Affine]
    facts: Mapping[Var, Affine]
    assumed: tuple[Affine, ...] = ()

    def inside(self, stmt: Stmt) -> Known:
        """Return what holds in the body of a loop (of another statement: what holds here)."""
        match stmt:
            case For():
                return self._with_ranges(((stmt.variable, stmt.extent),))
            case Fused():
                return self._with_ranges(zip(stmt.variables, stmt.extents, strict=True))
            case _:
                return self

    def _with_ranges(self, ranges: Iterable[tuple[Var, Affine]]) -> Known:
        new = {variable: substitute(extent, self.facts) for variable, extent in ranges}
        runs = [form for extent in new.values() for form in _where_positive(extent)]
        return replace(self, extents={**self.extents, **new}, assumed=(*self.assumed, *runs))

    def assuming(self, forms: tuple[Affine, ...]) -> Known:
        """Return what holds where all ``forms`` are >= 0."""
        return replace(self, assumed=self.assumed + tuple(substitute(f, self.facts) for f in forms))

    def decide(self, form: Affine) -> bool | None:
        """Tell whether ``form`` >= 0 at this place: always, never, or None for "not known"."""
        if not form.terms:
            return form.constant >= 0
        form = substitute(form, self.facts)
        if any(_is_plainly_below(other, form) for other in self.assumed):
            return True
        if self._is_always_nonnegative(form):
            return True
        return False if self._is_always_nonnegative(-form - 1) else None

    def _is_always_nonnegative(self, form: Affine) -> bool:
        for lower in self._lower_forms(form):
            interval = bounds(lower, self.extents)
            if interval is not None and _is_nonnegative(interval[0]):
                return True
        return False

    def _lower_forms(self, form: Affine) -> Iterator[Affine]:
        """Yield forms that are never greater, in which loops that end with others have ended.

        Where ``k.i < min(K - 64 * k.o, 64)``, ``K - 64 * k.o - k.i - 1`` is least at the end, by
        either limit; taken on its own, ``k.o`` would be bounded twice.
        """
        yield form
        for variable in variables_of(form) & self.extents.keys():
            extent = self.extents[variable]
            coefficient = linear_coefficient(form, variable)
            if coefficient is None or coefficient >= 0 or _ends_alone(extent, self.extents):
                continue
            for end in _limits(extent):
                yield from self._lower_forms(substitute(form, {variable: end - 1}))
            return

    def proves(self, form: Affine) -> bool:
        """Tell whether ``form`` >= 0 for certain at this place."""
        return self.decide(form) is True


def _ends_alone(extent: Affine, loops: Mapping[Var, Affine]) -> bool:
    return variables_of(extent).isdisjoint(loops)


def _limits(extent: Affine) -> tuple[Affine, ...]:
    """Return forms of which a loop's extent is the least."""
    match extent.terms:
        case ((Min(operands=operands), 1),):
            return tuple([end + extent.constant for end in operands])
        case _:
            return (extent,)


def _where_positive(extent: Affine) -> tuple[Affine, ...]:
    """Return forms that are >= 0 where a loop runs: M - 1, where it has (M + 7) // 8 steps."""
    match extent.terms:
        case ((FloorDiv(operand=operand, divisor=divisor), 1),):
            return (operand - divisor * (1 - extent.constant),)
        case ((Min(), 1),):
            return tuple([form for end in _limits(extent) for form in _where_positive(end)])
        case ():
            return ()
        case _:
            return (extent - 1,)


def _is_plainly_below(lesser: Affine, greater: Affine) -> bool:
    return lesser.terms == greater.terms and lesser.constant <= greater.constant


def _is_nonnegative(bound: Affine) -> bool:
    return is_nonnegative(_without_divisions(bound))


def _without_divisions(form: Affine) -> Affine:
    """Return a lower bound of ``form`` without the roundings that loops' extents leave behind.

    ``x - d * (x // d)`` is at least 0: of ``M + 5 - 6 * ((M + 5) // 6)`` nothing is left. So is
    ``x // d - y // d`` where ``x >= y``.
    """
    for atom, coef in form.terms:
        if not isinstance(atom, FloorDiv) or coef >= 0:
            continue
        for other, other_coef in form.terms:
            if (
                isinstance(other, FloorDiv)
                and other_coef >= -coef
                and other.divisor == atom.divisor
                and is_nonnegative(other.operand - atom.operand)
            ):
                return _without_divisions(form - (affine(other) - affine(atom)) * -coef)
        if coef % atom.divisor == 0:
            remainder = atom.operand - affine(atom) * atom.divisor
            return _without_divisions(form - remainder * (-coef // atom.divisor))
    return form


def known_of(program: Program) -> Known:
    """Return what holds everywhere in ``program``."""
    return Known({}, facts_of((*program.definition.conditions, *program.conditions)))


def facts_of(conditions: Iterable[Condition]) -> dict[Var, Affine]:
    """Return the facts that the conditions ``N % d == 0`` and ``N >= c`` state about sizes."""
    factors: dict[Var, int] = {}
    least: dict[Var, int] = {}
    for condition in conditions:
        form = condition.form if condition.equality else None
        if form is not None:
            variable, factor = _multiple(form) or _multiple(-form) or (None, 1)
            if variable is not None:
                current = factors.get(variable, 1)
                factors[variable] = factor if factor % current == 0 else current
        elif len(condition.form.terms) == 1:
            atom, coef = condition.form.terms[0]
            if isinstance(atom, Var) and coef == 1 and condition.form.constant < 0:
                least[atom] = max(least.get(atom, 0), -condition.form.constant)
    facts: dict[Var, Affine] = {}
    for variable in factors.keys() | least.keys():
        factor = factors.get(variable, 1)
        quotient: AffineLike = Var(variable.name)
        floor = -(-least.get(variable, 0) // factor)
        facts[variable] = affine(quotient) * factor + floor * factor
    return facts


def _multiple(form: Affine) -> tuple[Var, int] | None:
    """Recognise ``N - d * (N // d)``, the remainder of a size."""
    if form.constant or len(form.terms) != 2:
        return None
    for (first, first_coef), (second, coef) in (form.terms, form.terms[::-1]):
        if isinstance(first, Var) and first_coef == 1 and isinstance(second, FloorDiv):
            same = second.operand == affine(first) and coef == -second.divisor
            return (first, second.divisor) if same else None
    return None
