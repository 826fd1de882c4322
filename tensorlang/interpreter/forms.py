"""Index expressions as Python source over integers.

Input:  ``16 * i + (j + 3) // 4`` with i named ``v1``, j named ``v2``
Output: ``"16*v1 + (v2 + 3)//4"``
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tensorlang.interpreter.failures import InterpreterError
from tensorlang.ir.affine import (
    Affine,
    Atom,
    FloorDiv,
    Min,
    Product,
    SymbolicDiv,
    ValueAtom,
    Var,
)
from tensorlang.ir.expr import Expr

Names = Mapping[Var, str]
ValueNames = Callable[[Expr], str]


def no_values(expr: Expr) -> str:
    """Refuse data where only sizes and loops may stand."""
    raise InterpreterError(f"a loop, a guard or a box depends on data: {expr}")


def form_text(index: Affine, names: Names, values: ValueNames = no_values) -> str:
    """Return ``index`` as source; ``values`` names the data-dependent values in it."""
    parts: list[str] = []
    for atom, coefficient in index.terms:
        text = _atom_text(atom, names, values)
        parts.append(text if coefficient == 1 else f"{coefficient}*{text}")
    if index.constant or not parts:
        parts.append(str(index.constant))
    return " + ".join(parts)


def condition_text(forms: tuple[Affine, ...], names: Names) -> str:
    """Return the source of "every form is >= 0"."""
    return " and ".join(f"{form_text(form, names)} >= 0" for form in forms) or "True"


def tuple_text(parts: list[str] | tuple[str, ...]) -> str:
    """Return the source of a tuple."""
    return f"({', '.join(parts)}{',' if parts else ''})"


def divide(dividend: int, divisor: int) -> int:
    """Divide by a size, which may be 0 where the quotient does not matter."""
    return dividend // divisor if divisor else 0


def _atom_text(atom: Atom, names: Names, values: ValueNames) -> str:
    match atom:
        case Var():
            name = names.get(atom)
            if name is None:
                raise InterpreterError(f"{atom} has no value where it is used")
            return name
        case FloorDiv():
            return f"(({form_text(atom.operand, names, values)})//{atom.divisor})"
        case SymbolicDiv():
            parts = (form_text(part, names, values) for part in (atom.operand, atom.divisor))
            return f"divide({', '.join(parts)})"
        case Product():
            return "*".join(_atom_text(factor, names, values) for factor in atom.factors)
        case Min():
            return f"min({', '.join(form_text(part, names, values) for part in atom.operands)})"
        case ValueAtom():
            return f"int({values(atom.expr)})"
