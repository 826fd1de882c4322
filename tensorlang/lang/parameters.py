"""The parameters of an operator, read from the signature of its function.

Input:  ``def f(A: tl.f32[M, K], x, alpha: tl.f32, *, stride: int = 1, n: tl.Dim)``
Output: a tensor, a generic tensor, a scalar, an attribute and a dim, as ``Parameter`` values
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import FrameType
from typing import Any, Literal, cast

import numpy as np

from tensorlang.dtypes import (
    BY_NAME,
    DType,
    Element,
    TensorAnnotation,
    from_numpy,
    integer_range,
    is_float,
)
from tensorlang.ir.affine import Affine, affine
from tensorlang.lang.dims import Dim
from tensorlang.lang.mistakes import definition_error
from tensorlang.lang.values import BOOLS, INTEGERS, Index
from tensorlang.source import SourceLocation

Kind = Literal["tensor", "generic", "scalar", "dim", "attribute"]

ARRAYS = cast("tuple[type[Any], ...]", (np.ndarray, np.generic))
MISSING: Any = inspect.Parameter.empty


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter; ``dtype`` of tensors and scalars, ``shape`` of annotated tensors."""

    name: str
    kind: Kind
    keyword_only: bool
    default: Any = MISSING
    dtype: DType | None = None
    shape: tuple[Affine, ...] = ()

    @property
    def is_optional(self) -> bool:
        """Whether the parameter is a tensor that may be left out (``bias=None``)."""
        return self.kind in ("tensor", "generic") and self.default is None


def as_dtype(value: object) -> DType | None:
    """Return ``value`` if it is a dtype."""
    return value if isinstance(value, type) and issubclass(value, Element) else None


def read_parameters(
    function: Callable[..., Any], frame: FrameType | None, location: SourceLocation
) -> tuple[Parameter, ...]:
    """Return the parameters of ``function``, which was defined in ``frame``."""
    result: list[Parameter] = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise definition_error(
                f"{function.__name__}: *{parameter.name} is not possible; name each parameter",
                location,
            )
        annotation = parameter.annotation
        if isinstance(annotation, str):
            annotation = _evaluate(annotation, function, frame, location)
        result.append(_parameter(parameter, annotation, function.__name__, location))
    return tuple(result)


def _evaluate(
    text: str, function: Callable[..., Any], frame: FrameType | None, location: SourceLocation
) -> Any:
    local = {} if frame is None else dict(frame.f_locals)
    try:
        return eval(text, getattr(function, "__globals__", {}), local)
    except Exception as error:
        raise definition_error(
            f"{function.__name__}: the annotation {text!r} cannot be evaluated: {error}", location
        ) from error


def _parameter(
    parameter: inspect.Parameter, annotation: Any, operator: str, location: SourceLocation
) -> Parameter:
    name, default = parameter.name, parameter.default
    keyword_only = parameter.kind is parameter.KEYWORD_ONLY
    if isinstance(annotation, TensorAnnotation):
        _check_tensor_default(name, default, operator, location)
        shape = tuple([_extent(part, name, operator, location) for part in annotation.shape])
        return Parameter(name, "tensor", keyword_only, default, annotation.dtype, shape)
    scalar = as_dtype(annotation)
    if scalar is not None:
        return Parameter(name, "scalar", keyword_only, default, scalar)
    if annotation is Dim:
        if not keyword_only:
            raise definition_error(
                f"{operator}: the size {name}: tl.Dim must be keyword-only; put a * before it",
                location,
            )
        return Parameter(name, "dim", True, default)
    if keyword_only:
        return Parameter(name, "attribute", True, default)
    if annotation is MISSING or annotation is Any:
        _check_tensor_default(name, default, operator, location)
        return Parameter(name, "generic", False, default)
    shown = inspect.formatannotation(annotation)
    raise definition_error(
        f"{operator}: the parameter {name}: {shown} is not a tensor (tl.f32[M, N]) or a scalar "
        f"(tl.f32); attributes are keyword-only: put a * before it",
        location,
    )


def _check_tensor_default(name: str, default: Any, operator: str, location: SourceLocation) -> None:
    if default is not MISSING and default is not None:
        raise definition_error(
            f"{operator}: the tensor {name} has the default {default!r}; it may be None, or the "
            "parameter an attribute after a *",
            location,
        )


def _extent(part: object, name: str, operator: str, location: SourceLocation) -> Affine:
    if isinstance(part, Index):
        return part.affine
    if isinstance(part, INTEGERS) and not isinstance(part, BOOLS) and part >= 0:
        return affine(int(part))
    raise definition_error(
        f"{operator}: {part!r} in the shape of {name} is not a size; make dims with "
        'M, N = tl.dims("M N"), or write an integer',
        location,
    )


# --- arguments -------------------------------------------------------------------------------


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
    if hasattr(value, "__dlpack__"):
        array = cast("np.ndarray[Any, Any]", np.from_dlpack(value))
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
            f"an array of dtype {dtype} has the other byte order; convert it: "
            "x.astype(x.dtype.newbyteorder('='))"
        )
    ours = from_numpy(dtype)
    if ours is None:
        raise TypeError(f"arrays of dtype {dtype} are not supported")
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
        raise TypeError(
            f"{operator}() takes {len(positional)} positional arguments, but {len(args)} were given"
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
