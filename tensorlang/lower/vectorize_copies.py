"""Run the contiguous loop of a copy in vectors, where the schedule left it alone.

Input::                                         Output::

    for j in 16:                                    vectorized for j in 16:
        B.copy[k, 16 * j.o + j] = B[...]                B.copy[k, 16 * j.o + j] = B[...]

A copy reads one tensor and writes another, an element for each iteration, so its loops carry no
dependence. Only the innermost loop is looked at, if it is serial, constant, at most ``_MOST_BYTES``
long, and moves both sides by one element.
"""

from __future__ import annotations

from dataclasses import replace

from tensorlang.ir.affine import linear_coefficient, variables_of
from tensorlang.ir.definition import Tensor
from tensorlang.ir.program import Alloc, Compute, For, Program, Stmt
from tensorlang.ir.walk import map_children
from tensorlang.lower.storage import Storage, is_lane_axis

_MOST_BYTES = 256


def vectorize_copies(program: Program) -> Program:
    """Return ``program`` with the innermost loops of copies vectorized."""
    return replace(program, body=_visit(program.body, {}))


def _visit(stmt: Stmt, storage: dict[Tensor, Alloc]) -> Stmt:
    match stmt:
        case Alloc():
            inside = {**storage, stmt.tensor: stmt}
            return map_children(stmt, lambda child: _visit(child, inside))
        case For(kind="serial", tail="auto", body=Compute() as compute):
            return replace(stmt, kind="vectorized") if _is_row(stmt, compute, storage) else stmt
        case _:
            return map_children(stmt, lambda child: _visit(child, storage))


def _is_row(loop: For, compute: Compute, storage: Storage) -> bool:
    """Tell whether ``loop`` copies a short run of neighbours to neighbours."""
    stage = compute.stage
    if stage.copies is None or not compute.binding or not loop.extent.is_constant:
        return False
    lanes = loop.extent.constant
    if not 1 < lanes <= _MOST_BYTES * 8 // stage.tensor.dtype.bits:
        return False
    if compute.redirect(stage.copies) is compute.redirect(stage.tensor):
        return False
    *others, last = compute.binding
    if linear_coefficient(last, loop.variable) != 1:
        return False
    if any(loop.variable in variables_of(form) for form in others):
        return False
    sides = (compute.redirect(stage.copies), compute.redirect(stage.tensor))
    allocs = [storage[side] for side in sides if side in storage]
    return all(is_lane_axis(alloc, len(others)) for alloc in allocs)
