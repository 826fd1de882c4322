"""How many instances a statement runs.

Input:  ``C[6 * i.o + i.i, j]`` in loops of 17, 6 and 100 iterations, guard ``6 * i.o + i.i < 100``
Output: 10000

Loops that a guard ties together are counted point by point, where they are few enough; otherwise,
and for symbolic sizes, tails are counted as if they ran.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

import numpy as np

from tensorlang.ir.affine import ONE, Affine, Var, affine, depends_on, substitute, variables_of
from tensorlang.ir.interval import bounds
from tensorlang.schedule.tree import Place

_MOST_POINTS = 1_000_000


def instances_of(place: Place, sizes: Mapping[Var, Affine]) -> Affine:
    """Return the number of instances of a statement, with ``sizes`` put in."""
    extents = {v: substitute(extent, sizes) for v, extent in place.extents().items()}
    for variable, extent in list(extents.items()):
        if depends_on(extent, set(extents)):
            interval = bounds(extent, extents)
            extents[variable] = extent if interval is None else interval[1]
    guard = [substitute(form, sizes) for form in place.compute.guard]
    product = ONE
    for group, forms in _groups(extents, guard):
        product = product * _points({v: extents[v] for v in group}, forms)
    return product


def _groups(
    extents: Mapping[Var, Affine], guard: list[Affine]
) -> list[tuple[list[Var], list[Affine]]]:
    """Return the loops that guards tie together, with those guards."""
    groups: list[tuple[set[Var], list[Affine]]] = [({variable}, []) for variable in extents]
    for form in guard:
        used = variables_of(form)
        tied = [group for group in groups if not group[0].isdisjoint(used)]
        groups = [group for group in groups if group not in tied]
        merged = (
            {variable for group in tied for variable in group[0]},
            [form, *(other for group in tied for other in group[1])],
        )
        groups.append(merged)
    return [([v for v in extents if v in group], forms) for group, forms in groups]


def _points(extents: Mapping[Var, Affine], forms: list[Affine]) -> Affine:
    """Return how many points of a box satisfy all forms; all of them where that is not known."""
    box = ONE
    for extent in extents.values():
        box = box * extent
    counts = [max(0, extent.constant) for extent in extents.values() if extent.is_constant]
    known = len(counts) == len(extents) and prod(counts) <= _MOST_POINTS
    if not forms or not known or any(variables_of(form) - set(extents) for form in forms):
        return box
    axes = np.meshgrid(*map(np.arange, counts), indexing="ij", sparse=True)
    inside = np.ones(counts, bool)
    for form in forms:
        value = np.full((), form.constant)
        for atom, coefficient in form.terms:
            if not isinstance(atom, Var):
                return box
            value = value + coefficient * axes[list(extents).index(atom)]
        inside &= value >= 0
    return affine(int(inside.sum()))
