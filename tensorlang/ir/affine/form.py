"""Index expressions: a constant plus a sorted sum of coefficient times atom.

Input:  ``i * 16 + j - j``      Output: ``Affine(0, ((i, 16),))``

The form is canonical, so equality of index expressions is equality of tuples; substitution,
strides along a lane, interval bounds and isl text all read it directly. Everything that is not
linear is an atom of its own (see ``atoms``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias, Union

from tensorlang.ir.affine.atoms import (
    Atom,
    FloorDiv,
    Key,
    Min,
    Product,
    SymbolicDiv,
    operand_text,
)

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
        return from_sums(self.constant + other.constant, sums)

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
            printed.append((f"{operand_text(atom.operand)} % {atom.divisor}", factor, True))
    plain = [
        (repr(atom), coef, isinstance(atom, FloorDiv | SymbolicDiv))
        for atom, coef in remaining.items()
    ]
    return plain + printed


ZERO = Affine(0)
ONE = Affine(1)


def from_sums(constant: int, sums: Mapping[Atom, int]) -> Affine:
    """Return the canonical form of a constant and the sum of coefficients of each atom."""
    terms = [(atom, coef) for atom, coef in sums.items() if coef]
    terms.sort(key=lambda term: term[0].key)
    return Affine(constant, tuple(terms))


def from_terms(constant: int, terms: tuple[tuple[Atom, int], ...]) -> Affine:
    """Return the canonical form of ``constant + sum(coef * atom)`` for terms in any order."""
    sums: dict[Atom, int] = {}
    for atom, coef in terms:
        sums[atom] = sums.get(atom, 0) + coef
    return from_sums(constant, sums)


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
