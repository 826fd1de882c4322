"""Walks over index expressions: their variables, substitution, evaluation.

Input:  ``16 * i + j`` and ``{i: 3}``       Output: ``j + 48``
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from tensorlang.ir.affine.atoms import (
    Atom,
    FloorDiv,
    Min,
    Product,
    SymbolicDiv,
    ValueAtom,
    Var,
)
from tensorlang.ir.affine.form import ONE, ZERO, Affine, AffineLike, affine, from_sums, minimum


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
    return from_sums(constant, sums) if changed else index


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
