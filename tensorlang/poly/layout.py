"""A layout puts different elements in different places, all inside the memory that it names.

Input:  ``B.local`` of shape ``[K, 16]`` laid out ``(k, n) -> (n // 16, k, n % 16)``
Output: nothing, or two positions of the box that share a place, or one that leaves the memory

The rest of the proof speaks of logical indices; this is what entitles it to.
"""

from __future__ import annotations

from tensorlang.ir.affine import Affine, Var, variables_of
from tensorlang.ir.program import Alloc, Layout
from tensorlang.poly.domain import Nest, Storage
from tensorlang.poly.isl_text import fails_text, form_text, holds_text
from tensorlang.poly.witness import Counterexample, named_sizes, sample

CLAIM = "layouts"


def find_layout_fault(nest: Nest) -> Counterexample | None:
    """Return a position that a layout mistreats, None if there is none."""
    for storage in nest.storages:
        if storage.alloc is not None and storage.alloc.layout is not None:
            fault = _find_fault(nest, storage, storage.alloc, storage.alloc.layout)
            if fault is not None:
                return fault
    return None


def _find_fault(
    nest: Nest, storage: Storage, alloc: Alloc, layout: Layout
) -> Counterexample | None:
    parameters = nest.parameters
    names, outer = _names(storage, alloc, layout)
    inside: list[str] = []
    for variable, extent in zip(layout.variables, alloc.shape, strict=True):
        inside.append(f"{names[variable]} >= 0")
        inside.append(holds_text(extent - 1 - variable, names, parameters))
    position = ", ".join([*outer, *(names[variable] for variable in layout.variables)])
    box = parameters.set(f"[{position}] : {' and '.join(inside) or 'true'}")
    limits: list[Affine] = []
    for index, extent in zip(layout.indices, layout.shape, strict=True):
        limits.extend((index, extent - 1 - index))
    outside = " or ".join(f"({fails_text(form, names, parameters)})" for form in limits)
    stray = box.intersect(parameters.set(f"[{position}] : {outside or 'false'}"))
    if not stray.is_empty():
        found = sample(nest, stray)
        point = found.coordinates[len(outer) :]
        return Counterexample(
            CLAIM,
            f"the layout of {storage.tensor.name} puts an element outside its memory",
            named_sizes(found.sizes),
            accesses=(f"position {list(point)} of the box",),
            refuted=found.is_real and not outer,
        )
    places = ", ".join([*outer, *(form_text(i, names, parameters) for i in layout.indices)])
    places_of = parameters.map(f"[{position}] -> [{places}]").intersect_domain(box)
    if layout.folded or places_of.is_injective():  # what folding needs is a claim of its own
        return None
    pairs = places_of.apply_range(places_of.reverse()).subtract(box.identity())
    found = sample(nest, pairs.wrap())
    half = len(found.coordinates) // 2
    one, other = found.coordinates[len(outer) : half], found.coordinates[half + len(outer) :]
    return Counterexample(
        CLAIM,
        f"the layout of {storage.tensor.name} puts two elements in one place",
        named_sizes(found.sizes),
        accesses=(f"positions {list(one)} and {list(other)} of the box",),
        refuted=found.is_real and not outer,
    )


def _names(storage: Storage, alloc: Alloc, layout: Layout) -> tuple[dict[Var, str], list[str]]:
    """Name the layout's variables, and the loops outside that the box depends on.

    Those loops are taken to be anything: more than they are.
    """
    names = {variable: f"x{n}" for n, variable in enumerate(layout.variables)}
    used: set[Var] = set()
    for form in (*alloc.shape, *layout.indices, *layout.shape):
        used |= variables_of(form)
    outer = {variable: f"l{n}" for n, variable in enumerate(storage.prefix) if variable in used}
    return {**names, **outer}, list(outer.values())
