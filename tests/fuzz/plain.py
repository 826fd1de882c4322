"""The text of an operator run as plain Python, one element at a time, without tracing anything.

Input:  ``t0 = tl.tensor(tl.sum(A[i, k] for k in N) for i in M)`` and arrays
Output: what Python makes of it when ``tl.sum`` adds up, ``M`` is a number and ``A`` an array

The reference of an operator evaluates its *definition*; this evaluates what the user wrote. Both
branches of ``where`` are evaluated, so that indices out of range are no errors here: they give some
number, on which nothing may depend.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np

from tests.fuzz.arrays import NUMPY, shape_of
from tests.fuzz.operators import Sample


class Size(int):
    """A number that can be iterated, as a dim can."""

    def __iter__(self) -> Iterator[int]:
        return iter(builtins.range(self))

    def __add__(self, other: int) -> Size:
        return Size(int(self) + other)

    def __sub__(self, other: int) -> Size:
        return Size(int(self) - other)

    def __mul__(self, other: int) -> Size:
        return Size(int(self) * other)

    def __floordiv__(self, other: int) -> Size:
        return Size(int(self) // other)

    __radd__, __rmul__ = __add__, __mul__


class Elements:
    """An array with elements outside, which are all the same."""

    def __init__(self, array: np.ndarray[Any, Any], outside: int = 0) -> None:
        self.array = array
        self.outside = outside

    def __getitem__(self, index: Any) -> Any:
        indices = index if isinstance(index, tuple) else (index,)
        inside = zip(indices, self.array.shape, strict=True)
        if all(0 <= i < extent for i, extent in inside):
            return self.array[tuple(int(i) for i in indices)]
        return self.array.dtype.type(self.outside)


def run_plain(
    sample: Sample, sizes: Mapping[str, int], arguments: list[Any], outside: int = 0
) -> Any:
    """Return the outputs of a sample, where elements outside of tensors are ``outside``."""
    space: dict[str, Any] = {"tl": TL, **{name: Size(size) for name, size in sizes.items()}}
    for held, value in zip((*sample.inputs, *sample.scalars), arguments, strict=True):
        if held.shape:
            space[held.name] = Elements(np.asarray(value), outside)
        else:
            space[held.name] = np.dtype(NUMPY[held.element.dtype]).type(value)
    known = {held.name: held for held in sample.tensors}
    head, _, body = sample.text.partition("@tl.compute\n")
    exec(head, space)
    with np.errstate(all="ignore"):
        for line in body.splitlines()[1:-1]:
            names, _, expression = line.strip().partition(" = ")
            parts = names.split(", ")
            try:
                values = eval(expression, space)
            except NameError:  # of a tensor with a negative extent: nothing reads this one either
                continue
            except IndexError:  # of a scatter: right only if nobody needs any of its elements
                shape = shape_of(known[names].shape, sizes)
                values = Elements(np.full(shape, outside))
            if len(parts) == 1 or values == []:
                values = [values] * len(parts)
            for name, value in zip(parts, values, strict=True):
                held = known[name]
                shape = shape_of(held.shape, sizes)
                if any(extent < 0 for extent in shape):
                    continue  # nothing reads it, or the reference would have raised
                array = np.array(_flattened(value), NUMPY[held.element.dtype])
                array = array.reshape(shape)
                space[name] = Elements(array, outside) if held.shape else array[()]
    outputs = [space[held.name] for held in sample.outputs]
    arrays = tuple(o.array if isinstance(o, Elements) else np.asarray(o) for o in outputs)
    return arrays if len(arrays) > 1 else arrays[0]


def _flattened(value: Any) -> Any:
    if isinstance(value, Elements):
        return value.array.ravel()
    if not isinstance(value, list):
        return value
    return [x for part in value for x in (_flattened(part) if isinstance(part, list) else [part])]


def _tensor(elements: Iterable[Any]) -> Any:
    """Return a flat list; for tuples, one list for each part of the state."""
    found = list(elements)
    if found and isinstance(found[0], tuple):
        return tuple(list(part) for part in zip(*found, strict=True))
    return found


def _range(low: int, high: int | None = None) -> Any:
    return Size(low) if high is None else builtins.range(low, high)


def _reduce(
    combine: Callable[..., Any], identity: Any, elements: Iterable[Any], *, ordered: bool = False
) -> Any:
    state: Any = identity
    for element in elements:
        state = combine(state, element)
    return state


def _scan(
    combine: Callable[..., Any],
    identity: Any,
    elements: Iterable[Any],
    *,
    exclusive: bool = False,
    reverse: bool = False,
) -> list[Any]:
    given = list(elements)
    state, found = identity, []
    for element in reversed(given) if reverse else given:
        if exclusive:
            found.append(state)
        state = combine(state, element)
        if not exclusive:
            found.append(state)
    return found[::-1] if reverse else found


def _rank(x: Any) -> tuple[bool, Any]:
    return (True, 0) if x != x else (False, x)


def _argsort(x: Elements, *, axis: int = -1, descending: bool = False) -> Elements:
    rows = np.moveaxis(x.array, axis, -1)
    found = np.zeros(rows.shape, np.int64)
    for place in np.ndindex(*rows.shape[:-1]):
        keys = [_rank(key) for key in rows[place]]
        found[place] = sorted(builtins.range(len(keys)), key=keys.__getitem__, reverse=descending)
    return Elements(np.moveaxis(found, -1, axis))


def _sort(x: Elements, *, axis: int = -1, descending: bool = False) -> Elements:
    places = _argsort(x, axis=axis, descending=descending).array
    return Elements(np.take_along_axis(x.array, places, axis))


def _topk(x: Elements, k: int, *, axis: int, largest: bool) -> tuple[Elements, Elements]:
    places = np.moveaxis(_argsort(x, axis=axis, descending=largest).array, axis, -1)[..., :k]
    places = np.moveaxis(places, -1, axis)
    return Elements(np.take_along_axis(x.array, places, axis)), Elements(places)


def _scatter(base: Elements, updates: Iterable[Any], combine: str | None) -> Elements:
    combined: dict[str | None, Callable[[Any, Any], Any]] = {
        None: lambda a, b: b,
        "add": lambda a, b: a + b,
        "mul": lambda a, b: a * b,
        "min": np.minimum,
        "max": np.maximum,
    }
    array = base.array.copy()
    if array.size == 0:  # no element needs an update, and whether one is made is not settled
        return Elements(array)
    for place, value in updates:
        at = place if isinstance(place, tuple) else (place,)
        if not all(0 <= i < extent for i, extent in zip(at, array.shape, strict=True)):
            raise IndexError(at)
        at = tuple(int(i) for i in at)
        array[at] = combined[combine](array[at], value)
    return Elements(array)


def _folded(combine: Callable[..., Any], identity: Any) -> Callable[..., Any]:
    return lambda elements, ordered=False: _reduce(combine, identity, elements)


def _extreme(name: str) -> Callable[[Iterable[Any]], Any]:
    def extreme(elements: Iterable[Any]) -> Any:
        found = list(elements)
        if not found:
            raise Empty(name)
        return getattr(np, name)(found)

    return extreme


class Empty(Exception):
    """The extreme of nothing: its value depends on a dtype that is not known, or it has none."""


def _position(name: str) -> Callable[[Iterable[Any]], Any]:
    def position(elements: Iterable[Any]) -> Any:
        found = list(elements)
        if not found:
            raise Empty(name)
        return np.int64(getattr(np, name)(np.array(found)))

    return position


def _where(condition: Any, a: Any, b: Any) -> Any:
    chosen, other = (a, b) if condition else (b, a)
    weak = not isinstance(chosen, np.generic) and isinstance(other, np.generic)
    return other.dtype.type(chosen) if weak else chosen


def _pad(x: Elements, amounts: Mapping[int, tuple[int, int]], value: Any) -> Elements:
    widths = [amounts.get(axis, (0, 0)) for axis in builtins.range(x.array.ndim)]
    return Elements(np.pad(x.array, widths, constant_values=value))


def _cast(x: Any, dtype: Any) -> Any:
    kind = np.dtype(dtype)
    if isinstance(x, ml_dtypes.bfloat16):
        x = float(x)
    if kind.kind not in "iu" or not isinstance(x, float | np.floating):
        return np.asarray(x).astype(kind)[()]
    if math.isnan(x):
        return kind.type(0)
    info = np.iinfo(kind)
    if math.isinf(x):
        return kind.type(info.max if x > 0 else info.min)
    return kind.type(builtins.max(info.min, builtins.min(info.max, int(x))))


def _popcount(x: Any) -> int:
    return (int(x) & (2 ** (8 * x.dtype.itemsize) - 1)).bit_count()


def _float(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return ``function``, computed in f64 and rounded to the operand's dtype."""
    return lambda x: x.dtype.type(function(np.float64(x)))


