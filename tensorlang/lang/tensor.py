"""Tensors as the body of an operator sees them: ``A[i, k]``, ``A.shape``, ``A.dtype``.

Input:  ``A[2 * i, table[j]]``
Output: a ``Value`` around ``Load(A, (2 * i, int(table[j])))``
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tensorlang.dtypes import DType, bool_, evaluation_dtype, i64, integer_range, is_float, u64
from tensorlang.ir.affine import Affine, affine
from tensorlang.ir.definition import Tensor
from tensorlang.ir.expr import Call, Cast, Const, Expr, Load, index_from_value
from tensorlang.lang.application import as_operand
from tensorlang.lang.axes import IndexTuple, Shape
from tensorlang.lang.conversion import convert
from tensorlang.lang.expression import Expression
from tensorlang.lang.mistakes import definition_error
from tensorlang.lang.trace import Trace, active
from tensorlang.lang.values import BOOLS, INTEGERS, Index, Value
from tensorlang.source import user_location


class TensorHandle(Expression):
    """A parameter or the result of a stage, indexed by its logical axes.

    One without axes can be used as a value directly.
    """

    __slots__ = ("tensor", "trace")

    def __init__(self, tensor: Tensor, trace: Trace) -> None:
        self.tensor = tensor
        self.trace = trace

    @property
    def shape(self) -> Shape:
        """The extents, each an index expression that can be iterated."""
        return Shape([Index(extent) for extent in self.tensor.shape])

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.tensor.shape)

    @property
    def dtype(self) -> DType:
        """The dtype of the elements."""
        return self.tensor.dtype

    def __getitem__(self, key: Any) -> Value:
        return self._load(self._indices(key))

    def _load(self, indices: tuple[Affine, ...]) -> Value:
        trace = active()
        if trace is None or trace is not self.trace:
            raise definition_error(
                f"{self} belongs to another operator; pass it as a parameter instead"
            )
        load = Load(self.tensor, indices)
        trace.load_places[id(load)] = (load, user_location())
        return Value(convert(load, evaluation_dtype(self.dtype)), self.dtype)

    def _indices(self, key: Any) -> tuple[Affine, ...]:
        parts: list[object] = []
        for part in key if isinstance(key, tuple) else (key,):  # pyright: ignore
            parts.extend(part if isinstance(part, IndexTuple) else (part,))  # pyright: ignore
        if len(parts) != self.ndim:
            raise definition_error(
                f"{self} has {_count(self.ndim, 'axis', 'axes')}, but "
                f"{_count(len(parts), 'index is', 'indices are')} given: "
                f"{self}[{', '.join(map(str, parts))}]; write {_indexed(str(self), self.ndim)}"
            )
        return tuple([self._index(part, axis) for axis, part in enumerate(parts)])

    def _index(self, part: object, axis: int) -> Affine:
        if isinstance(part, slice) or part is Ellipsis or part is None:
            raise definition_error(
                f"{self} is indexed by a slice; a definition names single elements: write a "
                "comprehension over the part that is wanted"
            )
        if isinstance(part, BOOLS):
            raise definition_error(f"{self} is indexed by a bool; write tl.where")
        if isinstance(part, INTEGERS):
            if part < 0:
                raise definition_error(
                    f"{self} is indexed by {part}; negative indices do not count from the end "
                    f"here: write {self.tensor.shape[axis] + int(part)}"
                )
            return affine(int(part))
        if isinstance(part, Index):
            return part.affine
        value = as_operand(part)
        if not isinstance(value, Value) or is_float(value.dtype) or value.dtype is bool_:
            kind = value.dtype.name if isinstance(value, Value) else type(part).__name__
            raise definition_error(
                f"index {axis} of {self} must be an integer, not {kind}; "
                "// divides integers, and tl.cast(x, tl.i64) makes one of a value that counts "
                "elements"
            )
        return index_from_value(in_i64(value.expr))

    def as_value(self) -> Value:
        """Return the element of a tensor without axes."""
        if self.ndim:
            raise definition_error(
                f"{self} has {_count(self.ndim, 'axis', 'axes')} and is used as a number; "
                "index it inside tl.tensor(... for i in ...)"
            )
        return self._load(())

    def __setitem__(self, key: Any, value: Any) -> None:
        raise definition_error(
            f"an element of {self} is assigned to, but each element has one value: make another "
            "tensor, with tl.where for the elements that differ"
        )

    def __len__(self) -> int:
        raise definition_error(
            f"len({self}) is not known while the operator is traced; write {self}.shape[0]"
        )

    def __matmul__(self, other: object) -> Any:
        raise definition_error(
            f"{self} @ {other} has no meaning here; write the sum that it stands for: "
            "tl.tensor(tl.sum(a[i, k] * b[k, j] for k in K) for i in M for j in N)"
        )

    def __iter__(self) -> Iterator[Any]:
        raise definition_error(
            f"{self} is iterated; loop over a size and index: {self}[i] for i in {self}.shape[0]"
        )

    def __repr__(self) -> str:
        self.trace.note_locals()
        return self.trace.name_of(self.tensor)


def in_i64(index: Expr) -> Expr:
    """Return an integer that i64 holds: what is greater lies outside of every tensor anyway."""
    if index.dtype is not u64:
        return index
    greatest = Const(integer_range(i64)[1], u64)
    return Cast(Call("minimum", (index, greatest), u64), i64)


def _indexed(name: str, ndim: int) -> str:
    """Return how a tensor of this rank is indexed: ``x[i, j]``; one without axes is ``x``."""
    letters = list("ijklmn")[:ndim] if ndim <= 6 else [f"i{axis}" for axis in range(ndim)]
    return f"{name}[{', '.join(letters)}]" if letters else f"{name} without an index"


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


def names_by_variable(name: str, value: object, trace: Trace) -> Iterator[tuple[Tensor, str]]:
    """Yield the tensors that a user's variable names.

    A reduction inside of the expression that the variable holds is called ``mean.sum``.
    """
    from tensorlang.lang.read_reduction import ReductionValue

    if isinstance(value, TensorHandle):
        yield value.tensor, name
    elif isinstance(value, ReductionValue):
        yield from ((tensor, name) for tensor in value.hoisted_tensors)
    elif isinstance(value, Value):
        for load in value.loads:
            base, kind = trace.derived_names.get(load.tensor, (load.tensor, ""))
            if base is None:
                yield load.tensor, f"{name}.{kind}"
