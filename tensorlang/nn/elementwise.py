"""Arithmetic and comparisons by element, with the broadcasting of NumPy.

Input:  ``add(x, b)`` with ``x: f32[B, N]`` and ``b: f32[N]``; ``multiply(x, 2)``
Output: ``f32[B, N]``

Which axes are stretched is decided by the shapes as they are known when the function is applied:
an axis of extent 1 beside another extent. Symbolic extents that meet must be equal at the call.
"""

from __future__ import annotations

import operator as python
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import tensorlang as tl
from tensorlang.lang.application import index_form, is_index_like
from tensorlang.lang.compute import Operator
from tensorlang.nn.agreement import require_equal


@dataclass(frozen=True, slots=True)
class Elementwise:
    """A function of two tensors, or of a tensor and a number, by element."""

    name: str
    on_tensors: Operator
    on_number: Operator
    summary: str

    def __call__(self, a: Any, b: Any, **options: Any) -> Any:
        """Apply the function; arrays, graph tensors, and tensors of an operator alike."""
        call, args, attributes = self._choose(a, b)
        return call(*args, **attributes, **options)

    def reference(self, a: Any, b: Any) -> Any:
        """Return the value as the definition says, evaluated with NumPy."""
        call, args, attributes = self._choose(a, b)
        return call.reference(*args, **attributes)

    def _choose(self, a: Any, b: Any) -> tuple[Operator, tuple[Any, ...], dict[str, Any]]:
        if is_number(b):
            return self.on_number, (a,), {"number": b}
        if is_number(a):
            return self.on_number, (b,), {"number": a, "swapped": True}
        ones_a, ones_b = _extents_of_one(a), _extents_of_one(b)
        rank = max(len(ones_a), len(ones_b))
        ones_a = (None,) * (rank - len(ones_a)) + ones_a
        ones_b = (None,) * (rank - len(ones_b)) + ones_b
        pairs = list(enumerate(zip(ones_a, ones_b, strict=True)))
        stretch_a = tuple([axis for axis, (one, other) in pairs if one and other is False])
        stretch_b = tuple([axis for axis, (one, other) in pairs if other and one is False])
        attributes = {"stretch_a": stretch_a, "stretch_b": stretch_b}
        return self.on_tensors, (a, b), {k: v for k, v in attributes.items() if v}


def is_number(value: Any) -> bool:
    """Tell whether an operand is a Python number, which adapts to the other one's dtype."""
    return isinstance(value, bool | int | float)


def _extents_of_one(tensor: Any) -> tuple[bool | None, ...]:
    """Return for each axis whether its extent is known to be 1."""
    return tuple([_is_one(extent) for extent in tensor.shape])


def _is_one(extent: Any) -> bool:
    form = index_form(extent) if is_index_like(extent) else None
    return form is not None and not form.terms and form.constant == 1


def elementwise(name: str, apply: Callable[[Any, Any], Any], summary: str) -> Elementwise:
    """Return the function of that name, made of two operators."""

    def on_tensors(
        a: Any, b: Any, *, stretch_a: tuple[int, ...] = (), stretch_b: tuple[int, ...] = ()
    ):
        rank = max(a.ndim, b.ndim)
        skip_a, skip_b = rank - a.ndim, rank - b.ndim
        shape: list[Any] = []
        for axis in range(rank):
            if axis < skip_a or axis in stretch_a:
                shape.append(b.shape[axis - skip_b])
                continue
            shape.append(a.shape[axis - skip_a])
            if axis >= skip_b and axis not in stretch_b:
                require_equal(
                    a.shape[axis - skip_a],
                    b.shape[axis - skip_b],
                    f"{name}: axis {axis - rank} of the operands must be equal",
                )

        def at(i: Any, skip: int, stretch: tuple[int, ...]) -> Any:
            return tuple([0 if axis in stretch else i[axis] for axis in range(skip, rank)])

        return tl.tensor(
            apply(a[at(i, skip_a, stretch_a)], b[at(i, skip_b, stretch_b)]) for i in tl.grid(shape)
        )

    def on_number(x: Any, *, number: bool | int | float, swapped: bool = False):
        return tl.tensor(
            apply(number, x[i]) if swapped else apply(x[i], number) for i in tl.grid(x.shape)
        )

    for function in (on_tensors, on_number):
        function.__name__ = name
        function.__doc__ = summary
    return Elementwise(name, tl.compute(on_tensors), tl.compute(on_number), summary)


add = elementwise("add", python.add, "Return ``a + b`` by element.")
subtract = elementwise("subtract", python.sub, "Return ``a - b`` by element.")
multiply = elementwise("multiply", python.mul, "Return ``a * b`` by element.")
divide = elementwise("divide", lambda a, b: a / b, "Return ``a / b`` by element.")
maximum = elementwise("maximum", tl.maximum, "Return the greater element; NaN if either is NaN.")
minimum = elementwise("minimum", tl.minimum, "Return the lesser element; NaN if either is NaN.")
less = elementwise("less", python.lt, "Return ``a < b`` by element, of bool.")
less_equal = elementwise("less_equal", python.le, "Return ``a <= b`` by element, of bool.")
greater = elementwise("greater", python.gt, "Return ``a > b`` by element, of bool.")
greater_equal = elementwise("greater_equal", python.ge, "Return ``a >= b`` by element, of bool.")
equal = elementwise("equal", python.eq, "Return ``a == b`` by element, of bool.")
not_equal = elementwise("not_equal", python.ne, "Return ``a != b`` by element, of bool.")


@tl.compute
def negative(x: Any):
    """Return ``-x`` by element."""
    return tl.tensor(-x[i] for i in tl.grid(x.shape))
