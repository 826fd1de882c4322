"""Indices that stay in their tensors: proved, turned into conditions on sizes, or refused.

Input:  ``X[2 * i + 1]`` for i < N over ``X: f32[M]``
Output: the condition ``2 * N <= M``, checked at the call

Interval arithmetic on the linear forms answers nearly every question; isl is asked (see
``exact_bounds``) where a condition of ``tl.where`` or a floor division makes the intervals too
wide. An index that is not affine is checked while the program runs, like one taken from data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from tensorlang.dtypes import bool_, i64
from tensorlang.ir.affine import (
    Affine,
    Atom,
    Product,
    SymbolicDiv,
    Var,
    affine,
    maximum,
    substitute,
    variables_of,
)
from tensorlang.ir.branches import ways_to_nodes
from tensorlang.ir.definition import Axis, Condition, Tensor
from tensorlang.ir.expr import (
    Call,
    Const,
    Expr,
    IndexValue,
    Load,
    affine_conditions,
    iterate,
    loads_of,
    negated_conditions,
    value_atom,
)
from tensorlang.ir.interval import bounds, is_nonnegative
from tensorlang.ir.printer import format_access, format_condition
from tensorlang.ir.walk import rewrite_expr
from tensorlang.lang.mistakes import definition_error
from tensorlang.source import UNKNOWN, SourceLocation

Forms = tuple[Affine, ...]
Places = dict[int, tuple[Load, SourceLocation]]
NameOf = Callable[[Tensor], str]
"""How the user calls a tensor, as far as that is known yet."""


@dataclass(slots=True)
class Domain:
    """The points at which something is evaluated: axes, and forms that are >= 0 there."""

    axes: tuple[Axis, ...]
    conditions: Forms = ()

    @property
    def extents(self) -> dict[Var, Affine]:
        """The extent of each axis."""
        return {axis.variable: axis.extent for axis in self.axes}


@dataclass(slots=True)
class _Findings:
    name_of: NameOf
    conditions: list[Condition] = field(default_factory=list[Condition])
    unchecked: dict[int, set[int]] = field(default_factory=dict[int, set[int]])


def check_loads(
    values: tuple[Expr, ...], domain: Domain, places: Places, name_of: NameOf
) -> tuple[tuple[Expr, ...], list[Condition]]:
    """Check every load below ``values`` and return the values with the conditions they need.

    Indices that cannot be decided before the call come back marked as data-dependent, so that
    they are checked at run time.
    """
    findings = _Findings(name_of)
    for load, conditions in _guarded_loads(values, domain.conditions):
        place = places.get(id(load), (load, UNKNOWN))[1]
        _check_load(load, Domain(domain.axes, conditions), place, findings)
    if findings.unchecked:
        values = tuple([rewrite_expr(v, lambda n: _mark(n, findings.unchecked)) for v in values])
    return values, findings.conditions


def _mark(node: Expr, unchecked: dict[int, set[int]]) -> Expr:
    axes = unchecked.get(id(node))
    if not axes or not isinstance(node, Load):
        return node
    indices = list(node.indices)
    for axis in axes:
        # "| 0" keeps the index a value through substitutions: a bare one would turn affine again
        marked = Call("or", (IndexValue(indices[axis], i64), Const(0, i64)), i64)
        indices[axis] = affine(value_atom(marked))
    return Load(node.tensor, tuple(indices))


def _guarded_loads(roots: tuple[Expr, ...], conditions: Forms) -> Iterator[tuple[Load, Forms]]:
    """Yield each load with what holds wherever it is evaluated, for each way that leads to it."""
    ways = ways_to_nodes(roots, lambda condition, taken: bool(_known(condition, taken)))
    for load in loads_of(*roots):
        for branch in ways[id(load)]:
            forms = [form for condition, taken in branch for form in _known(condition, taken)]
            yield load, (*conditions, *forms)


def _known(condition: Expr, taken: bool) -> Forms:
    return _implied(condition) if taken else _implied_by_failure(condition)


def _implied(condition: Expr) -> Forms:
    """Return forms that are >= 0 wherever ``condition`` holds (there may be more to it)."""
    if isinstance(condition, Call) and condition.function == "and" and condition.dtype is bool_:
        return _implied(condition.args[0]) + _implied(condition.args[1])
    if isinstance(condition, Call) and condition.function == "not":
        return _implied_by_failure(condition.args[0])
    return affine_conditions(condition) or ()


def _implied_by_failure(condition: Expr) -> Forms:
    if isinstance(condition, Call) and condition.function == "or" and condition.dtype is bool_:
        return _implied_by_failure(condition.args[0]) + _implied_by_failure(condition.args[1])
    if isinstance(condition, Call) and condition.function == "not":
        return _implied(condition.args[0])
    return negated_conditions(condition) or ()


def _check_load(load: Load, domain: Domain, place: SourceLocation, findings: _Findings) -> None:
    for axis, index in enumerate(load.indices):
        if _depends_on_data(index):
            continue  # checked at run time
        extent = load.tensor.shape[axis]
        needed = (index, extent - 1 - index)
        missing = tuple([form for form in needed if not is_proved(form, domain)])
        if not missing:
            continue
        answer = _condition(missing, domain)
        if isinstance(answer, Refuted):
            raise _leaves(load, axis, answer, findings.name_of(load.tensor), place)
        if answer is None:
            findings.unchecked.setdefault(id(load), set()).add(axis)
            continue
        name = findings.name_of(load.tensor)
        access = format_access(name, load.indices)
        for form, shown in answer:
            where = "" if place is UNKNOWN else f" ({place})"
            message = f"{access} stays inside {name} only if {format_condition(shown)}{where}"
            findings.conditions.append(Condition(form, message))


def _depends_on_data(index: Affine) -> bool:
    return len(list(iterate(IndexValue(index, i64)))) > 1


@dataclass(frozen=True, slots=True)
class Refuted:
    """A form that fails for all sizes, with values of the variables for which it does."""

    witness: tuple[tuple[Var, int], ...]


def _leaves(load: Load, axis: int, answer: Refuted, name: str, place: SourceLocation) -> Exception:
    values = dict(answer.witness)
    index, extent = load.indices[axis], load.tensor.shape[axis]
    at = ", ".join(f"{variable} = {value}" for variable, value in answer.witness)
    number, size = substitute(index, values), substitute(extent, values)
    access = format_access(name, load.indices)
    count = "there is 1 element" if size == affine(1) else f"there are {size} elements"
    example = f"; for {at} it is {number}, and {count}" if at else ""
    return definition_error(
        f"{access} leaves its tensor: index {axis}, {index}, must lie in 0 to {extent} - 1{example}"
        "; shorten the loop, or write tl.where(condition, value, other) to read less",
        place,
    )


# --- deciding --------------------------------------------------------------------------------


def _nonempty(axes: tuple[Axis, ...]) -> dict[Var, Affine]:
    """Return sizes replaced by fresh ones >= 0, using that every axis has a point.

    ``i < N`` at some point means N >= 1, so N becomes N' + 1.
    """
    least: dict[Var, int] = {}
    for axis in axes:
        if len(axis.extent.terms) == 1 and isinstance(axis.extent.terms[0][0], Var):
            size, coef = axis.extent.terms[0]
            assert isinstance(size, Var)
            if coef == 1:
                least[size] = max(least.get(size, 0), 1 - axis.extent.constant)
    return {size: affine(Var(size.name)) + low for size, low in least.items() if low > 0}


def is_proved(form: Affine, domain: Domain) -> bool:
    """Tell whether ``form`` >= 0 on the whole domain, by intervals and the domain's conditions."""
    if is_nonnegative(form, domain.extents):
        return True
    form, domain = name_quotients(form, domain)
    sizes = _nonempty(domain.axes)
    extents = {axis.variable: substitute(axis.extent, sizes) for axis in domain.axes}
    form = substitute(form, sizes)
    if is_nonnegative(form, extents):
        return True
    known = [substitute(condition, sizes) for condition in domain.conditions]
    rests = [form - condition * factor for condition in known for factor in (1, 2)]
    if any(is_nonnegative(rest, extents) for rest in rests):
        return True
    pairs = [rest - condition for rest in rests for condition in known]
    return any(is_nonnegative(rest, extents) for rest in pairs)


