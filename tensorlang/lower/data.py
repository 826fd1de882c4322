"""Which index expressions depend on data, and what they take from it.

Input:  ``table[i] + 1``      Output: True

Such an index can be an address, checked when it is used; it cannot be a bound of a loop.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from tensorlang.ir.affine import (
    ONE,
    Affine,
    AffineLike,
    Atom,
    FloorDiv,
    Min,
    Product,
    SymbolicDiv,
    ValueAtom,
    Var,
    affine,
    map_atoms,
    minimum,
)
from tensorlang.ir.expr import Expr, value_atom


def depends_on_data(index: Affine) -> bool:
    """Tell whether ``index`` holds a value taken from data, at any depth."""
    return any(holds_value(atom) for atom, _ in index.terms)


@lru_cache(maxsize=4096)
def holds_value(atom: Atom) -> bool:
    """Tell whether ``atom`` is or holds a value taken from data.

    Remembered, as sums of nested divisions are asked for once a prefix and level.
    """
    match atom:
        case ValueAtom():
            return True
        case FloorDiv():
            return depends_on_data(atom.operand)
        case SymbolicDiv():
            return depends_on_data(atom.operand) or depends_on_data(atom.divisor)
        case Product():
            return any(map(holds_value, atom.factors))
        case Min():
            return any(map(depends_on_data, atom.operands))
        case Var():
            return False


def map_values(index: Affine, transform: Callable[[Expr], Expr]) -> Affine:
    """Return ``index`` with every value taken from data replaced by its ``transform``."""
    if not depends_on_data(index):
        return index

    def visit(atom: Atom) -> AffineLike:
        match atom:
            case ValueAtom():
                new = transform(atom.expr)
                return atom if new is atom.expr else value_atom(new)
            case FloorDiv():
                return map_values(atom.operand, transform) // atom.divisor
            case SymbolicDiv():
                divisor = map_values(atom.divisor, transform)
                return map_values(atom.operand, transform) // divisor
            case Product():
                result = ONE
                for factor in atom.factors:
                    result = result * affine(visit(factor))
                return result
            case Min():
                return minimum(*[map_values(operand, transform) for operand in atom.operands])
            case Var():
                return atom

    return map_atoms(index, visit)
