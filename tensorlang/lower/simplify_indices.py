"""Make addresses simpler by the ranges of the loops around them.

Input::                                         Output::

    for jb in 2:                                    for jb in 2:
        vectorized for jv in 16:                        vectorized for jv in 16:
            P[32*k + (16*jb + jv) % 32] = ...               P[32*k + 16*jb + jv] = ...

Layouts bring quotients and remainders into addresses; inside a tile they are mostly constant, and
an address that is linear in the lane is a vector instead of a gather.
"""

from __future__ import annotations

from dataclasses import replace

from tensorlang.ir.affine import Affine, Var
from tensorlang.ir.lowered import LoweredProgram, PrefetchLine, Store
from tensorlang.ir.program import For, If, Stmt
from tensorlang.ir.simplify import simplify_index
from tensorlang.ir.walk import map_children, map_indices


def simplify_indices(program: LoweredProgram) -> LoweredProgram:
    """Return ``program`` with every index expression simplified."""
    return replace(program, body=_visit(program.body, {}))


def _visit(stmt: Stmt, extents: dict[Var, Affine]) -> Stmt:
    def simplified(index: Affine) -> Affine:
        return simplify_index(index, extents)

    match stmt:
        case For():
            inner = extents | {stmt.variable: stmt.extent}
            extent = simplified(stmt.extent)
            return replace(stmt, extent=extent, body=_visit(stmt.body, inner))
        case If():
            condition = tuple([simplified(form) for form in stmt.condition])
            return replace(map_children(stmt, lambda s: _visit(s, extents)), condition=condition)
        case Store():
            targets = tuple([(buffer, simplified(offset)) for buffer, offset in stmt.targets])
            values = tuple([map_indices(value, simplified) for value in stmt.values])
            return replace(stmt, targets=targets, values=values)
        case PrefetchLine():
            return replace(stmt, offset=simplified(stmt.offset))
        case _:
            return map_children(stmt, lambda child: _visit(child, extents))
