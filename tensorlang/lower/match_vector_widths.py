"""Access each piece of storage in registers with vectors of one width.

Input::                                     Output::

    C.acc = local f32[16] at [...]              C.acc = local f32[16] at [...]
    unrolled for v in 2:                        unrolled for v in 2:
        vectorized for l in 8:                      vectorized for l in 8:
            C.acc[8 * v + l] = ...                      C.acc[8 * v + l] = ...
    vectorized for j in 16:                     unrolled for j.o in 2:
        C[j] = C.acc[j]                             vectorized for j.i in 8:
                                                        C[8 * j.o + j.i] = C.acc[8 * j.o + j.i]

Storage that is written in eights and read in sixteens ends up in registers of sixteen, into which
each eight is inserted. The narrowest loop decides, where it divides the others.
"""

from __future__ import annotations

from dataclasses import replace

from tensorlang.ir.affine import Affine, Var, affine, substitute, variables_of
from tensorlang.ir.definition import Tensor
from tensorlang.ir.expr import loads_of
from tensorlang.ir.program import Alloc, Compute, For, Program, Stmt
from tensorlang.ir.walk import children_of, map_children, substitute_in_stmt


def match_vector_widths(program: Program) -> Program:
    """Return ``program`` with the vectorized loops over "local" storage split to one width."""
    users: dict[Tensor, set[For]] = {}
    _collect(program.body, frozenset(), (), users)
    widths = _common_widths(users)
    return replace(program, body=_visit(program.body, widths)) if widths else program


def register_indices(compute: Compute, registers: frozenset[Tensor]) -> list[tuple[Tensor, Affine]]:
    """Return the storage in registers that an instance accesses, with each index of the access."""
    found: list[tuple[Tensor, Affine]] = []
    for tensor in map(compute.redirect, compute.stage.tensors):
        if tensor in registers:
            found.extend((tensor, form) for form in compute.binding[: len(compute.stage.axes)])
    if compute.part != "init":
        mapping = dict(zip(compute.stage.variables, compute.binding, strict=False))
        for load in loads_of(*compute.stage.values):
            tensor = compute.redirect(load.tensor)
            if tensor in registers:
                found.extend((tensor, substitute(index, mapping)) for index in load.indices)
    return found


def _collect(
    stmt: Stmt,
    registers: frozenset[Tensor],
    vectors: tuple[For, ...],
    users: dict[Tensor, set[For]],
) -> None:
    match stmt:
        case Alloc(scope="local"):
            registers = registers | {stmt.tensor}
        case For(kind="vectorized") if stmt.extent.is_constant:
            vectors = (*vectors, stmt)
        case Compute() if vectors and registers:
            for tensor, index in register_indices(stmt, registers):
                moving = variables_of(index)
                users.setdefault(tensor, set()).update(v for v in vectors if v.variable in moving)
        case _:
            pass
    for child in children_of(stmt):
        _collect(child, registers, vectors, users)


def _common_widths(users: dict[Tensor, set[For]]) -> dict[Var, int]:
    """Return the width to which each loop must be split; repeated, as loops share storage."""
    widths = {
        loop.variable: loop.extent.constant
        for loops in users.values()
        for loop in loops
        if loop.extent.constant > 1
    }
    extents = dict(widths)
    changed = True
    while changed:
        changed = False
        for loops in users.values():
            mine = [loop.variable for loop in loops if loop.variable in widths]
            narrowest = min((widths[variable] for variable in mine), default=1)
            for variable in mine:
                if widths[variable] > narrowest and widths[variable] % narrowest == 0:
                    widths[variable] = narrowest
                    changed = True
    return {variable: width for variable, width in widths.items() if width < extents[variable]}


def _visit(stmt: Stmt, widths: dict[Var, int]) -> Stmt:
    stmt = map_children(stmt, lambda child: _visit(child, widths))
    if not isinstance(stmt, For) or stmt.variable not in widths:
        return stmt
    width = widths[stmt.variable]
    outer, inner = Var(f"{stmt.variable}.o"), Var(f"{stmt.variable}.i")
    body = substitute_in_stmt(stmt.body, {stmt.variable: affine(outer) * width + inner})
    lanes = replace(stmt, variable=inner, extent=affine(width), body=body)
    blocks = affine(stmt.extent.constant // width)
    return replace(stmt, variable=outer, extent=blocks, kind="unrolled", body=lanes)
