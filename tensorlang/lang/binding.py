"""Finds the sizes of a call from the shapes of its arrays, and checks what they must satisfy.

Input:  ``A: f32[M, K], B: f32[K, N]`` called with shapes (3, 4) and (4, 5)
Output: ``{M: 3, K: 4, N: 5}``

An entry that is exactly a size binds it; one of the form ``a * N + b`` with one unknown size is
solved; every other entry must agree.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tensorlang.ir.affine import (
    Affine,
    AffineLike,
    Var,
    affine,
    evaluate,
    linear_coefficient,
    substitute,
    variables_of,
)
from tensorlang.ir.definition import Definition, Tensor
from tensorlang.ir.specialize import extents_of


@dataclass(frozen=True, slots=True)
class _Entry:
    tensor: Tensor
    axis: int
    form: Affine
    found: int


def bind_sizes(
    definition: Definition,
    shapes: Mapping[Tensor, tuple[int, ...]],
    dims: Mapping[str, int] | None = None,
) -> dict[Var, int]:
    """Return the value of every size of ``definition``.

    Parameters
    ----------
    definition
        The operator, traced.
    shapes
        The shape of the array for each of ``definition.inputs``.
    dims
        Values of the sizes that no array fixes, by name.

    Raises
    ------
    ValueError
        For a wrong number of axes, sizes that disagree, a condition that fails, or an extent
        that is negative; the message names parameter, axis, size, and both numbers.

    """
    entries = _entries(definition, shapes)
    sizes = _given_dims(definition, dims or {})
    origin: dict[Var, _Entry] = {}
    for entry in entries:
        size = _exact_size(entry.form)
        if size is not None and size not in sizes:
            sizes[size] = entry.found
            origin[size] = entry
    _solve(definition, entries, sizes, origin)
    missing = [size.name for size in definition.sizes if size not in sizes]
    if missing:
        raise ValueError(f"{definition.name}: no array fixes the sizes {', '.join(missing)}")
    for entry in entries:
        _check_entry(definition, entry, sizes, origin)
    check_sizes(definition, sizes)
    return sizes


def _entries(definition: Definition, shapes: Mapping[Tensor, tuple[int, ...]]) -> list[_Entry]:
    entries: list[_Entry] = []
    for tensor in definition.inputs:
        shape = shapes[tensor]
        if len(shape) != len(tensor.shape):
            wanted = ", ".join(map(str, tensor.shape))
            raise ValueError(
                f"{definition.name}: {tensor} has {len(shape)} axes, shape {shape}; expected "
                f"{len(tensor.shape)}, [{wanted}]"
            )
        for axis, (form, found) in enumerate(zip(tensor.shape, shape, strict=True)):
            entries.append(_Entry(tensor, axis, form, int(found)))
    return entries


def _given_dims(definition: Definition, dims: Mapping[str, int]) -> dict[Var, int]:
    sizes: dict[Var, int] = {}
    for size in definition.dims:
        if size.name not in dims:
            raise ValueError(f"{definition.name}: the size {size.name} is not given")
        number = dims[size.name]
        if number < 0:
            raise ValueError(f"{definition.name}: the size {size.name} = {number} is negative")
        sizes[size] = int(number)
    return sizes


def _exact_size(form: Affine) -> Var | None:
    if form.constant or len(form.terms) != 1:
        return None
    atom, coef = form.terms[0]
    return atom if isinstance(atom, Var) and coef == 1 else None


def solvable_for(form: Affine, known: set[Var]) -> Var | None:
    """Return the one unknown size that a shape entry ``a * N + b`` determines, if it does."""
    unknown = variables_of(form) - known
    if len(unknown) != 1:
        return None
    (size,) = unknown
    return size if linear_coefficient(form, size) else None


def unify_sizes(pairs: Sequence[tuple[Affine, Affine]], sizes: dict[Var, AffineLike]) -> None:
    """Add to ``sizes`` what follows from extents (``N``, ``2 * N + 1``) and the forms found there.

    For definitions that are called in others, whose extents may be symbolic as well. That the pairs
    agree is not checked; the first that is exactly a size binds it.
    """
    for form, found in pairs:
        size = _exact_size(form)
        if size is not None:
            sizes.setdefault(size, found)
    progress = True
    while progress:
        progress = False
        for form, found in pairs:
            size = solvable_for(form, set(sizes))
            if size is not None:
                rest = substitute(substitute(form, {size: 0}), sizes)
                sizes[size] = (found - rest) // (linear_coefficient(form, size) or 1)
                progress = True


def _solve(
    definition: Definition,
    entries: list[_Entry],
    sizes: dict[Var, int],
    origin: dict[Var, _Entry],
) -> None:
    progress = True
    while progress:
        progress = False
        for entry in entries:
            size = solvable_for(entry.form, set(sizes))
            if size is None:
                continue
            sizes[size] = _solution(definition, entry, size, sizes)
            origin[size] = entry
            progress = True


def _solution(definition: Definition, entry: _Entry, size: Var, sizes: Mapping[Var, int]) -> int:
    factor = linear_coefficient(entry.form, size)
    assert factor
    rest = evaluate(substitute(entry.form, {size: affine(0)}), sizes)
    number, remainder = divmod(entry.found - rest, factor)
    if remainder or number < 0:
        raise ValueError(
            f"{definition.name}: axis {entry.axis} of {entry.tensor} has size {entry.found}, but "
            f"must be {entry.form} for some {size.name} >= 0"
        )
    return number


def _check_entry(
    definition: Definition,
    entry: _Entry,
    sizes: Mapping[Var, int],
    origin: Mapping[Var, _Entry],
) -> None:
    expected = evaluate(entry.form, sizes)
    if expected == entry.found:
        return
    claim = str(expected) if entry.form.is_constant else f"{entry.form} = {expected}"
    sources = [
        f"{size} = {sizes[size]} by axis {origin[size].axis} of {origin[size].tensor}"
        for size in sorted(variables_of(entry.form), key=lambda size: size.serial)
        if size in origin
    ]
    because = f" ({'; '.join(sources)})" if sources else ""
    raise ValueError(
        f"{definition.name}: axis {entry.axis} of {entry.tensor} has size {entry.found}, but "
        f"{claim} is expected{because}"
    )


def check_sizes(definition: Definition, sizes: Mapping[Var, int]) -> None:
    """Check conditions and extents for given sizes, raising ValueError for what does not hold."""
    shown = ", ".join(f"{size} = {sizes[size]}" for size in definition.sizes)
    for extent in extents_of(definition):
        if extent.terms and evaluate(extent, sizes) < 0:
            raise ValueError(
                f"{definition.name}: the extent {extent} is negative "
                f"({evaluate(extent, sizes)}) for {shown}"
            )
    for condition in definition.conditions:
        number = evaluate(condition.form, sizes)
        if number < 0 or (condition.equality and number):
            raise ValueError(f"{definition.name}: {condition.message}; here {shown}")
