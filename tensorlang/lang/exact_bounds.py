"""Exact answers about indices, from isl: used only where interval arithmetic cannot decide.

Input:  forms that must be >= 0 at every point of a domain
Output: conditions on the sizes, ``Refuted`` with an example, or None when isl has no such form
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from tensorlang.ir.affine import (
    Affine,
    Atom,
    FloorDiv,
    Min,
    Var,
    from_terms,
    maximum,
    minimum,
    variables_of,
)

if TYPE_CHECKING:
    from tensorlang.lang.bounds import Domain, Forms, Refuted


def decide(missing: Forms, domain: Domain) -> Forms | Refuted | None:
    """Return the conditions under which all of ``missing`` hold on ``domain``.

    An empty tuple means that they hold always; None that a form is not quasi-affine, or the
    conditions are not plain inequalities.
    """
    isl = _isl()
    from tensorlang.lang.bounds import Refuted

    axes = [axis.variable for axis in domain.axes]
    extents = [axis.extent for axis in domain.axes]
    every = [*missing, *domain.conditions, *extents]
    sizes = sorted({v for form in every for v in variables_of(form)} - set(axes), key=_serial)
    names = {v: f"s{n}" for n, v in enumerate(sizes)} | {v: f"x{n}" for n, v in enumerate(axes)}
    texts = [_text(form, names) for form in every]
    if any(text is None for text in texts):
        return None
    inside = [f"0 <= {names[v]} < {_text(e, names)}" for v, e in zip(axes, extents, strict=True)]
    inside += [f"{_text(form, names)} >= 0" for form in domain.conditions]
    header = f"[{', '.join(names[size] for size in sizes)}] -> "
    point = f"[{', '.join(names[axis] for axis in axes)}]"
    positive = " and ".join(["1 = 1", *[f"{names[size]} >= 0" for size in sizes]])
    body = " and ".join([positive, *inside])
    broken = " or ".join(f"{_text(form, names)} < 0" for form in missing)

    domain_set = isl.Set(f"{header}{{ {point} : {body} }}")
    violation = isl.Set(f"{header}{{ {point} : {body} and ({broken}) }}")
    if violation.is_empty():
        return ()
    allowed = isl.Set(f"{header}{{ : {positive} }}")
    fine = (allowed - violation.params()).coalesce()
    if fine.intersect(domain_set.params()).is_empty():
        return Refuted(_sample(violation, sizes, axes))
    return _as_forms(fine.gist_params(allowed).coalesce(), sizes)


def _isl() -> Any:
    """Return islpy, which loads when the first question comes that intervals cannot answer."""
    return import_module("islpy")


def _serial(variable: Var) -> int:
    return variable.serial


def _text(form: Affine, names: dict[Var, str]) -> str | None:
    parts = [str(form.constant)]
    for atom, coef in form.terms:
        text = _atom_text(atom, names)
        if text is None:
            return None
        parts.append(f"{coef} * {text}")
    return f"({' + '.join(parts)})"


def _atom_text(atom: Atom, names: dict[Var, str]) -> str | None:
    match atom:
        case Var():
            return names[atom]
        case FloorDiv():
            inner = _text(atom.operand, names)
            return None if inner is None else f"floor({inner} / {atom.divisor})"
        case Min():
            inners = [_text(operand, names) for operand in atom.operands]
            known = [inner for inner in inners if inner is not None]
            return f"min({', '.join(known)})" if len(known) == len(inners) else None
        case _:
            return None


def _sample(violation: Any, sizes: list[Var], axes: list[Var]) -> tuple[tuple[Var, int], ...]:
    """Return the values of the violating point with the least sizes: a readable example."""
    isl = _isl()
    kind = isl.dim_type.set
    every = violation.move_dims(kind, 0, isl.dim_type.param, 0, len(sizes))
    point = every.lexmin().sample_point()
    return tuple(
        [
            (variable, int(point.get_coordinate_val(kind, position).to_python()))
            for position, variable in enumerate([*sizes, *axes])
        ]
    )


def _as_forms(conditions: Any, sizes: list[Var]) -> Forms | None:
    """Return a parameter set as forms that are all >= 0 exactly on it."""
    isl = _isl()
    pieces: list[list[Affine]] = []
    for piece in conditions.get_basic_sets():
        if piece.dim(isl.dim_type.div):
            return None
        pieces.append(list(_piece_forms(piece.get_constraints(), sizes)))
    if len(pieces) == 1:
        return tuple(pieces[0])
    return (maximum(*[minimum(*piece) for piece in pieces]),) if all(pieces) else ()


def _piece_forms(constraints: Iterable[Any], sizes: list[Var]) -> Iterable[Affine]:
    isl = _isl()
    for constraint in constraints:
        constant = int(constraint.get_constant_val().to_python())
        terms = [
            (size, int(constraint.get_coefficient_val(isl.dim_type.param, position).to_python()))
            for position, size in enumerate(sizes)
        ]
        form = from_terms(constant, tuple([(size, coef) for size, coef in terms if coef]))
        yield form
        if constraint.is_equality():
            yield -form
