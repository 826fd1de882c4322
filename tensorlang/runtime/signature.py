"""The parameters of a compiled function, and how a call's arguments find them.

Input:  ``f(A, B, alpha=2)``       Output: ``Arguments(arrays=(A, B), scalars=(2.0,), dims={})``

Sizes that no array fixes (``n: tl.Dim``) are given by keyword. An attribute (``stride: int = 1``)
has one value per compiled function; repeating that value is harmless.
"""

from __future__ import annotations

import math
import operator
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import numpy as np

from tensorlang.dtypes import DType, bf16, integer_range, is_integer
from tensorlang.ir.definition import Attribute, Definition
from tensorlang.runtime.arrays import TensorParameter, as_array


@dataclass(frozen=True, slots=True)
class ScalarParameter:
    """A scalar parameter: ``alpha: tl.f32``."""

    function: str
    name: str
    dtype: DType


class Arguments(NamedTuple):
    """The arguments of a call, checked one by one but not yet against each other."""

    arrays: tuple[np.ndarray[Any, Any], ...]
    scalars: tuple[float, ...]
    dims: Mapping[str, int]


class Signature:
    """The parameters of ``definition`` by position and by name.

    ``defaults`` are values of scalars and sizes that a call may leave out.
    """

    def __init__(self, definition: Definition, defaults: Mapping[str, Any] | None = None) -> None:
        name = definition.name
        self.name = name
        self.tensors = tuple(TensorParameter(name, tensor) for tensor in definition.inputs)
        self.scalars = tuple(ScalarParameter(name, s.name, s.dtype) for s in definition.scalars)
        self.dims = tuple(dim.name for dim in definition.dims)
        self._attributes: dict[str, Attribute] = dict(definition.attributes)
        self._defaults = dict(defaults or {})
        values = [parameter.name for parameter in (*self.tensors, *self.scalars)]
        self._places = {name: place for place, name in enumerate(values)}
        listed = [name for name in definition.parameters if name not in self.dims]
        self._positional = listed if set(values) <= set(listed) else values
        self._in_place = self._positional == values

    def bind(self, args: Sequence[Any], keywords: Mapping[str, Any]) -> Arguments:
        """Return the arguments by parameter; raises TypeError for what does not fit."""
        if self._in_place and not keywords and not self.dims and len(args) == len(self._places):
            return self.convert(args[: len(self.tensors)], args[len(self.tensors) :], {})
        given = self._by_name(args, keywords)
        values = [given[name] for name in self._places]
        dims = {name: as_size(self.name, name, given[name]) for name in self.dims}
        return self.convert(values[: len(self.tensors)], values[len(self.tensors) :], dims)

    def convert(
        self, tensors: Sequence[Any], scalars: Sequence[Any], dims: Mapping[str, int]
    ) -> Arguments:
        """Return arguments that are in order already, as arrays and numbers."""
        return Arguments(
            tuple(map(as_array, self.tensors, tensors)),
            tuple(map(as_scalar, self.scalars, scalars)) if scalars else (),
            dims,
        )

    def _by_name(self, args: Sequence[Any], keywords: Mapping[str, Any]) -> dict[str, Any]:
        if len(args) > len(self._positional):
            raise TypeError(
                f"{self.name} takes {len(self._positional)} positional arguments"
                f" ({self._listing()}), found {len(args)}"
            )
        given = dict(zip(self._positional, args, strict=False))
        known = {*self._positional, *self.dims}
        for name, value in keywords.items():
            if name in given:
                raise TypeError(f"{self.name}: {name} is given twice")
            if name in known:
                given[name] = value
            else:
                self._check_attribute(name, value)
        for name, value in given.items():
            if name not in self._places and name not in self.dims and value is not None:
                raise TypeError(f"{self.name} was compiled without {name}, which must be None")
        given = {**self._defaults, **given}
        for names, what in ((self._places, ""), (self.dims, "size ")):
            missing = ", ".join(name for name in names if name not in given)
            if missing:
                raise TypeError(
                    f"{self.name}: missing {what}{missing}; the parameters are {self._listing()}"
                )
        return given

    def _check_attribute(self, name: str, value: Any) -> None:
        if name not in self._attributes:
            raise TypeError(
                f"{self.name} has no parameter {name!r}; the parameters are {self._listing()}"
            )
        fixed = self._attributes[name]
        if type(value) is not type(fixed) or value != fixed:
            raise TypeError(
                f"{self.name} was compiled with {name}={fixed!r}, which {value!r} cannot replace;"
                f" compile it again with {name}={value!r}"
            )

    def _listing(self) -> str:
        return ", ".join([*self._positional, *(f"{dim}=" for dim in self.dims)]) or "none"


def as_size(function: str, name: str, value: Any) -> int:
    """Return a size given by keyword as an int >= 0."""
    try:
        size = -1 if isinstance(value, bool) else operator.index(value)
    except TypeError:
        size = -1
    if size < 0:
        kind = ValueError if isinstance(value, int) and not isinstance(value, bool) else TypeError
        raise kind(f"{function}: the size {name} must be an integer >= 0, found {value!r}")
    return size


def as_scalar(parameter: ScalarParameter, value: Any) -> float:
    """Return ``value`` as the number to pass for a scalar parameter.

    Raises TypeError for the wrong kind (a float for an integer parameter), ValueError for a number
    that the dtype cannot hold.
    """
    if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.ndim == 0):
        value = cast("Any", value).item()
    dtype, where = parameter.dtype, f"{parameter.function}: {parameter.name}"
    if dtype.kind == "bool":
        if not isinstance(value, bool):
            raise TypeError(f"{where} must be a bool, found {_kind(value)}")
        return value
    if is_integer(dtype):
        if isinstance(value, bool) or not isinstance(value, int):
            raise TypeError(f"{where} must be an integer ({dtype.name}), found {_kind(value)}")
        low, high = integer_range(dtype)
        if not low <= value <= high:
            raise ValueError(f"{where} must lie in [{low}, {high}] ({dtype.name}), found {value}")
        return value
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{where} must be a number ({dtype.name}), found {_kind(value)}")
    try:
        return _bits_of_bf16(float(value)) if dtype is bf16 else _fitting(dtype, float(value))
    except OverflowError:
        raise ValueError(f"{where}: {value!r} is too large for {dtype.name}") from None


# in "=" formats, pack refuses what is out of range; in native ones it gives infinity
_FLOAT_FORMATS = {"f16": "=e", "f32": "=f", "f64": "=d"}


def _fitting(dtype: DType, value: float) -> float:
    struct.pack(_FLOAT_FORMATS[dtype.name], value)
    return value


def _bits_of_bf16(value: float) -> int:
    """Return the 16 bits of ``value``, rounded to nearest, ties to even."""
    (bits,) = struct.unpack("=I", struct.pack("=f", value))
    if math.isnan(value):
        return (bits >> 16) | 0x40
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    if math.isfinite(value) and rounded & 0x7F80 == 0x7F80:
        raise OverflowError
    return rounded


def _kind(value: Any) -> str:
    return (
        f"{value!r} ({type(value).__name__})"
        if isinstance(value, float | int)
        else (f"an object of type {type(value).__name__}")
    )
