"""Arguments as NumPy arrays: what is accepted, and how it lies in memory.

Input:  a strided view, a memoryview, anything with DLPack     Output: an ndarray over the same data

Nothing is converted silently: a list, or f64 data for an f32 parameter, is a TypeError that tells
what to write. Only data that the machine could not read as it lies is copied.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, cast

import numpy as np

from tensorlang.dtypes import from_numpy, to_numpy
from tensorlang.ir.definition import Tensor
from tensorlang.ir.printer import format_tensor_type
from tensorlang.lang.foreign import as_numpy_view

Array: TypeAlias = np.ndarray[Any, Any]
ArrayLayout: TypeAlias = Literal["contiguous", "inner", "any"]


@dataclass(frozen=True, slots=True)
class TensorParameter:
    """A tensor parameter of ``function`` (or one of its outputs)."""

    function: str
    tensor: Tensor
    dtype: np.dtype[Any] = field(init=False)
    rank: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", to_numpy(self.tensor.dtype))
        object.__setattr__(self, "rank", len(self.tensor.shape))

    @property
    def name(self) -> str:
        """The parameter's name."""
        return self.tensor.name

    @property
    def type(self) -> str:
        """The type as declared: ``f32[M, K]``."""
        return format_tensor_type(self.tensor)


def as_array(parameter: TensorParameter, value: Any) -> Array:
    """Return ``value`` as an array of the parameter's dtype and rank, without copying.

    Raises TypeError for what is not an array or has another dtype, ValueError for another rank.
    """
    array = value if type(value) is np.ndarray else _to_ndarray(parameter, value)
    if array.dtype is not parameter.dtype and array.dtype != parameter.dtype:
        raise TypeError(_wrong_dtype(parameter, array))
    if array.ndim != parameter.rank:
        raise ValueError(
            f"{parameter.function}: {parameter.name} must be {parameter.type}"
            f" ({_axes(parameter.rank)}), found shape {array.shape} ({_axes(array.ndim)})"
        )
    return array


def _axes(rank: int) -> str:
    return "1 axis" if rank == 1 else f"{rank} axes"


def _to_ndarray(parameter: TensorParameter, value: Any) -> Array:
    where = f"{parameter.function}: {parameter.name} must be an array, {parameter.type}"
    if isinstance(value, np.ma.MaskedArray):
        raise TypeError(
            f"{where}; found a masked array, whose mask would be lost:"
            f" pass {parameter.name}.filled()"
        )
    if isinstance(value, np.ndarray):
        return cast("Array", value)
    is_number = isinstance(value, bool | int | float)
    if isinstance(value, np.generic) or (is_number and parameter.rank == 0):
        return np.asarray(cast("Any", value))
    if is_number or value is None or isinstance(value, complex | str | list | tuple):
        raise TypeError(
            f"{where}; found {_describe(value)}: convert it with"
            f" np.asarray(..., dtype=np.{parameter.dtype.name})"
        )
    try:
        return as_numpy_view(value)
    except TypeError as error:
        raise TypeError(f"{where}; found {_describe(value)}: {error}") from error


def _describe(value: Any) -> str:
    if value is None:
        return "None"
    name = type(value).__name__
    return f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}"


def _wrong_dtype(parameter: TensorParameter, array: Array) -> str:
    wanted = f"{parameter.tensor.dtype.name} (np.{parameter.dtype.name})"
    found = array.dtype.name
    advice = f"pass {parameter.name}.astype(np.{parameter.dtype.name})"
    if array.dtype.newbyteorder("=") == parameter.dtype:
        found, advice = f"{array.dtype.str}, of foreign byte order", f"{advice} to swap its bytes"
    elif from_numpy(array.dtype) is None:
        advice = f"tensorlang has no such element type; {advice} if it can be converted"
    return (
        f"{parameter.function}: {parameter.name} must hold {wanted}, {parameter.type},"
        f" found {found}: {advice}"
    )


def is_addressable(array: Array) -> bool:
    """Tell whether all elements lie at multiples of their own size, as machine code needs it."""
    itemsize = array.dtype.itemsize
    return address_of(array) % itemsize == 0 and all(
        stride % itemsize == 0 for stride in array.strides
    )


def layout_of(array: Array) -> ArrayLayout:
    """Return how ``array`` lies in memory.

    >>> layout_of(np.zeros((4, 6))), layout_of(np.zeros((4, 6))[:, :3]), layout_of(np.zeros(6)[::2])
    ('contiguous', 'inner', 'any')
    """
    if array.flags.c_contiguous:
        return "contiguous"
    if array.strides[-1] == array.dtype.itemsize or array.shape[-1] == 1:
        return "inner"
    return "any"


def _slow_address_of(array: Array) -> int:
    return array.__array_interface__["data"][0]


_DATA_OFFSET = object.__basicsize__  # of the pointer in NumPy's array struct, which is public


def _fast_address_of(array: Array) -> int:
    return _pointer_at(id(array) + _DATA_OFFSET).value or 0


_pointer_at = ctypes.c_size_t.from_address


def _choose_address_of() -> Callable[[Array], int]:
    """Return the fast way if arrays are laid out as expected; the other costs a microsecond."""
    samples = [np.zeros(7)[start:] for start in range(3)]
    if sys.implementation.name == "cpython" and all(
        _fast_address_of(sample) == _slow_address_of(sample) for sample in samples
    ):
        return _fast_address_of
    return _slow_address_of


address_of = _choose_address_of()
"""Returns the address of an array's first element."""
