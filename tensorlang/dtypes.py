"""The element types, each one a class, so that ``tl.f32[M, K]`` annotates a parameter.

Input:  ``f32[M, K]``
Output: ``TensorAnnotation(dtype=f32, shape=(M, K))``

The classes are never instantiated: the IR stores them as they are (``DType = type[Element]``) and
compares them with ``is``. The members declared under ``TYPE_CHECKING`` let a strict type checker
accept ``A[i, k] * 2`` in the body of an operator whose parameter is annotated ``A: tl.f32[M, K]``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeAlias, cast

import numpy as np

Kind = Literal["bool", "int", "uint", "float"]


@dataclass(frozen=True, slots=True)
class TensorAnnotation:
    """What stands behind ``A: tl.f32[M, K]``: an element type and a tuple of sizes."""

    dtype: DType
    shape: tuple[Any, ...]


class _ElementType(type):
    """What a dtype is an instance of: it prints as users write it."""

    def __repr__(cls) -> str:
        return f"tl.{getattr(cls, 'name', cls.__name__)}"


class Element(metaclass=_ElementType):
    """Base of the element types; the class itself is the value that the IR stores."""

    name: ClassVar[str]
    kind: ClassVar[Kind]
    bits: ClassVar[int]

    def __class_getitem__(cls, shape: Any) -> TensorAnnotation:
        sizes = cast("tuple[Any, ...]", shape) if isinstance(shape, tuple) else (shape,)
        return TensorAnnotation(cls, sizes)

    def __new__(cls, *values: object) -> Self:
        """Refuse: a dtype is the class itself, and a conversion is written ``tl.cast``."""
        raise TypeError(f"a dtype is not called; write tl.cast(x, tl.{cls.name})")

    if TYPE_CHECKING:
        dtype: Any
        shape: Any
        ndim: int

        def __getitem__(self, index: Any) -> Any: ...
        def __add__(self, other: Any) -> Any: ...
        def __radd__(self, other: Any) -> Any: ...
        def __sub__(self, other: Any) -> Any: ...
        def __rsub__(self, other: Any) -> Any: ...
        def __mul__(self, other: Any) -> Any: ...
        def __rmul__(self, other: Any) -> Any: ...
        def __truediv__(self, other: Any) -> Any: ...
        def __rtruediv__(self, other: Any) -> Any: ...


DType: TypeAlias = type[Element]


class bool_(Element):  # noqa: N801 - a dtype, named as NumPy names it
    """Truth values, one byte each in memory."""

    name, kind, bits = "bool", "bool", 8


class i8(Element):  # noqa: N801
    """Signed integers of 8 bits."""

    name, kind, bits = "i8", "int", 8


class i16(Element):  # noqa: N801
    """Signed integers of 16 bits."""

    name, kind, bits = "i16", "int", 16


class i32(Element):  # noqa: N801
    """Signed integers of 32 bits."""

    name, kind, bits = "i32", "int", 32


class i64(Element):  # noqa: N801
    """Signed integers of 64 bits; the type of every index."""

    name, kind, bits = "i64", "int", 64


class u8(Element):  # noqa: N801
    """Unsigned integers of 8 bits."""

    name, kind, bits = "u8", "uint", 8


class u16(Element):  # noqa: N801
    """Unsigned integers of 16 bits."""

    name, kind, bits = "u16", "uint", 16


class u32(Element):  # noqa: N801
    """Unsigned integers of 32 bits."""

    name, kind, bits = "u32", "uint", 32


class u64(Element):  # noqa: N801
    """Unsigned integers of 64 bits."""

    name, kind, bits = "u64", "uint", 64


class f16(Element):  # noqa: N801
    """IEEE 754 half precision; expressions over it are evaluated in f32."""

    name, kind, bits = "f16", "float", 16


class bf16(Element):  # noqa: N801
    """The upper 16 bits of an f32 (through ml_dtypes); evaluated in f32."""

    name, kind, bits = "bf16", "float", 16


class f32(Element):  # noqa: N801
    """IEEE 754 single precision."""

    name, kind, bits = "f32", "float", 32


class f64(Element):  # noqa: N801
    """IEEE 754 double precision."""

    name, kind, bits = "f64", "float", 64


ALL: tuple[DType, ...] = (
    bool_, i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64,
)  # fmt: skip
BY_NAME: dict[str, DType] = {dtype.name: dtype for dtype in ALL}

_NUMPY_NAMES = {
    "bool": "bool", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64",
    "u8": "uint8", "u16": "uint16", "u32": "uint32", "u64": "uint64",
    "f16": "float16", "f32": "float32", "f64": "float64",
}  # fmt: skip


def to_numpy(dtype: DType) -> np.dtype[Any]:
    """Return the NumPy dtype of native byte order; bf16 comes from ml_dtypes, loaded on demand."""
    if dtype is bf16:
        from importlib import import_module

        return np.dtype(import_module("ml_dtypes").bfloat16)
    return np.dtype(_NUMPY_NAMES[dtype.name])


_FROM_NUMPY: dict[str, DType] = {numpy: BY_NAME[ours] for ours, numpy in _NUMPY_NAMES.items()}
_FROM_NUMPY["bfloat16"] = bf16


def from_numpy(dtype: np.dtype[Any]) -> DType | None:
    """Return the element type of a NumPy dtype, or None for one that tensorlang does not have."""
    return _FROM_NUMPY.get(dtype.name)


def is_float(dtype: DType) -> bool:
    """Tell whether ``dtype`` is a floating-point type."""
    return dtype.kind == "float"


def is_integer(dtype: DType) -> bool:
    """Tell whether ``dtype`` is a signed or unsigned integer (bool is not)."""
    return dtype.kind in ("int", "uint")


def evaluation_dtype(dtype: DType) -> DType:
    """Return the type in which expressions of ``dtype`` are computed: f32 for f16 and bf16."""
    return f32 if dtype in (f16, bf16) else dtype


def integer_range(dtype: DType) -> tuple[int, int]:
    """Return the least and the greatest value of an integer type (bool: 0 and 1)."""
    if dtype is bool_:
        return 0, 1
    if dtype.kind == "uint":
        return 0, 2**dtype.bits - 1
    return -(2 ** (dtype.bits - 1)), 2 ** (dtype.bits - 1) - 1
