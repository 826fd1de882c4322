"""Which index expressions depend on data.

Input:  ``table[i] + 1``      Output: True

Such an index can be an address, checked when it is used; it cannot be a bound of a loop.
"""

from __future__ import annotations

from tensorlang.ir.affine import Affine, Atom, FloorDiv, Min, Product, SymbolicDiv, ValueAtom, Var


def depends_on_data(index: Affine) -> bool:
    """Tell whether ``index`` holds a value taken from data, at any depth."""
    return any(_holds_value(atom) for atom, _ in index.terms)


def _holds_value(atom: Atom) -> bool:
    match atom:
        case ValueAtom():
            return True
        case FloorDiv():
            return depends_on_data(atom.operand)
        case SymbolicDiv():
            return depends_on_data(atom.operand) or depends_on_data(atom.divisor)
        case Product():
            return any(map(_holds_value, atom.factors))
        case Min():
            return any(map(depends_on_data, atom.operands))
        case Var():
            return False
