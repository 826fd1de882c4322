"""Index expressions made simpler by what is known of their variables' ranges.

Input:  ``(16 * jb + jv) // 32`` with ``jb < 2`` and ``jv < 16``      Output: ``0``

A quotient whose dividend stays within one period is a constant (or a form over outer variables);
that is what turns the addresses of packed panels back into strides.
"""

from __future__ import annotations

from tensorlang.ir.affine import (
    ONE,
    Affine,
    AffineLike,
    Atom,
    FloorDiv,
    Min,
    Product,
    Var,
    affine,
    map_atoms,
    minimum,
)
from tensorlang.ir.interval import Extents, bounds, is_nonnegative


def simplify_index(index: Affine, extents: Extents) -> Affine:
    """Return an equal index expression, for variables that run within ``extents``."""
    if all(isinstance(atom, Var) for atom, _ in index.terms):
        return index
    return map_atoms(index, lambda atom: _simplify_atom(atom, extents))


def _simplify_atom(atom: Atom, extents: Extents) -> AffineLike:
    match atom:
        case FloorDiv():
            operand = simplify_index(atom.operand, extents)
            if operand != atom.operand:
                return simplify_index(operand // atom.divisor, extents)
            return _constant_quotient(atom, extents)
        case Min():
            return _least(atom, extents)
        case Product():
            result = ONE
            for factor in atom.factors:
                result = result * affine(_simplify_atom(factor, extents))
            return atom if result == affine(atom) else result
        case _:
            return atom


def _constant_quotient(atom: FloorDiv, extents: Extents) -> AffineLike:
    interval = bounds(atom.operand, extents)
    if interval is None:
        return atom
    low, high = interval[0] // atom.divisor, interval[1] // atom.divisor
    return low if low == high and low.is_constant else atom


def _least(atom: Min, extents: Extents) -> AffineLike:
    operands = [simplify_index(operand, extents) for operand in atom.operands]
    kept: list[Affine] = []
    for position, operand in enumerate(operands):
        others = kept + operands[position + 1 :]
        if not any(is_nonnegative(operand - other, extents) for other in others):
            kept.append(operand)
    return minimum(*kept)