def _erf(x: Any) -> float:
    return math.erf(x) if not math.isnan(x) else math.nan


TL = SimpleNamespace(
    tensor=_tensor, range=_range, reduce=_reduce, scan=_scan, pad=_pad, where=_where, cast=_cast,
    sum=_folded(lambda a, b: a + b, 0), prod=_folded(lambda a, b: a * b, 1),
    any=lambda e: np.bool_(builtins.any(list(e))), all=lambda e: np.bool_(builtins.all(list(e))),
    max=_extreme("max"), min=_extreme("min"), argmax=_position("argmax"),
    argmin=_position("argmin"),
    minimum=np.minimum, maximum=np.maximum, sign=np.sign, floor=np.floor, ceil=np.ceil,
    round=np.rint, trunc=np.trunc, isnan=np.isnan, isinf=np.isinf, popcount=_popcount,
    clip=lambda x, low, high: np.minimum(np.maximum(x, x.dtype.type(low)), x.dtype.type(high)),
    sin=_float(np.sin), cos=_float(np.cos), tan=_float(np.tan), tanh=_float(np.tanh),
    sinh=_float(np.sinh), cosh=_float(np.cosh), asin=_float(np.arcsin), acos=_float(np.arccos),
    atan=_float(np.arctan), atan2=lambda y, x: y.dtype.type(np.arctan2(np.float64(y), x)),
    exp=_float(np.exp), exp2=_float(np.exp2), expm1=_float(np.expm1), log=_float(np.log),
    log2=_float(np.log2), log1p=_float(np.log1p), sqrt=_float(np.sqrt),
    rsqrt=_float(lambda x: 1 / np.sqrt(x)), sigmoid=_float(lambda x: 1 / (1 + np.exp(-x))),
    erf=_float(_erf), pow=lambda x, y: x.dtype.type(np.float64(x) ** y),
    fma=lambda x, a, b: x.dtype.type(np.float64(x) * a + b),
    sort=_sort, argsort=_argsort, topk=_topk, scatter=_scatter,
    f32=np.float32, f64=np.float64, f16=np.float16, bf16=ml_dtypes.bfloat16, bool=np.bool_,
    i8=np.int8, i16=np.int16, i32=np.int32, i64=np.int64, inf=math.inf,
    u8=np.uint8, u16=np.uint16, u32=np.uint32, u64=np.uint64,
)  # fmt: skip
"""What the generated text uses of the language, element by element."""
