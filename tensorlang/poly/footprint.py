"""The box of a tensor that one iteration of a loop touches, exactly, through isl.

Input:  ``rows[i, j]`` read at ``i.o`` with ``i = 8 * i.o + i.i + d``, ``i.i < 8``, ``0 <= d < 3``
Output: origin ``(8 * i.o, 0)``, shape ``(10, W)``

For forms that interval arithmetic cannot bound (a loop variable inside two divisions, say). Tails
are left out, as in every box: a guard on the copy takes care of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import islpy as isl

from tensorlang.ir.affine import ZERO, Affine, Atom, Var, affine
from tensorlang.ir.definition import Tensor
from tensorlang.ir.program import Compute, Program, Stmt
from tensorlang.ir.walk import rewrite
from tensorlang.poly.access import Access, Accesses
from tensorlang.poly.domain import Nest
from tensorlang.poly.isl_text import NotProvedError, limited

BUDGET = 2_000_000
"""How many of isl's basic operations one box may take: about a second."""


@dataclass(frozen=True, slots=True)
class Box:
    """``origin <= index < origin + shape``, over sizes and the loops outside."""

    origin: tuple[Affine, ...]
    shape: tuple[Affine, ...]


def footprint(
    program: Program, tensor: Tensor, loop_variable: Var, guarded: bool = False
) -> Box | None:
    """Return the box of ``tensor`` that one iteration of a loop reads and writes.

    None when it is no single box of index forms, when nothing is accessed, or when an access is
    not affine. ``guarded`` keeps the guards: the box of what is really touched.
    """
    program = program if guarded else replace(program, body=rewrite(program.body, _unguarded))
    with limited(BUDGET):
        try:
            return _footprint(Accesses(Nest(program)), tensor, loop_variable)
        except (NotProvedError, isl.Error):
            return None


def _unguarded(stmt: Stmt) -> Stmt:
    return replace(stmt, guard=()) if isinstance(stmt, Compute) else stmt


def _footprint(accesses: Accesses, tensor: Tensor, handle: Var) -> Box | None:
    nest = accesses.nest
    concerned: list[tuple[Access, int]] = []
    for access in (*accesses.writes, *accesses.reads, *accesses.copies):
        if access.tensor is not tensor:
            continue
        depth = 0
        for loop in access.instance.loops:
            depth += len(loop.variables)
            if handle in loop.handles:
                concerned.append((access, depth))
    if not concerned or any(None in access.indices for access, _ in concerned):
        return None
    first, depth = concerned[0]
    names: dict[str, Atom] = {name: atom for atom, name in nest.parameters.atoms.items()}
    names.update({f"l{n}": first.instance.variables[n] for n in range(depth)})
    touched = _cells(accesses, first, depth)
    for access, _ in concerned[1:]:
        touched = touched.union(_cells(accesses, access, depth))
    origin: list[Affine] = []
    shape: list[Affine] = []
    for dimension in range(len(tensor.shape)):
        low = _single_form(touched.dim_min(dimension), names)
        high = _single_form(touched.dim_max(dimension), names)
        if low is None or high is None:
            return None
        origin.append(low)
        shape.append(high - low + 1)
    return Box(tuple(origin), tuple(shape))


def _cells(accesses: Accesses, access: Access, depth: int) -> isl.Set:
    """Return the cells of one access, with sizes and the outer loops as parameters."""
    nest, instance = accesses.nest, access.instance
    indices = ", ".join(nest.form(instance, index) for index in access.indices if index is not None)
    relation = nest.relation(instance, "S", f"[{indices}]", accesses.points(access))
    relation = relation.move_dims(
        isl.dim_type.param, relation.dim(isl.dim_type.param), isl.dim_type.in_, 0, depth
    )
    return relation.range()


def _single_form(bound: isl.PwAff, names: Mapping[str, Atom]) -> Affine | None:
    pieces: list[isl.Aff] = []
    bound.coalesce().foreach_piece(lambda _, form: pieces.append(form))
    return _form(pieces[0], names) if len(pieces) == 1 else None


def _form(aff: isl.Aff, names: Mapping[str, Atom]) -> Affine | None:
    """Return an isl form as an index form; None if it is a fraction."""
    if not aff.get_denominator_val().is_one():
        return None
    result = ZERO + _integer(aff.get_constant_val())
    for position in range(aff.dim(isl.dim_type.param)):
        coefficient = _integer(aff.get_coefficient_val(isl.dim_type.param, position))
        if coefficient:
            atom = names[aff.get_dim_name(isl.dim_type.param, position) or ""]
            result = result + affine(atom) * coefficient
    for position in range(aff.dim(isl.dim_type.div)):
        coefficient = _integer(aff.get_coefficient_val(isl.dim_type.div, position))
        if not coefficient:
            continue
        division = aff.get_div(position)
        divisor = _integer(division.get_denominator_val())
        operand = _form(division.scale_val(division.get_denominator_val()), names)
        if operand is None:
            return None
        result = result + (operand // divisor) * coefficient
    return result


def _integer(value: isl.Val) -> int:
    return int(value.to_python())
