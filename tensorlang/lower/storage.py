"""Where an ``Alloc`` keeps its elements, and which indices it has room for.

Input:  ``B.copy[K, 16]`` laid out ``(k, n) -> (n // 16, k, n % 16)`` in ``[1, K, 16]``
Output: index 15 of axis n has room whatever N is; axis n is the contiguous one
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from tensorlang.ir.affine import ONE, ZERO, Affine, FloorDiv, affine, substitute, variables_of
from tensorlang.ir.definition import Tensor
from tensorlang.ir.interval import bounds
from tensorlang.ir.program import Alloc, Compute, Layout, Stmt
from tensorlang.ir.walk import children_of
from tensorlang.lower.known import Known

Storage: TypeAlias = Mapping[Tensor, Alloc]
"""The allocations around a place, by tensor; the caller's tensors are not in it."""


def physical_shape(alloc: Alloc) -> tuple[Affine, ...]:
    """Return the extents of the memory behind ``alloc``."""
    return alloc.shape if alloc.layout is None else alloc.layout.shape


def physical_index(alloc: Alloc, indices: tuple[Affine, ...]) -> tuple[Affine, ...]:
    """Return where the element of the logical ``indices`` lies."""
    position = [index - origin for index, origin in zip(indices, alloc.origin, strict=True)]
    if alloc.layout is None:
        return tuple(position)
    mapping = dict(zip(alloc.layout.variables, position, strict=True))
    return tuple([substitute(form, mapping) for form in alloc.layout.indices])


def has_room(alloc: Alloc, axis: int, index: Affine, known: Known) -> bool:
    """Tell whether ``index`` along ``axis`` certainly has an element of its own in ``alloc``.

    ``index`` is logical and may lie outside the tensor: what is asked is that memory is there and
    that no other index shares it.
    """
    position = index - alloc.origin[axis]
    layout = alloc.layout
    if layout is None:
        return known.proves(position) and known.proves(alloc.shape[axis] - 1 - position)
    if not is_apart(layout, axis) or not known.proves(position):
        return False
    variable = layout.variables[axis]
    for form, extent in zip(layout.indices, layout.shape, strict=True):
        if variable in variables_of(form):
            physical = substitute(form, {variable: position})
            if not (known.proves(physical) and known.proves(extent - 1 - physical)):
                return False
    return True


def is_apart(layout: Layout, axis: int) -> bool:
    """Tell whether a layout certainly maps different positions along ``axis`` to different places.

    It does if physical dimensions that depend on this axis alone give it back, as ``n // 16`` and
    ``n % 16`` do: ``16 * (n // 16) + n % 16 == n``. Folded storage (``n % 3``) does not.
    """
    variable = layout.variables[axis]
    pieces = [form for form in layout.indices if variable in variables_of(form)]
    if any(variables_of(form) != frozenset((variable,)) for form in pieces):
        return False
    rest = affine(variable)
    for _ in range(len(pieces)):
        if len(rest.terms) != 1:
            return False
        atom = rest.terms[0][0]
        piece = next((form for form in pieces if form.coefficient(atom) == 1), None)
        if piece is None:
            return False
        rest = affine(atom) - piece
        if rest == ZERO:
            return True
        pieces.remove(piece)
        if len(rest.terms) != 1 or not isinstance(rest.terms[0][0], FloorDiv):
            return False
        rest = affine(rest.terms[0][0])
    return False


def is_lane_axis(alloc: Alloc, axis: int) -> bool:
    """Tell whether neighbours along ``axis`` are neighbours in memory."""
    if alloc.layout is None:
        return axis == len(alloc.shape) - 1
    if not alloc.layout.indices:
        return False
    variable = alloc.layout.variables[axis]
    return alloc.layout.indices[-1].coefficient(variable) == 1  # the variable, or its remainder


def fills_padding(alloc: Alloc, known: Known) -> bool:
    """Tell whether the writers in ``alloc`` certainly write every place of its layout.

    A layout whose shape rounds up has places that no element has; those that nothing writes must
    be zeroed when the storage is allocated.
    """
    layout = alloc.layout
    if layout is None or _product(layout.shape) == _product(alloc.shape):
        return True
    writers = _writers(alloc.body, alloc.tensor, known)
    return bool(writers) and all(
        all(_reaches_end(alloc, axis, compute, inside) for axis in range(len(alloc.shape)))
        for compute, inside in writers
    )


def _product(shape: tuple[Affine, ...]) -> Affine:
    size = ONE
    for extent in shape:
        size = size * extent
    return size


def _writers(stmt: Stmt, tensor: Tensor, known: Known) -> list[tuple[Compute, Known]]:
    if isinstance(stmt, Compute):
        writes = any(stmt.redirect(made) is tensor for made in stmt.stage.tensors)
        return [(stmt, known)] if writes else []
    inside = known.inside(stmt)
    return [found for child in children_of(stmt) for found in _writers(child, tensor, inside)]


def _reaches_end(alloc: Alloc, axis: int, compute: Compute, known: Known) -> bool:
    """Tell whether the loops of a writer run over all the places that ``axis`` has."""
    assert alloc.layout is not None
    variable = alloc.layout.variables[axis]
    places = _product(
        tuple(
            extent
            for form, extent in zip(alloc.layout.indices, alloc.layout.shape, strict=True)
            if variable in variables_of(form)
        )
    )
    if places == alloc.shape[axis]:
        return True
    index = compute.binding[axis]
    interval = bounds(index, known.extents)
    last = None if interval is None else interval[1] - alloc.origin[axis]
    free = not any(not variables_of(form).isdisjoint(variables_of(index)) for form in compute.guard)
    return free and last == places - 1