def name_quotients(form: Affine, domain: Domain) -> tuple[Affine, Domain]:
    """Replace quotients and remainders by sizes, ``i // N`` and ``i % N``, by axes of their own.

    With i < M * N, the quotient runs to M and the remainder to N, as both are at least 1 where
    there is an i at all.
    """
    axes = list(domain.axes)
    for atom, _ in form.terms:
        for quotient in _quotients(atom):
            extent = _quotient_extent(quotient, domain)
            if extent is None:
                continue
            whole, rest = Axis(Var("q"), extent), Axis(Var("r"), quotient.divisor)
            axes += [whole, rest]
            product = quotient.divisor * quotient
            coef = form.coefficient(product.terms[0][0]) if len(product.terms) == 1 else 0
            form = form + (quotient.operand - rest.variable - product) * coef
            form = form + (affine(whole.variable) - quotient) * form.coefficient(quotient)
    return form, Domain(tuple(axes), domain.conditions)


def _quotients(atom: Atom) -> list[SymbolicDiv]:
    factors = atom.factors if isinstance(atom, Product) else (atom,)
    return [factor for factor in factors if isinstance(factor, SymbolicDiv)]


def _quotient_extent(quotient: SymbolicDiv, domain: Domain) -> Affine | None:
    """Return a bound of ``operand // size``, if the size is not 0 and the operand not negative."""
    positive = {atom for axis in domain.axes for atom in _factors(axis.extent)}
    interval = bounds(quotient.operand, domain.extents)
    if interval is None or not is_nonnegative(interval[0]):
        return None
    if not set(_factors(quotient.divisor)) <= positive or not _factors(quotient.divisor):
        return None
    extent = interval[1] // quotient.divisor + 1
    for atom, coef in extent.terms:  # floor(-1 / N) is -1
        if isinstance(atom, SymbolicDiv) and atom.operand.is_constant and coef == 1:
            extent = extent - atom + (-1 if atom.operand.constant < 0 else atom.operand)
    return extent


