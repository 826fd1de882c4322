"""The tensors of a graph that is being built: what ``h + b`` and ``x[:, 1:]`` act on.

Input:  ``x @ w + b`` with graph tensors x and w, and b a graph tensor or an array
Output: two nodes, and the graph tensor of the second one's output

Each operator of Python is the operator of ``tl.nn`` of that meaning, so it broadcasts as NumPy's
does.
"""

from __future__ import annotations

from types import EllipsisType
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorlang import nn
from tensorlang.dtypes import DType
from tensorlang.ir.definition import Tensor
from tensorlang.ir.printer import format_tensor_type
from tensorlang.lang.axes import Shape
from tensorlang.lang.mistakes import definition_error
from tensorlang.lang.values import BOOLS, INTEGERS, Index

if TYPE_CHECKING:
    from tensorlang.graph.builder import Graph


class GraphTensor:
    """A tensor of a graph; ``shape`` holds integers, and index expressions over the sizes."""

    __slots__ = ("graph", "tensor")
    __array_ufunc__ = None  # an array on the left of an operator leaves the work to this class

    def __init__(self, graph: Graph, tensor: Tensor) -> None:
        self.graph = graph
        self.tensor = tensor

    @property
    def shape(self) -> Shape:
        """The extents: integers where they are known, else expressions over the graph's sizes."""
        return Shape([e.constant if e.is_constant else Index(e) for e in self.tensor.shape])

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.tensor.shape)

    @property
    def dtype(self) -> DType:
        """The dtype of the elements."""
        return self.tensor.dtype

    @property
    def name(self) -> str:
        """The tensor's name in the graph."""
        return self.tensor.name

    @property
    def T(self) -> Any:  # noqa: N802 - NumPy's name
        """The tensor with its axes reversed."""
        return nn.transpose(self)

    def __tensorlang_call__(
        self, operator: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Add the call of an operator to the graph; ``Operator`` looks for this method."""
        return self.graph.call(operator, args, kwargs)

    def __add__(self, other: Any) -> Any:
        return _apply(nn.add, self, other)

    def __radd__(self, other: Any) -> Any:
        return _apply(nn.add, other, self)

    def __sub__(self, other: Any) -> Any:
        return _apply(nn.subtract, self, other)

    def __rsub__(self, other: Any) -> Any:
        return _apply(nn.subtract, other, self)

    def __mul__(self, other: Any) -> Any:
        return _apply(nn.multiply, self, other)

    def __rmul__(self, other: Any) -> Any:
        return _apply(nn.multiply, other, self)

    def __truediv__(self, other: Any) -> Any:
        return _apply(nn.divide, self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return _apply(nn.divide, other, self)

    def __matmul__(self, other: Any) -> Any:
        return _apply(nn.matmul, self, other)

    def __rmatmul__(self, other: Any) -> Any:
        return _apply(nn.matmul, other, self)

    def __neg__(self) -> Any:
        return nn.negative(self)

    def __lt__(self, other: Any) -> Any:
        return _apply(nn.less, self, other)

    def __le__(self, other: Any) -> Any:
        return _apply(nn.less_equal, self, other)

    def __gt__(self, other: Any) -> Any:
        return _apply(nn.greater, self, other)

    def __ge__(self, other: Any) -> Any:
        return _apply(nn.greater_equal, self, other)

    def __eq__(self, other: object) -> Any:
        return _apply(nn.equal, self, other)

    def __ne__(self, other: object) -> Any:
        return _apply(nn.not_equal, self, other)

    __hash__ = object.__hash__

    def __bool__(self) -> bool:
        raise definition_error(
            f"{self.name} is used as a condition, but a tensor of a graph has no value before the "
            "graph runs; decide with tl.where inside an operator"
        )

    def __len__(self) -> int:
        raise definition_error(f"{self.name} has no len() in Python; use {self.name}.shape[0]")

    def __iter__(self) -> Any:
        raise definition_error(
            f"{self.name} is iterated by Python; index it: {self.name}[0], or call an operator"
        )

    def __getitem__(self, key: Any) -> Any:
        slices, dropped = _as_slices(self, key)
        return nn.take_slice(self, slices=slices, drop=dropped)

    def __repr__(self) -> str:
        return f"{self.name}: {format_tensor_type(self.tensor)}"


def _apply(function: Any, left: Any, right: Any) -> Any:
    other = right if isinstance(left, GraphTensor) else left
    known = isinstance(other, GraphTensor | np.ndarray | np.generic | bool | int | float)
    return function(left, right) if known or hasattr(other, "__dlpack__") else NotImplemented


def _as_slices(
    tensor: GraphTensor, key: Any
) -> tuple[tuple[tuple[int | None, int | None, int | None], ...], tuple[int, ...]]:
    """Return start, stop and step for each axis, and the axes of which one element is taken."""
    parts: list[Any] = list(key) if isinstance(key, tuple) else [key]  # pyright: ignore
    missing = tensor.ndim - sum(not isinstance(part, EllipsisType) for part in parts)
    places = [n for n, part in enumerate(parts) if isinstance(part, EllipsisType)]
    if missing < 0 or len(places) > 1:
        raise definition_error(
            f"{tensor.name} has {tensor.ndim} axes, but {len(parts)} indices are given"
        )
    place = places[0] if places else len(parts)
    parts[place : place + len(places)] = [slice(None)] * missing
    slices: list[tuple[int | None, int | None, int | None]] = []
    dropped: list[int] = []
    for axis, (part, extent) in enumerate(zip(parts, tensor.shape, strict=True)):
        if isinstance(part, INTEGERS) and not isinstance(part, BOOLS):
            slices.append(_element(tensor, axis, int(part), extent))
            dropped.append(axis)
        elif isinstance(part, slice):
            slices.append(_range(tensor, part, extent))
        else:
            raise definition_error(
                f"{tensor.name} is indexed by {part!r}; a graph slices with integers, slices with "
                "constant bounds, and ...; for indices from data write an operator"
            )
    return tuple(slices), tuple(dropped)


def _element(
    tensor: GraphTensor, axis: int, position: int, extent: Any
) -> tuple[int, int | None, None]:
    if isinstance(extent, int) and not -extent <= position < extent:
        raise definition_error(f"index {position} is out of bounds for axis {axis} of {tensor!r}")
    return position, (position + 1 or None), None


def _range(
    tensor: GraphTensor, part: Any, extent: Any
) -> tuple[int | None, int | None, int | None]:
    bounds = (part.start, part.stop, part.step)
    if any(b is not None and not isinstance(b, INTEGERS) for b in bounds):
        raise definition_error(f"a slice of {tensor.name} must have integer bounds, not {part!r}")
    step = 1 if part.step is None else int(part.step)
    if step < 1:
        raise definition_error(f"a slice of {tensor.name} must have a positive step, not {step}")
    if isinstance(extent, int):  # as NumPy does, bounds outside mean the end
        start, stop, _ = part.indices(extent)
        return start, max(start, stop), step
    return part.start, part.stop, step
