"""The atoms of index expressions: variables, and everything that is not linear.

Input:  ``i``, ``(i + 3) // 4``, ``M * N``, ``min(M, 16)``, ``table[i]`` used as an index
Output: ``Var``, ``FloorDiv``, ``Product``, ``Min``, ``ValueAtom``

Atoms other than variables compare by a key that is made once, at construction: sorting by freshly
made keys dominated code generation.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from tensorlang.ir.affine.form import Affine
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
        return f"{operand_text(self.operand)} // {self.divisor}"

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
        return f"{operand_text(self.operand)} // {operand_text(self.divisor)}"

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
        return sorted_product, (self.factors,)


class Min(_Structural):
    """The least of two or more index expressions."""

    __slots__ = ("operands",)

    def __init__(self, operands: tuple[Affine, ...]) -> None:
        self.operands = operands
        self._set_key((4, tuple(operand.key for operand in operands)))

    def __repr__(self) -> str:
        return f"min({', '.join(map(str, self.operands))})"

    def __reduce__(self) -> tuple[Any, ...]:
        return sorted_min, (self.operands,)


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


def operand_text(index: Affine) -> str:
    """Return an operand of a division: a single variable stands without parentheses."""
    alone = index.constant == 0 and len(index.terms) == 1 and index.terms[0][1] == 1
    return str(index) if alone and isinstance(index.terms[0][0], Var) else f"({index})"


Key: TypeAlias = tuple[Any, ...]
Atom: TypeAlias = Var | FloorDiv | SymbolicDiv | Product | Min | ValueAtom


def sorted_product(factors: tuple[Atom, ...]) -> Product:
    """Return the product of atoms whose order may have changed: unpickled variables are new."""
    return Product(tuple(sorted(factors, key=lambda factor: factor.key)))


def sorted_min(operands: tuple[Affine, ...]) -> Min:
    """Return the minimum of operands whose order may have changed."""
    return Min(tuple(sorted(operands, key=lambda operand: operand.key)))
