"""Where an ``Alloc`` keeps its elements, and which indices it has room for.

Input:  ``B.copy[K, 16]`` laid out ``(k, n) -> (n // 16, k, n % 16)`` in ``[1, K, 16]``
Output: index 15 of axis n has room whatever N is; axis n is the contiguous one
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from tensorlang.ir.affine import ONE, ZERO, Affine, FloorDiv, affine, substitute, variables_of
from tensorlang.ir.definition import Tensor
from tensorlang.ir.program import Alloc, Layout
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


def room_along(alloc: Alloc, axis: int) -> Affine:
    """Return how many positions along ``axis`` have a place of their own.

    At least the extent of the box; more where a layout rounds up: panels of 16 columns have room
    for ``16 * ((N + 15) // 16)``.
    """
    layout = alloc.layout
    if layout is None or not is_apart(layout, axis):
        return alloc.shape[axis]
    variable = layout.variables[axis]
    dimensions = zip(layout.indices, layout.shape, strict=True)
    return _product(tuple(size for form, size in dimensions if variable in variables_of(form)))


def has_room(alloc: Alloc, axis: int, index: Affine, known: Known) -> bool:
    """Tell whether ``index`` along ``axis`` certainly has an element of its own in ``alloc``.

    ``index`` is logical and may lie outside the tensor: what is asked is that memory is there and
    that no other index shares it.
    """
    if alloc.layout is not None and not is_apart(alloc.layout, axis):
        return False
    position = index - alloc.origin[axis]
    return known.proves(position) and known.proves(room_along(alloc, axis) - 1 - position)


def has_padding(alloc: Alloc) -> bool:
    """Tell whether the layout of ``alloc`` may have places that no position of its box has.

    Those between rows that are set apart, as ``pad_storage`` does, are reached by nobody.
    """
    return _has_spare_places(alloc) and not _keeps_rows(alloc.layout)


def has_gaps(alloc: Alloc) -> bool:
    """Tell whether rows of ``alloc`` are set apart, as ``pad_storage`` does."""
    return _has_spare_places(alloc) and _keeps_rows(alloc.layout)


def _has_spare_places(alloc: Alloc) -> bool:
    layout = alloc.layout
    if layout is None or layout.folded:
        return False
    return _product(layout.shape) != _product(alloc.shape)


def _keeps_rows(layout: Layout | None) -> bool:
    return layout is None or all(
        affine(variable) in layout.indices for variable in layout.variables
    )


def _product(shape: tuple[Affine, ...]) -> Affine:
    size = ONE
    for extent in shape:
        size = size * extent
    return size


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
