"""The parameters of an operator, read from the signature of its function.

Input:  ``def f(A: tl.f32[M, K], x, alpha: tl.f32, *, stride: int = 1, n: tl.Dim)``
Output: a tensor, a generic tensor, a scalar, an attribute and a dim, as ``Parameter`` values
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType
from typing import Any, Literal

from tensorlang.dtypes import (
    DType,
    Element,
    TensorAnnotation,
)
from tensorlang.ir.affine import Affine, affine
from tensorlang.lang.dims import Dim
from tensorlang.lang.mistakes import definition_error
from tensorlang.lang.values import BOOLS, INTEGERS, Index
from tensorlang.source import SourceLocation

Kind = Literal["tensor", "generic", "scalar", "dim", "attribute"]

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
