"""What a statement uses of the things around it: variables, buffers, scalars.

Input:  ``C[N*i + j] = alpha * A[N*i + j]``     Output: ``{N, i, j}, {A, C}, {alpha}``
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tensorlang.ir.affine import Affine, Var, variables_of
from tensorlang.ir.definition import Scalar
from tensorlang.ir.expr import Expr, IndexValue, ScalarRef, iterate, values_in_index
from tensorlang.ir.lowered import Allocate, Buffer, FlatLoad, PrefetchLine, Store
from tensorlang.ir.program import For, If, Stmt
from tensorlang.ir.walk import iterate as iterate_stmts


@dataclass(frozen=True, slots=True)
class Uses:
    """The result; bound variables and buffers allocated inside are among them."""

    variables: set[Var] = field(default_factory=set[Var])
    buffers: set[Buffer] = field(default_factory=set[Buffer])
    scalars: set[Scalar] = field(default_factory=set[Scalar])


def uses_of(stmt: Stmt) -> Uses:
    """Return everything that ``stmt`` mentions."""
    uses = Uses()
    for part in iterate_stmts(stmt):
        match part:
            case For():
                _add_indices(uses, (part.extent,))
            case If():
                _add_indices(uses, part.condition)
            case Allocate():
                _add_indices(uses, (part.buffer.size,))
            case PrefetchLine():
                uses.buffers.add(part.buffer)
                _add_indices(uses, (part.offset,))
            case Store():
                uses.buffers.update([buffer for buffer, _ in part.targets])
                _add_indices(uses, tuple([offset for _, offset in part.targets]))
                _add_exprs(uses, part.values)
            case _:
                pass
    return uses


def _add_indices(uses: Uses, indices: tuple[Affine, ...]) -> None:
    for index in indices:
        uses.variables.update(variables_of(index))
        _add_exprs(uses, tuple(values_in_index(index)))


def _add_exprs(uses: Uses, exprs: tuple[Expr, ...]) -> None:
    for node in iterate(*exprs):
        match node:
            case FlatLoad():
                uses.buffers.add(node.buffer)
                uses.variables.update(variables_of(node.offset))
                for check in node.checks:
                    uses.variables.update(variables_of(check.index))
                    uses.variables.update(variables_of(check.extent))
            case IndexValue():
                uses.variables.update(variables_of(node.index))
            case ScalarRef():
                uses.scalars.add(node.scalar)
            case _:
                pass
