"""The arguments of a call: described, checked, and matched with parameters.

Input:  ``(A, B)`` and ``{"stride": 2}`` of a call      Output: the argument of each parameter
Input:  an array, NumPy's or another library's          Output: its rank and dtype
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np

from tensorlang.dtypes import BY_NAME, DType, TensorAnnotation, from_numpy, integer_range, is_float
from tensorlang.ir.affine import Affine
from tensorlang.ir.definition import Definition
from tensorlang.lang.expression import Expression
from tensorlang.lang.foreign import as_numpy_view, is_foreign_array
from tensorlang.lang.mistakes import definition_error
from tensorlang.lang.parameters import MISSING, Parameter, as_dtype
from tensorlang.lang.values import INTEGERS, NUMPY_SCALARS

ARRAYS = cast("tuple[type[Any], ...]", (np.ndarray, np.generic))


def describe_array(value: Any) -> tuple[int, DType] | None:
    """Return rank and dtype of an argument for a tensor, or None if it is no array.

    Raises TypeError for an array whose elements tensorlang does not have.
    """
    if isinstance(value, ARRAYS):
        return value.ndim, _dtype_of(value.dtype)
    if isinstance(value, TensorAnnotation):
        return len(value.shape), value.dtype
    if isinstance(value, bool | int | float):
        return 0, _dtype_of(np.asarray(value).dtype)
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    if shape is not None and dtype is not None:
        ours = as_dtype(dtype)
        if ours is not None:
            return len(shape), ours
        if isinstance(dtype, np.dtype):
            return len(shape), _dtype_of(cast("np.dtype[Any]", dtype))
        named = _FOREIGN.get(str(dtype).rpartition(".")[2])
        if named is not None:
            return len(shape), named
        raise TypeError(f"arrays of dtype {dtype} are not supported")
    if is_foreign_array(value):
        array = as_numpy_view(value)
        return array.ndim, _dtype_of(array.dtype)
    return None


_FOREIGN = {
    "float16": BY_NAME["f16"], "bfloat16": BY_NAME["bf16"], "float32": BY_NAME["f32"],
    "float64": BY_NAME["f64"], "int8": BY_NAME["i8"], "int16": BY_NAME["i16"],
    "int32": BY_NAME["i32"], "int64": BY_NAME["i64"], "uint8": BY_NAME["u8"],
    "uint16": BY_NAME["u16"], "uint32": BY_NAME["u32"], "uint64": BY_NAME["u64"],
    "bool": BY_NAME["bool"],
}  # fmt: skip


def _dtype_of(dtype: np.dtype[Any]) -> DType:
    if not dtype.isnative:
        raise TypeError(
            f"an array of dtype {dtype} has the other byte order; convert it with "
            f".astype(np.{dtype.newbyteorder('=').name})"
        )
    ours = from_numpy(dtype)
    if ours is None:
        raise TypeError(
            f"arrays of dtype {dtype} are not supported; convert it, for example with "
            ".astype(np.float32)"
        )
    return ours


def check_scalar(operator: str, name: str, dtype: DType, value: Any) -> bool | int | float:
    """Return the argument of a scalar parameter as a Python number that ``dtype`` can hold."""
    if isinstance(value, ARRAYS) and value.ndim == 0:
        value = value.item()
    accepted: type | tuple[type, ...] = bool
    if dtype.kind != "bool":
        accepted = (int, float) if is_float(dtype) else int
    if not isinstance(value, accepted) or (isinstance(value, bool) and dtype.kind != "bool"):
        raise TypeError(
            f"{operator}: the scalar {name} is {dtype.name}, but {value!r} "
            f"({type(value).__name__}) is given"
        )
    if not is_float(dtype):
        low, high = integer_range(dtype)
        if not low <= value <= high:
            raise ValueError(f"{operator}: {name} = {value} is out of the range of {dtype.name}")
    return value


def arguments_by_name(
    operator: str,
    parameters: tuple[Parameter, ...],
    args: tuple[Any, ...],
    given: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the argument of each parameter, defaults included.

    Raises TypeError for too many, unknown, repeated and missing arguments, as Python does.
    """
    positional = [parameter for parameter in parameters if not parameter.keyword_only]
    if len(args) > len(positional):
        arguments = "argument" if len(positional) == 1 else "arguments"
        raise TypeError(
            f"{operator}() takes {len(positional)} positional {arguments}, "
            f"but {len(args)} were given"
        )
    result = {parameter.name: arg for parameter, arg in zip(positional, args, strict=False)}
    known = {parameter.name for parameter in parameters}
    for name, value in given.items():
        if name not in known:
            raise TypeError(f"{operator}() has no parameter {name}")
        if name in result:
            raise TypeError(f"{operator}() got {name} twice")
        result[name] = value
    for parameter in parameters:
        if parameter.name not in result:
            if parameter.default is MISSING:
                raise TypeError(f"{operator}() misses the argument {parameter.name}")
            result[parameter.name] = parameter.default
    return result


def typed_key(value: Any) -> Any:
    """Return a key that tells 1 from True and 1.0, and 0.0 from -0.0."""
    if isinstance(value, tuple):
        return tuple([typed_key(part) for part in cast("tuple[Any, ...]", value)])
    if isinstance(value, float):
        return float, value.hex()
    return type(value), value


def check_attribute(operator: str, name: str, value: Any) -> Any:
    """Return the value of an attribute: hashable, lists as tuples, NumPy scalars as Python's."""
    if isinstance(value, NUMPY_SCALARS):
        value = value.item()
    if isinstance(value, list):
        value = tuple(cast("list[Any]", value))
    if isinstance(value, Expression):
        raise definition_error(
            f"{operator}: the attribute {name} must be a Python value, not the symbolic {value}; "
            f"declare a size as `{name}: tl.Dim`"
        )
    try:
        hash(value)
    except TypeError:
        raise TypeError(
            f"{operator}: the attribute {name} must be a number, a string, None or a tuple of "
            f"these, not {type(value).__name__}"
        ) from None
    return value


def check_size(operator: str, name: str, value: Any) -> int:
    """Return the argument of a size (``n: tl.Dim``) as an int."""
    if isinstance(value, bool) or not isinstance(value, INTEGERS):
        raise TypeError(f"{operator}: the size {name} must be an integer, not {value!r}")
    return int(value)


def sizes_in_annotations(definition: Definition, given: Mapping[str, Any]) -> dict[str, int]:
    """Return the sizes that annotations such as ``tl.f32[1, 784]`` fix for generic parameters."""
    sizes: dict[str, int] = {}
    for tensor in definition.inputs:
        annotation = given.get(tensor.name)
        if isinstance(annotation, TensorAnnotation):
            for form, extent in zip(tensor.shape, annotation.shape, strict=True):
                name = _lone_size(form)
                if isinstance(extent, int) and name is not None:
                    sizes[name] = extent
    return sizes


def _lone_size(form: Affine) -> str | None:
    return str(form) if len(form.terms) == 1 and form == Affine(0, form.terms) else None


def as_numpy(value: Any) -> np.ndarray[Any, Any]:
    """Return an array of any kind as NumPy's, without a copy where that is possible."""
    if isinstance(value, np.ndarray | np.generic | int | float):
        return np.asarray(value)
    return as_numpy_view(value)
