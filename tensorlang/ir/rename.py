"""Loops that stand inside each other and share a name, told apart for printing.

Input::                                 Output::

    for j.o in N:                           for j.o in N:
        for j.o in 2:                           for j.o' in 2:
            C[32*j.o + 16*j.o] = ...                C[32*j.o + 16*j.o'] = ...

Names are for people: variables are compared by identity, so two loops may well share one. Paths
(``B.local/j.o``) are not affected.
"""

from __future__ import annotations

from dataclasses import replace

from tensorlang.ir.affine import Var
from tensorlang.ir.program import For, Fused, Stmt
from tensorlang.ir.walk import loop_variables, map_children, substitute_in_stmt


def distinct_names(stmt: Stmt, taken: frozenset[str] = frozenset()) -> Stmt:
    """Return ``stmt``, of the same shape, with no loop named as one around it or in ``taken``."""
    if isinstance(stmt, For | Fused):
        for variable in loop_variables(stmt):
            if variable.name in taken:
                stmt = _renamed(stmt, variable, taken)
        taken = taken | {variable.name for variable in loop_variables(stmt)}
    return map_children(stmt, lambda child: distinct_names(child, taken))


def _renamed(loop: For | Fused, variable: Var, taken: frozenset[str]) -> For | Fused:
    name = f"{variable.name}'"
    while name in taken:
        name += "'"
    fresh = Var(name)
    body = substitute_in_stmt(loop.body, {variable: fresh})
    if isinstance(loop, For):
        if isinstance(body, Fused) and body.run is not None and body.run.chunk is variable:
            body = replace(body, run=replace(body.run, chunk=fresh))
        return replace(loop, variable=fresh, body=body)
    variables = tuple([fresh if v is variable else v for v in loop.variables])
    return replace(loop, variables=variables, body=body)
