"""Unroll the short loops that index storage in registers.

Input::                                             Output::

    C.acc = local f32[6, 16] at [...]                   C.acc = local f32[6, 16] at [...]
    ...                                                 ...
    for i in 6:                                         unrolled for i in 6:
        vectorized for j in 16:                             vectorized for j in 16:
            C[...] = C.acc[6 * i.o + i, ...]                    C[...] = C.acc[6 * i.o + i, ...]

A register has no address: an element of "local" storage can live in one only where its index is
known when compiling. Loops that would write out more than ``_MOST_COPIES`` copies of an instance
are left alone; their storage stays in memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tensorlang.ir.affine import Var, variables_of
from tensorlang.ir.definition import Tensor
from tensorlang.ir.program import Alloc, Compute, For, Fused, Program, Stmt
from tensorlang.ir.walk import children_of, loop_variables, map_children
from tensorlang.lower.match_vector_widths import register_indices

_MOST_COPIES = 64


def unroll_registers(program: Program) -> Program:
    """Return ``program`` with the loops over elements of "local" storage unrolled."""
    chosen: set[Var] = set()
    _choose(program.body, {}, (), chosen)
    return replace(program, body=_visit(program.body, chosen)) if chosen else program


def _choose(
    stmt: Stmt, registers: Mapping[Tensor, int], loops: tuple[For | Fused, ...], chosen: set[Var]
) -> None:
    """Choose below ``stmt``; ``registers`` says how many loops stand around each storage."""
    match stmt:
        case Alloc(scope="local"):
            registers = {**registers, stmt.tensor: len(loops)}
        case For() | Fused():
            loops = (*loops, stmt)
        case Compute():
            _choose_around(stmt, registers, loops, chosen)
        case _:
            pass
    for child in children_of(stmt):
        _choose(child, registers, loops, chosen)


def _choose_around(
    compute: Compute,
    registers: Mapping[Tensor, int],
    loops: tuple[For | Fused, ...],
    chosen: set[Var],
) -> None:
    # Loops around the storage only move its box: the position inside does not depend on them.
    moving = {
        tensor: {v for loop in loops[depth:] for v in loop_variables(loop)}
        for tensor, depth in registers.items()
    }
    indexing = {
        variable
        for tensor, index in register_indices(compute, frozenset(registers))
        for variable in variables_of(index) & moving[tensor]
    }
    wanted: list[For] = []
    copies = 1
    for loop in loops:
        if not isinstance(loop, For) or not loop.extent.is_constant:
            continue
        if loop.kind == "unrolled":
            copies *= loop.extent.constant
        elif loop.kind == "serial" and loop.variable in indexing:
            copies *= loop.extent.constant
            wanted.append(loop)
    if copies <= _MOST_COPIES:
        chosen.update(loop.variable for loop in wanted)


def _visit(stmt: Stmt, chosen: set[Var]) -> Stmt:
    if isinstance(stmt, For) and stmt.variable in chosen:
        stmt = replace(stmt, kind="unrolled")
    return map_children(stmt, lambda child: _visit(child, chosen))
