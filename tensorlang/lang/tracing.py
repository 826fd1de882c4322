"""Runs an operator's function on symbolic arguments: one definition per specialization.

Input:  the function of ``matmul`` and its parameters, ``A: f32[M, K], B: f32[K, N]``
Output: the ``Definition`` whose stages the function described
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import FunctionType
from typing import Any, cast

from tensorlang.dtypes import DType, evaluation_dtype
from tensorlang.ir.affine import Affine, Var, variables_of
from tensorlang.ir.definition import Attribute, Definition, Scalar, Tensor
from tensorlang.ir.expr import ScalarRef
from tensorlang.lang.binding import solvable_for
from tensorlang.lang.conversion import convert
from tensorlang.lang.dims import Dim
from tensorlang.lang.finish import finish
from tensorlang.lang.mistakes import definition_error
from tensorlang.lang.parameters import Parameter, as_dtype
from tensorlang.lang.tensor import TensorHandle
from tensorlang.lang.trace import Trace, active, pop, push
from tensorlang.lang.values import Value
from tensorlang.source import SourceLocation

Specialization = Mapping[str, Any]
"""For each generic tensor (rank, dtype), for each attribute its value; None: tensor left out."""


@dataclass(frozen=True, slots=True)
class _Bound:
    """Symbolic arguments: what the function is called with, and what the definition lists."""

    inputs: tuple[Tensor, ...]
    scalars: tuple[Scalar, ...]
    sizes: tuple[Var, ...]
    dims: tuple[Var, ...]
    dim_objects: Mapping[str, Dim]


def trace_function(
    function: Callable[..., Any],
    parameters: tuple[Parameter, ...],
    specialization: Specialization,
    location: SourceLocation,
) -> Definition:
    """Return the definition that ``function`` describes for one specialization."""
    name = function.__name__
    bound = _symbolic(name, parameters, specialization, location)
    attributes = {p.name: specialization[p.name] for p in parameters if p.kind == "attribute"}
    _check_names(name, bound.sizes, attributes, location)
    _check_bound(name, bound, location)
    code = cast("FunctionType", inspect.unwrap(function)).__code__
    trace = Trace(name, code, list(bound.sizes), list(bound.inputs), list(bound.scalars))
    push(trace)
    too_deep = False
    returned: object = None
    stages, outputs = (), ()
    try:
        returned = _call(function, parameters, bound, attributes, trace)
        stages, outputs = finish(trace, returned, location)
    except RecursionError:
        too_deep = True
    finally:
        pop()
        trace.frame = None
    if too_deep:  # said by the outermost operator, where there is room to say it
        if active() is not None:
            raise RecursionError
        raise definition_error(
            f"{name} calls itself, or what it calls does, more often than Python can: give the"
            " recursion an end that an attribute reaches (n=n - 1)",
            location,
        )
    present = [p.name for p in parameters if p.name not in attributes]
    return Definition(
        name=name,
        sizes=bound.sizes,
        inputs=bound.inputs,
        scalars=bound.scalars,
        stages=stages,
        outputs=outputs,
        conditions=tuple(trace.conditions),
        dims=bound.dims,
        parameters=tuple(present),
        attributes=tuple([(key, _plain(value)) for key, value in attributes.items()]),
        location=location,
        documentation=inspect.getdoc(function) or "",
    )


def _plain(value: Any) -> Attribute:
    """Return an attribute as the definition keeps it; a dtype by its name."""
    dtype = as_dtype(value)
    return value if dtype is None else dtype.name


def _symbolic(
    name: str,
    parameters: tuple[Parameter, ...],
    specialization: Specialization,
    location: SourceLocation,
) -> _Bound:
    inputs: list[Tensor] = []
    scalars: list[Scalar] = []
    dims: dict[str, Dim] = {}
    taken = {size.name for p in parameters for form in p.shape for size in variables_of(form)}
    for parameter in parameters:
        match parameter.kind:
            case "tensor":
                if not parameter.is_optional or specialization.get(parameter.name) is not None:
                    dtype = cast("DType", parameter.dtype)
                    inputs.append(Tensor(parameter.name, parameter.shape, dtype))
            case "generic":
                described = specialization[parameter.name]
                if described is not None:
                    inputs.append(_generic_tensor(parameter.name, described, taken))
            case "scalar":
                scalars.append(Scalar(parameter.name, cast("DType", parameter.dtype)))
            case "dim":
                dims[parameter.name] = Dim(parameter.name)
            case "attribute":
                pass
    extents = [extent for tensor in inputs for extent in tensor.shape]
    sizes: dict[Var, None] = {}
    for extent in extents:
        sizes.update(dict.fromkeys(sorted(variables_of(extent), key=lambda v: v.serial)))
    symbolic = [_variable(dim) for dim in dims.values()]
    sizes.update(dict.fromkeys(symbolic))
    return _Bound(tuple(inputs), tuple(scalars), tuple(sizes), tuple(symbolic), dims)


def _variable(dim: Dim) -> Var:
    atom = dim.affine.terms[0][0]
    assert isinstance(atom, Var)
    return atom


def _generic_tensor(name: str, described: tuple[int, DType], taken: set[str]) -> Tensor:
    rank, dtype = described
    shape: list[Affine] = []
    for axis in range(rank):
        size = f"{name}{axis}"
        while size in taken:
            size += "_"
        taken.add(size)
        shape.append(Dim(size).affine)
    return Tensor(name, tuple(shape), dtype)


def _check_names(
    name: str, sizes: tuple[Var, ...], attributes: Mapping[str, Any], location: SourceLocation
) -> None:
    seen: set[str] = set()
    for size in sizes:
        if size.name in seen:
            raise definition_error(
                f"{name}: two different dims are called {size.name}; make each with one tl.dims "
                "call and use that object everywhere",
                location,
            )
        if size.name in attributes:
            raise definition_error(
                f"{name}: {size.name} is a dim and an attribute; rename one of them", location
            )
        seen.add(size.name)


def _check_bound(name: str, bound: _Bound, location: SourceLocation) -> None:
    known = set(bound.dims)
    entries = [(tensor, extent) for tensor in bound.inputs for extent in tensor.shape]
    progress = True
    while progress:
        found = {solvable_for(extent, known) for _, extent in entries} - {None}
        known |= {size for size in found if size is not None}
        progress = bool(found)
    for tensor, extent in entries:
        for size in sorted(variables_of(extent) - known, key=lambda v: v.serial):
            raise definition_error(
                f"{name}: the size {size} cannot be found from the extent {extent} of {tensor}; "
                f"some shape must have {size} alone, or as a * {size} + b with no other unknown",
                location,
            )


def _call(
    function: Callable[..., Any],
    parameters: tuple[Parameter, ...],
    bound: _Bound,
    attributes: Mapping[str, Any],
    trace: Trace,
) -> object:
    tensors = {tensor.name: TensorHandle(tensor, trace) for tensor in bound.inputs}
    scalars = {scalar.name: _scalar_value(scalar) for scalar in bound.scalars}
    positional: list[Any] = []
    keywords: dict[str, Any] = {}
    for parameter in parameters:
        name = parameter.name
        value = (
            tensors.get(name)
            if parameter.kind in ("tensor", "generic")
            else (scalars | dict(bound.dim_objects) | dict(attributes))[name]
        )
        if parameter.keyword_only:
            keywords[name] = value
        else:
            positional.append(value)
    return function(*positional, **keywords)


def _scalar_value(scalar: Scalar) -> Value:
    return Value(convert(ScalarRef(scalar), evaluation_dtype(scalar.dtype)), scalar.dtype)
