"""Reads of an instance that runs beyond the end of its tensor, kept inside memory.

Input (no guard on i and j any more)::      Output::

    A[i, k] * B[k, j]                           A[min(i, M - 1), k] * where(j < N, B[k, j], 0)

An index that is not proved to stay inside is clamped to the last element, or, where it depends on a
vector's lane (clamped lanes would not be neighbours), the load becomes lazy. Clamping is right only
for a load that every instance makes: one under ``where`` may never happen inside the tensor, not
even once, so that there may be nothing to clamp to.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from tensorlang.dtypes import DType, bool_, i64
from tensorlang.ir.affine import (
    ZERO,
    Affine,
    affine,
    depends_on,
    minimum,
    substitute,
    variables_of,
)
from tensorlang.ir.definition import Stage
from tensorlang.ir.expr import Call, Const, Expr, IndexValue, Load, Select, children
from tensorlang.ir.program import Compute
from tensorlang.ir.walk import rewrite_expr
from tensorlang.lower.place import Place
from tensorlang.lower.storage import has_room

Filled: TypeAlias = Mapping[int, set[int]]
"""For each ``Alloc`` (by id), the axes along which its writers fill all the room there is."""


@dataclass(frozen=True, slots=True)
class SafeReads:
    """The loads of ``compute``, whose tail guards along ``axes`` are about to be dropped."""

    compute: Compute
    axes: set[int]
    place: Place
    filled: Filled

    def stage(self) -> Stage:
        """Return the instance's stage with its loads made safe."""
        stage = self.compute.stage
        strict = _strict_loads(stage.values) if self._is_independent() else set[int]()
        empty = {axis for axis in self.axes if not self._reaches_inside(axis)}

        def visit(node: Expr) -> Expr:
            if not isinstance(node, Load):
                return node
            return self._made_safe(node, empty, id(node) in strict)

        values = tuple([rewrite_expr(value, visit) for value in stage.values])
        if all(new is old for new, old in zip(values, stage.values, strict=True)):
            return stage
        return replace(stage, values=values)

    def _is_independent(self) -> bool:
        """Whether the guards that stay do not depend on where the instance is along ``axes``."""
        stage = self.compute.stage
        moving = {v for axis in self.axes for v in variables_of(self.compute.binding[axis])}
        ends = {stage.axes[axis].extent - 1 - self.compute.binding[axis] for axis in self.axes}
        return not any(depends_on(form, moving) for form in self.compute.guard if form not in ends)

    def _reaches_inside(self, axis: int) -> bool:
        """Whether the loops, where they run at all, reach an instance inside the tensor."""
        known = self.place.known
        form = self.compute.stage.axes[axis].extent - 1 - self.compute.binding[axis]
        first = {
            variable: ZERO
            for variable in variables_of(form)
            if known.extents.get(variable, affine(variable)).is_constant
        }
        return known.proves(substitute(form, first))

    def _made_safe(self, load: Load, empty: set[int], is_strict: bool) -> Expr:
        """Return a load that touches only memory that is there.

        A strict load is made by every instance; if its index along a dimension does not move with
        ``axes``, some instance inside the tensor makes it too, unless there may be none along one
        of the ``empty`` axes.
        """
        indices = list(load.indices)
        lazy: set[int] = set()
        for dimension, index in enumerate(load.indices):
            axes = self._axes_of(index)
            if self._fills_with_zeros():
                lazy |= axes | empty
            elif empty and self._is_there(load, dimension):
                continue
            elif (is_strict and not axes) or self._is_defined(load, dimension):
                lazy |= empty
            elif is_strict and self._may_clamp(load, dimension, is_inside=not empty):
                indices[dimension] = minimum(index, load.tensor.shape[dimension] - 1)
            else:
                lazy |= (axes if is_strict else self.axes) | empty
        if indices != list(load.indices):
            load = Load(load.tensor, tuple(indices))
        if not lazy:
            return load
        condition = _conjunction(self._inside(axis) for axis in sorted(lazy))
        return Select(condition, load, _zero(load.dtype), load.dtype)

    def _axes_of(self, index: Affine) -> set[int]:
        moving = variables_of(index)
        axes = self.compute.stage.axes
        return {axis for axis in self.axes if axes[axis].variable in moving}

    def _fills_with_zeros(self) -> bool:
        """Whether the instance is a copy that is to have zeros in the lanes beyond the tensor."""
        stage = self.compute.stage
        target = self.place.storage[self.compute.redirect(stage.tensor)]
        return stage.copies is not None and target.scope != "local"

    def _here(self, index: Affine) -> Affine:
        stage = self.compute.stage
        return substitute(index, dict(zip(stage.variables, self.compute.binding, strict=False)))

    def _is_defined(self, load: Load, dimension: int) -> bool:
        """Whether a read along ``dimension`` finds a defined value in any case."""
        known = self.place.known
        index = self._here(load.indices[dimension])
        tensor = self.compute.redirect(load.tensor)
        if known.proves(index) and known.proves(tensor.shape[dimension] - 1 - index):
            return True
        alloc = self.place.storage.get(tensor)
        if alloc is None or dimension not in self.filled.get(id(alloc), ()):
            return False
        return has_room(alloc, dimension, index, known)

    def _is_there(self, load: Load, dimension: int) -> bool:
        """Whether a read of the caller's memory stays inside, whatever other instances do."""
        if self.place.storage.get(self.compute.redirect(load.tensor)) is not None:
            return False
        return self._is_defined(load, dimension)

    def _may_clamp(self, load: Load, dimension: int, *, is_inside: bool) -> bool:
        """Whether the least of the index and the last element is certainly an element.

        ``is_inside``: some instance makes the load inside the tensor, which has an element then.
        """
        index = self._here(load.indices[dimension])
        if depends_on(index, self.place.variables("vectorized")):
            return False
        known = self.place.known
        end = load.tensor.shape[dimension]
        alloc = self.place.storage.get(self.compute.redirect(load.tensor))
        if not is_inside and (alloc is not None or not known.proves(end - 1)):
            return False
        if alloc is None:
            return known.proves(index)
        origin = alloc.origin[dimension]
        last = end - 1
        # A box that begins beyond the tensor has no last element to clamp to.
        within = (index - origin, alloc.shape[dimension] - 1 - (index - origin), last - origin)
        return all(known.proves(form) for form in within)

    def _inside(self, axis: int) -> Affine:
        end = self.compute.stage.axes[axis]
        return end.extent - 1 - end.variable


def _strict_loads(roots: tuple[Expr, ...]) -> set[int]:
    """Return the ids of the loads that are made whatever the conditions are."""
    found: set[int] = set()
    seen: set[int] = set()
    stack = list(roots)
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, Load):
            found.add(id(node))
        stack.extend([node.condition] if isinstance(node, Select) else children(node))
    return found


def _conjunction(forms: Iterable[Affine]) -> Expr:
    """Return the condition that all ``forms`` are >= 0."""
    result: Expr | None = None
    for form in forms:
        holds = Call("ge", (IndexValue(form, i64), Const(0, i64)), bool_)
        result = holds if result is None else Call("and", (result, holds), bool_)
    assert result is not None
    return result


def _zero(dtype: DType) -> Const:
    match dtype.kind:
        case "float":
            return Const(0.0, dtype)
        case "bool":
            return Const(False, dtype)
        case _:
            return Const(0, dtype)
