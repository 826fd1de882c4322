"""Index expressions: a constant plus a sorted sum of coefficient times atom.

Input:  ``i * 16 + j - j``      Output: ``Affine(0, ((i, 16),))``

The form is canonical, so equality of index expressions is equality of tuples; substitution,
strides along a lane, interval bounds and isl text all read it directly. Everything that is not
linear is an atom of its own: a floor division by a constant (``FloorDiv``) or by a size
(``SymbolicDiv``), a product of atoms, a minimum, an integer taken from data (``ValueAtom``).
Keys are computed once, at construction: sorting by freshly made keys dominated code generation.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias, Union

if TYPE_CHECKING:
    from tensorlang.ir.expr import Expr

_serials = itertools.count()


class Var:
    """A symbolic integer: a size (M), an axis of a stage, or a loop, for which it is the handle.

    Compared by identity. The name is for people; tracing sets it once the comprehension has told
    how the user calls the axis.
    """

    __slots__ = ("key", "name", "order", "serial")

    def __init__(self, name: str, order: int | None = None) -> None:
        self.name = name
        self.serial = next(_serials)
        self.order = self.serial if order is None else order
        self.key: Key = (0, self.order, self.serial)

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[type[Var], tuple[str, int]]:
        # A fresh serial, since those of two processes must not collide; the old order, so that
        # the terms of canonical forms stay in the order in which they stood.
        return Var, (self.name, self.order)


class _Structural:
    """Equality and hash through ``key``, which each atom computes once."""

    __slots__ = ("_hash", "key")
    key: Key
    _hash: int

    def _set_key(self, key: Key) -> None:
        self.key = key
        self._hash = hash(key)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, _Structural) and self.key == other.key)

    def __hash__(self) -> int:
        return self._hash


class FloorDiv(_Structural):
    """``floor(operand / divisor)`` with a constant ``divisor`` > 1."""

    __slots__ = ("divisor", "operand")

    def __init__(self, operand: Affine, divisor: int) -> None:
        self.operand = operand
        self.divisor = divisor
        self._set_key((1, divisor, operand.key))

    def __repr__(self) -> str:
        return f"{_operand_text(self.operand)} // {self.divisor}"

    def __reduce__(self) -> tuple[Any, ...]:
        return FloorDiv, (self.operand, self.divisor)


class SymbolicDiv(_Structural):
    """``floor(operand / divisor)`` with a symbolic ``divisor``, positive where it is evaluated."""

    __slots__ = ("divisor", "operand")

    def __init__(self, operand: Affine, divisor: Affine) -> None:
        self.operand = operand
        self.divisor = divisor
        self._set_key((2, operand.key, divisor.key))

    def __repr__(self) -> str:
        return f"{_operand_text(self.operand)} // {_operand_text(self.divisor)}"

    def __reduce__(self) -> tuple[Any, ...]:
        return SymbolicDiv, (self.operand, self.divisor)


class Product(_Structural):
    """The product of two or more atoms, sorted by key."""

    __slots__ = ("factors",)

    def __init__(self, factors: tuple[Atom, ...]) -> None:
        self.factors = factors
        self._set_key((3, tuple(factor.key for factor in factors)))

    def __repr__(self) -> str:
        return " * ".join(
            f"({factor!r})" if isinstance(factor, FloorDiv | SymbolicDiv) else repr(factor)
            for factor in self.factors
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return _sorted_product, (self.factors,)


class Min(_Structural):
    """The least of two or more index expressions."""

    __slots__ = ("operands",)

    def __init__(self, operands: tuple[Affine, ...]) -> None:
        self.operands = operands
        self._set_key((4, tuple(operand.key for operand in operands)))

    def __repr__(self) -> str:
        return f"min({', '.join(map(str, self.operands))})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _sorted_min, (self.operands,)


class ValueAtom(_Structural):
    """An integer that depends on data: ``X[table[i]]``. Made by ``expr.index_from_value``."""

    __slots__ = ("expr", "variables")

    def __init__(self, expr: Expr, variables: frozenset[Var], key: Key) -> None:
        self.expr = expr
        self.variables = variables
        self._set_key((5, key))

    def __repr__(self) -> str:
        from tensorlang.ir.printer import format_expr

        return f"int({format_expr(self.expr)})"

    def __reduce__(self) -> tuple[Any, ...]:
        from tensorlang.ir.expr import value_atom

        return value_atom, (self.expr,)


def _operand_text(index: Affine) -> str:
    """Return an operand of a division: a single variable stands without parentheses."""
    alone = index.constant == 0 and len(index.terms) == 1 and index.terms[0][1] == 1
    return str(index) if alone and isinstance(index.terms[0][0], Var) else f"({index})"


Key: TypeAlias = tuple[Any, ...]
Atom: TypeAlias = Var | FloorDiv | SymbolicDiv | Product | Min | ValueAtom
AffineLike: TypeAlias = Union["Affine", int, Atom]


class Affine:
    """``constant + sum(coefficient * atom)``, canonical; supports ``+ - *`` and ``// %``.

    Division is floor division, as Python's, by a positive constant or by a size.
    """

    __slots__ = ("_hash", "constant", "key", "terms")

    def __init__(self, constant: int, terms: tuple[tuple[Atom, int], ...] = ()) -> None:
        self.constant = constant
        self.terms = terms
        self.key: Key = (constant, tuple([(atom.key, coef) for atom, coef in terms]))
        self._hash = hash(self.key)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Affine) and self.key == other.key)

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[Any, ...]:
        return from_terms, (self.constant, self.terms)

    def __add__(self, other: AffineLike) -> Affine:
        other = affine(other)
        if not other.terms:
            return Affine(self.constant + other.constant, self.terms) if other.constant else self
        if not self.terms:
            return Affine(self.constant + other.constant, other.terms)
        sums = dict(self.terms)
        for atom, coef in other.terms:
            sums[atom] = sums.get(atom, 0) + coef
        return _from_sums(self.constant + other.constant, sums)

    __radd__ = __add__

    def __neg__(self) -> Affine:
        return self * -1

    def __sub__(self, other: AffineLike) -> Affine:
        return self + affine(other) * -1

    def __rsub__(self, other: AffineLike) -> Affine:
        return affine(other) + self * -1

    def __mul__(self, other: AffineLike) -> Affine:
        other = affine(other)
        if not other.terms:
            return self._scaled(other.constant)
        if not self.terms:
            return other._scaled(self.constant)
        result = self._scaled(other.constant) + other._scaled(self.constant)
        result = result - self.constant * other.constant
        for left, left_coef in self.terms:
            for right, right_coef in other.terms:
                result = result + multiply_atoms((left, right))._scaled(left_coef * right_coef)
        return result

    __rmul__ = __mul__

    def _scaled(self, factor: int) -> Affine:
        if factor == 1:
            return self
        if factor == 0:
            return ZERO
        terms = tuple([(atom, coef * factor) for atom, coef in self.terms])
        return Affine(self.constant * factor, terms)

    def __floordiv__(self, other: AffineLike) -> Affine:
        divisor = affine(other)
        if divisor.terms:
            return _divide_symbolic(self, divisor)
        return _divide_constant(self, divisor.constant)

    def __mod__(self, other: AffineLike) -> Affine:
        return self - (self // other) * other

    def __bool__(self) -> bool:
        raise TypeError("an index expression has no truth value; compare it with ==")

    def coefficient(self, atom: Atom) -> int:
        """Return the coefficient of ``atom``; it says nothing about ``atom`` inside other atoms.

        Use :func:`linear_coefficient` to ask how the whole expression moves with a variable.
        """
        for candidate, coef in self.terms:
            if candidate is atom or candidate == atom:
                return coef
        return 0

    @property
    def is_constant(self) -> bool:
        """Whether the expression is a plain integer, found in ``constant``."""
        return not self.terms

    def __repr__(self) -> str:
        text = ""
        for term, coef, is_quotient in _printed_terms(self):
            factor = f"{abs(coef)} * " if abs(coef) != 1 else ""
            if is_quotient and (factor or (coef < 0 and not text)):
                term = f"({term})"
            if text:
                text += f" {'-' if coef < 0 else '+'} {factor}{term}"
            else:
                text = f"{'-' if coef < 0 else ''}{factor}{term}"
        if not text:
            return str(self.constant)
        if self.constant:
            text += f" {'-' if self.constant < 0 else '+'} {abs(self.constant)}"
        return text


def _printed_terms(index: Affine) -> list[tuple[str, int, bool]]:
    """Return the terms as text, their coefficients, and whether they are quotients.

    ``x - d * (x // d)`` is written as the remainder it is.
    """
    remaining = dict(index.terms)
    printed: list[tuple[str, int, bool]] = []
    for atom, coef in index.terms:
        if not isinstance(atom, FloorDiv) or coef % atom.divisor or atom.operand.constant:
            continue
        factor = -coef // atom.divisor
        parts = [(inner, inner_coef * factor) for inner, inner_coef in atom.operand.terms]
        if all(remaining.get(inner) == inner_coef for inner, inner_coef in parts):
            for inner, _ in parts:
                del remaining[inner]
            del remaining[atom]
            printed.append((f"{_operand_text(atom.operand)} % {atom.divisor}", factor, True))
    plain = [
        (repr(atom), coef, isinstance(atom, FloorDiv | SymbolicDiv))
        for atom, coef in remaining.items()
    ]
    return plain + printed


ZERO = Affine(0)
ONE = Affine(1)


def _from_sums(constant: int, sums: Mapping[Atom, int]) -> Affine:
    terms = [(atom, coef) for atom, coef in sums.items() if coef]
    terms.sort(key=lambda term: term[0].key)
    return Affine(constant, tuple(terms))


def from_terms(constant: int, terms: tuple[tuple[Atom, int], ...]) -> Affine:
    """Return the canonical form of ``constant + sum(coef * atom)`` for terms in any order."""
    sums: dict[Atom, int] = {}
    for atom, coef in terms:
        sums[atom] = sums.get(atom, 0) + coef
    return _from_sums(constant, sums)


def affine(value: AffineLike) -> Affine:
    """Return ``value`` (an integer, an atom or an index expression) as an index expression."""
    if isinstance(value, Affine):
        return value
    if isinstance(value, int):
        return Affine(int(value))
    return Affine(0, ((value, 1),))


def multiply_atoms(atoms: tuple[Atom, ...]) -> Affine:
    """Return the product of atoms as an index expression; products within it are flattened."""
    factors: list[Atom] = []
    for atom in atoms:
        factors.extend(atom.factors if isinstance(atom, Product) else (atom,))
    if len(factors) == 1:
        return affine(factors[0])
    factors.sort(key=lambda factor: factor.key)
    return affine(Product(tuple(factors)))


def _sorted_product(factors: tuple[Atom, ...]) -> Product:
    """Return the product of atoms whose order may have changed: unpickled variables are new."""
    return Product(tuple(sorted(factors, key=lambda factor: factor.key)))


def _sorted_min(operands: tuple[Affine, ...]) -> Min:
    """Return the minimum of operands whose order may have changed."""
    return Min(tuple(sorted(operands, key=lambda operand: operand.key)))


def minimum(*operands: AffineLike) -> Affine:
    """Return the least of ``operands``, dropping those that another one is plainly below."""
    kept: list[Affine] = []
    for operand in map(affine, operands):
        below = [other for other in kept if _known_difference(operand, other) is not None]
        if below:
            if operand.constant < below[0].constant:
                kept[kept.index(below[0])] = operand
            continue
        kept.append(operand)
    if len(kept) == 1:
        return kept[0]
    kept.sort(key=lambda operand: operand.key)
    return affine(Min(tuple(kept)))


def maximum(*operands: AffineLike) -> Affine:
    """Return the greatest of ``operands``."""
    return -minimum(*[-affine(operand) for operand in operands])


def _known_difference(left: Affine, right: Affine) -> int | None:
    return left.constant - right.constant if left.key[1] == right.key[1] else None


def _divide_constant(dividend: Affine, divisor: int) -> Affine:
    if divisor == 0:
        raise ZeroDivisionError("an index expression is divided by zero")
    if divisor < 0:
        return _divide_constant(-dividend, -divisor)
    if divisor == 1:
        return dividend
    # floor((q*d + r) / d) = q + floor(r / d): whole multiples leave the division.
    whole = tuple([(atom, coef // divisor) for atom, coef in dividend.terms if coef % divisor == 0])
    rest = tuple([(atom, coef) for atom, coef in dividend.terms if coef % divisor])
    quotient = Affine(dividend.constant // divisor, whole)
    if not rest:
        return quotient
    inner = Affine(dividend.constant % divisor, rest)
    return quotient + _floor_div_atom(inner, divisor)


def _floor_div_atom(inner: Affine, divisor: int) -> Affine:
    if len(inner.terms) == 1:
        atom, coef = inner.terms[0]
        if isinstance(atom, FloorDiv) and coef == 1:
            # (floor(x / a) + c) // b = (x + a*c) // (a*b)
            operand = atom.operand + atom.divisor * inner.constant
            return _divide_constant(operand, atom.divisor * divisor)
    return affine(FloorDiv(inner, divisor))


def _divide_symbolic(dividend: Affine, divisor: Affine) -> Affine:
    if dividend == divisor:
        return ONE
    if len(divisor.terms) == 1 and divisor.terms[0][1] == 1 and divisor.constant == 0:
        # multiples of the divisor leave the division: (N*f + j) // N = f + j // N
        unit = divisor.terms[0][0]
        quotient, rest = ZERO, affine(dividend.constant)
        for atom, coef in dividend.terms:
            cofactor = _cofactor(atom, unit)
            if cofactor is None:
                rest = rest + affine(atom) * coef
            else:
                quotient = quotient + cofactor * coef
        if quotient != ZERO:
            if rest == ZERO:
                return quotient
            return quotient + affine(SymbolicDiv(rest, divisor))
    if dividend == ZERO:
        return ZERO
    return affine(SymbolicDiv(dividend, divisor))


def _cofactor(atom: Atom, unit: Atom) -> Affine | None:
    if atom == unit:
        return ONE
    if isinstance(atom, Product) and unit in atom.factors:
        factors = list(atom.factors)
        factors.remove(unit)
        return multiply_atoms(tuple(factors))
    return None


def variables_of(index: Affine) -> frozenset[Var]:
    """Return every variable that ``index`` depends on, at any depth."""
    found: set[Var] = set()
    for atom, _ in index.terms:
        found.update(atom_variables(atom))
    return frozenset(found)


def atom_variables(atom: Atom) -> Iterator[Var]:
    """Yield the variables that ``atom`` depends on, perhaps more than once."""
    match atom:
        case Var():
            yield atom
        case FloorDiv():
            yield from variables_of(atom.operand)
        case SymbolicDiv():
            yield from variables_of(atom.operand)
            yield from variables_of(atom.divisor)
        case Product():
            for factor in atom.factors:
                yield from atom_variables(factor)
        case Min():
            for operand in atom.operands:
                yield from variables_of(operand)
        case ValueAtom():
            yield from atom.variables


def depends_on(index: Affine, variables: frozenset[Var] | set[Var]) -> bool:
    """Tell whether ``index`` depends on one of ``variables``."""
    return not variables_of(index).isdisjoint(variables)


def linear_coefficient(index: Affine, variable: Var) -> int | None:
    """Return how much ``index`` moves when ``variable`` grows by one, None if that varies.

    A coefficient alone is not a dependence: ``v + v // 4`` has coefficient 1 for ``v``, and yet
    is not linear in it. So ``variable`` may stand in no other atom.
    """
    result = 0
    for atom, coef in index.terms:
        if atom is variable:
            result = coef
        elif not isinstance(atom, Var) and variable in atom_variables(atom):
            return None
    return result


def substitute(
    index: Affine,
    mapping: Mapping[Var, AffineLike],
    value: Callable[[ValueAtom], AffineLike] | None = None,
) -> Affine:
    """Return ``index`` with variables replaced, simultaneously and at any depth.

    ``value`` replaces what is taken from data; whoever substitutes in much that is shared gives
    one that remembers (``walk.Substitution``).
    """
    if not index.terms:
        return index
    return map_atoms(index, lambda atom: _substitute_atom(atom, mapping, value))


def map_atoms(index: Affine, replace: Callable[[Atom], AffineLike]) -> Affine:
    """Return ``index`` with each of its atoms replaced by ``replace(atom)``."""
    constant, sums, changed = index.constant, dict[Atom, int](), False
    for atom, coef in index.terms:
        new = replace(atom)
        if new is atom:
            sums[atom] = sums.get(atom, 0) + coef
            continue
        changed = True
        new = affine(new)
        constant += new.constant * coef
        for inner, inner_coef in new.terms:
            sums[inner] = sums.get(inner, 0) + inner_coef * coef
    return _from_sums(constant, sums) if changed else index


def _substitute_atom(
    atom: Atom,
    mapping: Mapping[Var, AffineLike],
    value: Callable[[ValueAtom], AffineLike] | None,
) -> AffineLike:
    match atom:
        case Var():
            return mapping.get(atom, atom)
        case FloorDiv():
            operand = substitute(atom.operand, mapping, value)
            return atom if operand is atom.operand else operand // atom.divisor
        case SymbolicDiv():
            operand, divisor = (
                substitute(part, mapping, value) for part in (atom.operand, atom.divisor)
            )
            if operand is atom.operand and divisor is atom.divisor:
                return atom
            return operand // divisor if divisor != ZERO else ZERO  # as where it is evaluated
        case Product():
            factors = [_substitute_atom(factor, mapping, value) for factor in atom.factors]
            if all(new is old for new, old in zip(factors, atom.factors, strict=True)):
                return atom
            result = ONE
            for factor in factors:
                result = result * affine(factor)
            return result
        case Min():
            operands = [substitute(operand, mapping, value) for operand in atom.operands]
            if all(new is old for new, old in zip(operands, atom.operands, strict=True)):
                return atom
            return minimum(*operands)
        case ValueAtom():
            if atom.variables.isdisjoint(mapping):
                return atom
            if value is None:
                from tensorlang.ir.walk import Substitution

                value = Substitution(mapping).value
            return value(atom)


def evaluate(index: Affine, values: Mapping[Var, int]) -> int:
    """Return the integer value of an expression without data-dependent atoms.

    Raises KeyError for a variable without a value and TypeError for a ``ValueAtom``.
    """
    return index.constant + sum(coef * _evaluate_atom(atom, values) for atom, coef in index.terms)


def _evaluate_atom(atom: Atom, values: Mapping[Var, int]) -> int:
    match atom:
        case Var():
            return values[atom]
        case FloorDiv():
            return evaluate(atom.operand, values) // atom.divisor
        case SymbolicDiv():
            divisor = evaluate(atom.divisor, values)
            return evaluate(atom.operand, values) // divisor if divisor else 0
        case Product():
            result = 1
            for factor in atom.factors:
                result *= _evaluate_atom(factor, values)
            return result
        case Min():
            return min(evaluate(operand, values) for operand in atom.operands)
        case ValueAtom():
            raise TypeError(f"{atom!r} depends on data and has no value before the call")