def _factors(extent: Affine) -> tuple[Atom, ...]:
    """Return atoms that are at least 1 if ``extent`` is."""
    if len(extent.terms) != 1 or extent.constant > 0 or extent.terms[0][1] < 1:
        return ()
    atom = extent.terms[0][0]
    return atom.factors if isinstance(atom, Product) else (atom,)


Answer = tuple[tuple[Affine, Affine], ...]
"""Conditions: the form that is checked, and its main part, which a message shows."""


def _condition(missing: Forms, domain: Domain) -> Answer | Refuted | None:
    """Return conditions on sizes under which all forms hold; None if that cannot be said."""
    linear = all(_is_linear(form) for form in missing)
    if linear and not domain.conditions:
        answer = _by_intervals(missing, domain)
        if answer is not None:
            return answer
    from tensorlang.lang.exact_bounds import decide

    answer = decide(missing, domain)
    return tuple([(form, form) for form in answer]) if isinstance(answer, tuple) else answer


def _is_linear(form: Affine) -> bool:
    return all(isinstance(atom, Var) for atom, _ in form.terms)


def _by_intervals(missing: Forms, domain: Domain) -> Answer | None:
    """Return the exact conditions: an extreme of a linear form over a box is attained."""
    result: dict[Affine, Affine] = {}
    for form in missing:
        interval = bounds(form, domain.extents)
        if interval is None:
            return None
        least = interval[0]
        if is_proved(-least - 1, Domain(domain.axes)):
            return None  # always out of range: isl finds the example for the message
        result[_or_empty(least, domain.axes)] = least
    return tuple(result.items())


def _or_empty(form: Affine, axes: tuple[Axis, ...]) -> Affine:
    """Return a form that is >= 0 where ``form`` is, and also where an axis has no point."""
    alternatives = [form]
    for axis in axes:
        if axis.extent.is_constant and axis.extent.constant > 0:
            continue
        if len(axis.extent.terms) == 1 and not axis.extent.constant:
            size = axis.extent.terms[0][0]
            if isinstance(size, Var) and is_nonnegative(substitute(form, {size: 0})):
                continue  # the form holds by itself when the axis is empty
        if not variables_of(axis.extent) and axis.extent.constant <= 0:
            return affine(0)
        alternatives.append(-axis.extent)
    return maximum(*alternatives)
