"""LLVM's types, and the values that emitted instructions make.

Input:  ``vector("float", 8)``      Output: a ``Type`` whose text is ``<8 x float>``

A type with one lane is a scalar. Elements of a dtype have a form in memory and another in
registers: a bool is a byte and an ``i1``; f16 and bf16 are two bytes and computed as ``float``.
"""

from __future__ import annotations

import struct
from functools import cache

from tensorlang.dtypes import DType, bf16, evaluation_dtype, f16

_BITS = {
    "i1": 1, "i8": 8, "i16": 16, "i32": 32, "i64": 64,
    "half": 16, "float": 32, "double": 64,
    "ptr": 64, "ptr addrspace(1)": 64, "ptr addrspace(3)": 64,
}  # fmt: skip

_SUFFIXES = {
    "half": "f16", "float": "f32", "double": "f64",
    "ptr": "p0", "ptr addrspace(1)": "p1", "ptr addrspace(3)": "p3",
}  # fmt: skip


class Type:
    """A scalar or vector type of LLVM; made by :func:`vector`, so that ``is`` compares."""

    __slots__ = ("bits", "element", "is_float", "lanes", "suffix", "text")

    def __init__(self, element: str, lanes: int) -> None:
        self.element = element
        self.lanes = lanes
        self.bits = _BITS[element]
        self.is_float = element in ("half", "float", "double")
        self.text = element if lanes == 1 else f"<{lanes} x {element}>"
        short = _SUFFIXES.get(element, element)
        self.suffix = short if lanes == 1 else f"v{lanes}{short}"

    def __repr__(self) -> str:
        return self.text


class Value:
    """The result of an instruction, or a constant; ``ref`` is how operands name it."""

    __slots__ = ("ref", "type")

    def __init__(self, ref: str, type: Type) -> None:
        self.ref = ref
        self.type = type

    @property
    def text(self) -> str:
        """The operand with its type."""
        return f"{self.type.text} {self.ref}"

    @property
    def is_constant(self) -> bool:
        """Whether the value is a literal."""
        return not self.ref.startswith("%")

    def __repr__(self) -> str:
        return self.text


@cache
def vector(element: str, lanes: int) -> Type:
    """Return the type of ``lanes`` elements, a scalar for one lane."""
    return Type(element, lanes)


I1, I8, I16, I32, I64 = (vector(f"i{bits}", 1) for bits in (1, 8, 16, 32, 64))
F32, F64, PTR = vector("float", 1), vector("double", 1), vector("ptr", 1)
GLOBAL_PTR, SHARED_PTR = vector("ptr addrspace(1)", 1), vector("ptr addrspace(3)", 1)
"""Pointers to the memory of a GPU: what all blocks see, and what one block shares."""


@cache
def register_type(dtype: DType, lanes: int = 1) -> Type:
    """Return the type in which values of ``dtype`` are computed."""
    dtype = evaluation_dtype(dtype)
    if dtype.kind == "bool":
        return vector("i1", lanes)
    if dtype.kind == "float":
        return vector("float" if dtype.bits == 32 else "double", lanes)
    return vector(f"i{dtype.bits}", lanes)


@cache
def memory_type(dtype: DType, lanes: int = 1) -> Type:
    """Return the type of elements of ``dtype`` in memory."""
    if dtype in (f16, bf16):
        return vector("i16", lanes)
    if dtype.kind == "bool":
        return vector("i8", lanes)
    return register_type(dtype, lanes)


def constant(value: bool | int | float, type: Type) -> Value:
    """Return a literal of ``type``, the same in every lane.

    A float is rounded to the type; an integer wraps into it, whatever its sign.
    """
    if type.is_float:
        ref = float_literal(float(value), type.element)
    elif type.element == "i1":
        ref = "true" if value else "false"
    else:
        wrapped = int(value) & (2**type.bits - 1)
        ref = str(wrapped - 2**type.bits if wrapped >> (type.bits - 1) else wrapped)
    if type.lanes > 1:
        ref = f"splat ({type.element} {ref})"
    return Value(ref, type)


def float_literal(value: float, element: str) -> str:
    """Return the bits of a float as LLVM writes them: always those of a double."""
    if element == "float":
        value = _round_to_single(value)
    return f"0x{struct.unpack('>Q', struct.pack('>d', value))[0]:016X}"


def _round_to_single(value: float) -> float:
    try:
        return struct.unpack("f", struct.pack("f", value))[0]
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def lane_constants(values: list[int] | range, element: str) -> Value:
    """Return a vector literal of integers, one a lane."""
    items = ", ".join([f"{element} {value}" for value in values])
    return Value(f"<{items}>", vector(element, len(values)))
