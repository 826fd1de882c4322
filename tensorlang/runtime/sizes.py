"""From the shapes of a call's arrays to everything that depends on sizes.

Input:  shapes (3, 4) and (4, 5)
Output: ``Binding(sizes=(3, 5, 4), output_shapes=((3, 5),), work=...)``

The same shapes come back in call after call, so bindings are remembered: the checks below run
once per combination of shapes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from tensorlang.ir.affine import Var, evaluate
from tensorlang.ir.definition import Condition, Definition, Tensor
from tensorlang.ir.printer import format_condition
from tensorlang.runtime.work import Work, WorkCounter


class BindSizes(Protocol):
    """Gives every size its value.

    Raises ValueError, naming parameter, axis and both extents, where shapes contradict each other,
    and where a condition of the definition fails.
    """

    def __call__(
        self,
        definition: Definition,
        shapes: Mapping[Tensor, tuple[int, ...]],
        dims: Mapping[str, int],
    ) -> dict[Var, int]:
        """Return the values of ``definition.sizes``."""
        ...


@dataclass(frozen=True, slots=True)
class Binding:
    """What the shapes of a call decide; ``sizes`` in the order of the definition."""

    sizes: tuple[int, ...]
    output_shapes: tuple[tuple[int, ...], ...]
    work: Work


_REMEMBERED = 512


class SizeBinder:
    """Binds sizes, checks every condition on them, and remembers the outcome by shapes.

    ``conditions`` are those that a schedule adds to the definition's own.
    """

    def __init__(
        self, definition: Definition, conditions: Sequence[Condition], bind_sizes: BindSizes
    ) -> None:
        self._definition = definition
        self._conditions = tuple(conditions)
        self._bind_sizes = bind_sizes
        self._counter = WorkCounter(definition)
        self._known: dict[tuple[Any, ...], Binding] = {}

    def bind(self, shapes: tuple[tuple[int, ...], ...], dims: Mapping[str, int]) -> Binding:
        """Return the binding for ``shapes``; ``dims`` gives the sizes that no array fixes.

        Raises ValueError if the shapes contradict each other, or break a condition.
        """
        key = (shapes, *[dims[dim.name] for dim in self._definition.dims])
        known = self._known.get(key)
        if known is None:
            known = self._bind(shapes, dims)
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            self._known[key] = known
        return known

    def _bind(self, shapes: tuple[tuple[int, ...], ...], dims: Mapping[str, int]) -> Binding:
        definition = self._definition
        by_tensor = dict(zip(definition.inputs, shapes, strict=True))
        sizes = self._bind_sizes(definition, by_tensor, dims)
        _check_conditions(definition, self._conditions, sizes)
        return Binding(
            sizes=tuple(sizes[size] for size in definition.sizes),
            output_shapes=tuple(
                tuple(evaluate(extent, sizes) for extent in tensor.shape)
                for tensor in definition.outputs
            ),
            work=self._counter.count(sizes),
        )


def format_sizes(sizes: Mapping[Var, int]) -> str:
    """Return ``M = 3, N = 5``."""
    return ", ".join(f"{size.name} = {value}" for size, value in sizes.items()) or "no sizes"


def _check_conditions(
    definition: Definition, conditions: Sequence[Condition], sizes: Mapping[Var, int]
) -> None:
    for condition in conditions:
        value = evaluate(condition.form, sizes)
        if value >= 0 if not condition.equality else value == 0:
            continue
        claim = f"{condition.form} == 0" if condition.equality else format_condition(condition.form)
        message = condition.message or "these sizes are not accepted"
        raise ValueError(
            f"{definition.name}: {message}\n  needed: {claim}\n  found:  {format_sizes(sizes)}"
        )
