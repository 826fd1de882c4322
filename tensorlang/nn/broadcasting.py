"""Operators whose operands are stretched: extents of 1 beside others, as NumPy has it.

Input:  ``matmul(a, b)`` with ``a: [1, M, K]`` and ``b: [8, K, N]``
Output: the call of the operator with ``stretch=((0,), ())``: axis 0 of ``a`` is read at 0

Which axes are stretched is decided by the shapes as they are known when the operator is applied; a
definition says it with an attribute, so that each way of stretching is a version of its own.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from typing import Any, cast

from tensorlang.lang.application import index_form, is_index_like
from tensorlang.lang.compute import Operator
from tensorlang.lang.parameters import read_parameters
from tensorlang.nn.agreement import require_equal
from tensorlang.source import SourceLocation

Stretch = tuple[tuple[int, ...], ...]
"""For each operand, the axes of the result along which its only element is read."""


class Broadcasting(Operator):
    """An operator that finds its attribute ``stretch`` from the shapes of its operands."""

    kept = 0
    """How many of an operand's last axes do not take part."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the operator, or inline it, with the axes stretched that need it."""
        return super().__call__(*args, **self._with_stretch(args, kwargs))

    def reference(self, *args: Any, **kwargs: Any) -> Any:
        """Return the operator's value as its definition says, evaluated with NumPy."""
        return super().reference(*args, **self._with_stretch(args, kwargs))

    def _with_stretch(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        names = [parameter.name for parameter in self.parameters if not parameter.keyword_only]
        operands = [*args, *[kwargs[name] for name in names[len(args) :] if name in kwargs]]
        stretch = find_stretch(operands, self.kept)
        if "stretch" in kwargs or not any(stretch):
            return kwargs
        return {**kwargs, "stretch": stretch}


def broadcasting(kept: int = 0) -> Callable[[Callable[..., Any]], Broadcasting]:
    """Return the decorator of an operator with broadcasting; ``kept`` last axes take no part."""
    frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]

    def decorate(function: Callable[..., Any]) -> Broadcasting:
        code = inspect.unwrap(function).__code__
        location = SourceLocation(code.co_filename, code.co_firstlineno, function.__name__)
        made = Broadcasting(function, read_parameters(function, frame, location), location)
        operator = cast("Broadcasting", made)
        operator.kept = kept
        return operator

    return decorate


def find_stretch(operands: list[Any], kept: int) -> Stretch:
    """Return for each operand which axes of the result it is stretched along."""
    ones: list[list[bool]] = []
    for operand in operands:
        shape = getattr(operand, "shape", ())
        axes = shape[: max(len(shape) - kept, 0)]
        ones.append([_is_one(extent) for extent in axes])
    rank = max([len(axes) for axes in ones], default=0)
    columns = [
        [axes[place - rank + len(axes)] for axes in ones if place >= rank - len(axes)]
        for place in range(rank)
    ]
    needed = [not all(column) for column in columns]
    return tuple(
        [
            tuple(
                [
                    place
                    for place in range(rank - len(axes), rank)
                    if needed[place] and axes[place - rank + len(axes)]
                ]
            )
            for axes in ones
        ]
    )


def _is_one(extent: Any) -> bool:
    form = index_form(extent) if is_index_like(extent) else None
    return form is not None and not form.terms and form.constant == 1


class Stretched:
    """The shape that the leading axes of operands have together, and how each is read."""

    def __init__(self, operator: str, shapes: list[Any], stretch: Stretch) -> None:
        self.stretch: Stretch = stretch or ((),) * len(shapes)
        self.rank = max([len(shape) for shape in shapes], default=0)
        self.skips = [self.rank - len(shape) for shape in shapes]
        self.shape: list[Any] = []
        for place in range(self.rank):
            extents: list[Any] = []
            for shape, skip, along in zip(shapes, self.skips, self.stretch, strict=True):
                if place < skip:
                    continue
                extent = shape[place - skip]
                if place in along:
                    message = f"{operator}: axis {place - self.rank} is stretched, which needs 1"
                    require_equal(extent, 1, message)
                else:
                    extents.append(extent)
            message = f"{operator}: axis {place - self.rank} of the operands must be equal"
            for other in extents[1:]:
                require_equal(extents[0], other, message)
            self.shape.append(extents[0])

    def at(self, operand: int, i: Any) -> tuple[Any, ...]:
        """Return the index at which an operand is read for point ``i`` of the leading axes."""
        skip, along = self.skips[operand], self.stretch[operand]
        return tuple([0 if place in along else i[place] for place in range(skip, self.rank)])
