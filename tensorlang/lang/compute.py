"""``@tl.compute``: an operator, its specializations, and calling it.

Input:  a function whose body describes tensors by comprehensions
Output: an ``Operator``: called with arrays it compiles and runs (through one registered hook),
        called inside another operator it is inlined, ``reference`` evaluates it with NumPy
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tensorlang.dtypes import to_numpy
from tensorlang.ir.definition import Definition
from tensorlang.ir.printer import format_definition
from tensorlang.ir.specialize import fix_sizes
from tensorlang.lang.arguments import (
    arguments_by_name,
    as_numpy,
    check_attribute,
    check_scalar,
    check_size,
    describe_array,
    sizes_in_annotations,
    typed_key,
)
from tensorlang.lang.binding import bind_sizes
from tensorlang.lang.expression import Expression
from tensorlang.lang.mistakes import definition_error
from tensorlang.lang.parameters import (
    MISSING,
    Parameter,
    read_parameters,
)
from tensorlang.lang.pickling import find_by_name, restore
from tensorlang.lang.trace import active
from tensorlang.lang.tracing import trace_function
from tensorlang.source import SourceLocation
from tensorlang.vectorcall import callable_type


@dataclass(frozen=True, slots=True)
class BoundCall:
    """A call: its definition, and the arguments in the order in which the definition has them.

    ``tensors`` are the caller's own objects, with the right rank and dtype; ``out`` is what
    ``out=`` was given. Sizes are not bound yet (see ``binding.bind_sizes``).
    """

    definition: Definition
    tensors: tuple[Any, ...]
    scalars: tuple[bool | int | float, ...]
    dims: Mapping[str, int] = field(default_factory=dict[str, int])
    out: Any = None


CallHook = Callable[["Operator", tuple[Any, ...], dict[str, Any]], Any]
_call_hook: CallHook | None = None


def set_call_hook(hook: CallHook) -> None:
    """Register what ``operator(*args, **kwargs)`` does with arrays: compile and run."""
    global _call_hook
    _call_hook = hook


def _hook() -> CallHook:
    if _call_hook is None:
        from importlib import import_module

        import_module("tensorlang.driver")
    if _call_hook is None:
        raise RuntimeError("no driver is registered to compile operators; use operator.reference")
    return _call_hook


class Operator:
    """A function on tensors, defined by comprehensions; made by ``@tl.compute``.

    Attributes
    ----------
    name
        The function's name.
    parameters
        What each parameter is: tensor, generic tensor, scalar, dim or attribute.

    """

    def __init__(
        self,
        function: Callable[..., Any],
        parameters: tuple[Parameter, ...],
        location: SourceLocation,
    ) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self.name = function.__name__
        self.parameters = parameters
        self.location = location
        self._lock = threading.RLock()
        self._definitions: dict[Any, Definition] = {}
        self._fixed: dict[Any, Definition] = {}

    def __new__(cls, *_: Any, **__: Any) -> Operator:
        """Return an instance with room for a C function, which repeated calls run."""
        return object.__new__(callable_type(cls))

    # --- calling -------------------------------------------------------------------------

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the operator on arrays, or inline it into the operator that is being traced."""
        if active() is not None:
            from tensorlang.lang.inline import inline

            return inline(self, args, kwargs)
        for argument in (*args, *kwargs.values()):
            handler = getattr(argument, "__tensorlang_call__", None)
            if handler is not None:
                return handler(self, args, kwargs)
            if isinstance(argument, Expression):
                raise definition_error(
                    f"{self.name} is called with the symbolic {argument} outside of @tl.compute"
                )
        return _hook()(self, args, kwargs)

    def reference(self, *args: Any, **kwargs: Any) -> Any:
        """Return the operator's value as its definition says, evaluated with NumPy.

        Slow and direct: every test compares compiled code with it.

        Parameters
        ----------
        *args, **kwargs
            As for a call; arrays of any kind that NumPy can read. ``out=`` is not accepted.

        Returns
        -------
        A NumPy array, or a tuple of them for several outputs.

        Raises
        ------
        TypeError, ValueError, IndexError
            As a call does: for kinds and dtypes, sizes and their conditions, and indices taken
            from data.

        """
        from tensorlang.lang.reference import evaluate_definition

        call = self.bind_arguments(args, kwargs)
        if call.out is not None:
            raise TypeError(f"{self.name}.reference has no out=")
        definition = call.definition
        arrays = {
            tensor: as_numpy(array).astype(to_numpy(tensor.dtype), copy=False)
            for tensor, array in zip(definition.inputs, call.tensors, strict=True)
        }
        shapes = {tensor: array.shape for tensor, array in arrays.items()}
        sizes = bind_sizes(definition, shapes, call.dims)
        scalars = dict(zip(definition.scalars, call.scalars, strict=True))
        outputs = evaluate_definition(definition, arrays, scalars, sizes)
        return outputs[0] if len(outputs) == 1 else outputs

    def bind_arguments(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> BoundCall:
        """Return the definition that fits the arguments of a call, and the arguments in order.

        Raises TypeError for missing and unknown arguments, values that are no arrays, and dtypes
        that are not the declared ones; ValueError for a wrong number of axes.
        """
        keywords = dict(kwargs)
        out = keywords.pop("out", None) if "out" not in self._names() else None
        arguments = arguments_by_name(self.name, self.parameters, args, keywords)
        specialization = {p.name: self._specialize(p, arguments[p.name]) for p in self.parameters}
        definition = self._definition(specialization)
        tensors: list[Any] = []
        scalars: list[bool | int | float] = []
        dims: dict[str, int] = {}
        for parameter in self.parameters:
            value = arguments[parameter.name]
            match parameter.kind:
                case "tensor" | "generic":
                    if value is not None:
                        tensors.append(value)
                case "scalar":
                    assert parameter.dtype is not None
                    name, dtype = parameter.name, parameter.dtype
                    scalars.append(check_scalar(self.name, name, dtype, value))
                case "dim":
                    dims[parameter.name] = check_size(self.name, parameter.name, value)
                case "attribute":
                    pass
        return BoundCall(definition, tuple(tensors), tuple(scalars), dims, out)

    def _names(self) -> set[str]:
        return {parameter.name for parameter in self.parameters}

    def _specialize(self, parameter: Parameter, value: Any) -> Any:
        """Return what a definition depends on in an argument."""
        match parameter.kind:
            case "attribute":
                return check_attribute(self.name, parameter.name, value)
            case "tensor" | "generic":
                if value is None and parameter.is_optional:
                    return None
                try:
                    described = describe_array(value)
                except TypeError as error:
                    raise TypeError(f"{self.name}: {parameter.name}: {error}") from None
                if described is None:
                    raise TypeError(
                        f"{self.name}: {parameter.name} must be an array, not "
                        f"{type(value).__name__}; convert it, for example with np.asarray"
                    )
                if parameter.kind == "generic":
                    return described
                self._check_declared(parameter, value, described)
                return True
            case _:
                return None

    def _check_declared(self, parameter: Parameter, value: Any, described: tuple[int, Any]) -> None:
        rank, dtype = described
        if dtype is not parameter.dtype:
            assert parameter.dtype is not None
            wanted = to_numpy(parameter.dtype).name
            is_torch = type(value).__module__.partition(".")[0] == "torch"  # has no astype
            convert = f"to(torch.{wanted})" if is_torch else f"astype(np.{wanted})"
            raise TypeError(
                f"{self.name}: {parameter.name} is declared {parameter.dtype.name}, but an array "
                f"of {dtype.name} is given; convert it: {parameter.name}.{convert}"
            )
        if rank != len(parameter.shape):
            shape = ", ".join(map(str, parameter.shape))
            axes = "axis" if rank == 1 else "axes"
            raise ValueError(
                f"{self.name}: {parameter.name} has {rank} {axes}, but [{shape}] is declared"
            )

    # --- definitions ---------------------------------------------------------------------

    def definition(self, *args: Any, **kwargs: Any) -> Definition:
        """Return the traced definition, for given attributes, sizes, and generic parameters.

        Parameters
        ----------
        *args
            For parameters without annotation: an array, or an annotation such as
            ``tl.f32[M, N]`` (of which rank, dtype and integer sizes count).
        **kwargs
            Attributes and sizes by name; parameters as above.

        Raises
        ------
        TypeError
            For a generic parameter that is not described, and sizes that are no integers.
        ValueError
            For names of no size or attribute, and sizes that break a condition of the definition.

        """
        positional = [p for p in self.parameters if not p.keyword_only]
        if len(args) > len(positional):
            raise TypeError(f"{self.name} has {len(positional)} parameters, not {len(args)}")
        given = {p.name: value for p, value in zip(positional, args, strict=False)}
        sizes: dict[str, Any] = {}
        for name, value in kwargs.items():
            parameter = next((p for p in self.parameters if p.name == name), None)
            if parameter is None or parameter.kind == "dim":
                sizes[name] = value
            else:
                given[name] = value
        specialization = {p.name: self._described(p, given.get(p.name)) for p in self.parameters}
        for parameter in self.parameters:
            if parameter.kind == "attribute" and parameter.name in given:
                value = check_attribute(self.name, parameter.name, given[parameter.name])
                specialization[parameter.name] = value
        definition = self._definition(specialization)
        for name in {size.name for size in definition.sizes} & sizes.keys():
            sizes[name] = check_size(self.name, name, sizes[name])
        sizes.update(sizes_in_annotations(definition, given))
        return self._with_sizes(definition, sizes) if sizes else definition

    def _described(self, parameter: Parameter, value: Any) -> Any:
        if parameter.kind == "attribute":
            if parameter.default is MISSING and value is None:
                raise TypeError(f"{self.name}: the attribute {parameter.name} must be given")
            return None if parameter.default is MISSING else parameter.default
        if parameter.kind == "generic" and value is None and not parameter.is_optional:
            raise TypeError(
                f"{self.name} is generic: describe {parameter.name} by an array or an annotation, "
                f"as in tl.schedule({self.name}, tl.f32[M, N])"
            )
        if parameter.kind == "tensor" and value is None:
            return None if parameter.is_optional else True
        return self._specialize(parameter, value)

    def _definition(self, specialization: Mapping[str, Any]) -> Definition:
        key = tuple([typed_key(value) for value in specialization.values()])
        known = self._definitions.get(key)
        if known is None:
            with self._lock:
                known = self._definitions.get(key)
                if known is None:
                    known = trace_function(
                        self.function, self.parameters, specialization, self.location
                    )
                    self._definitions[key] = known
        return known

    def _with_sizes(self, definition: Definition, sizes: Mapping[str, int]) -> Definition:
        key = (definition, tuple(sorted(sizes.items())))
        with self._lock:
            if key not in self._fixed:
                self._fixed[key] = fix_sizes(definition, sizes)
            return self._fixed[key]

    def add_definitions(self, definitions: Mapping[Any, Definition]) -> None:
        """Take over definitions that were traced elsewhere."""
        with self._lock:
            self._definitions.update(definitions)

    @property
    def is_generic(self) -> bool:
        """Whether some parameter has no annotation, so that ranks and dtypes come from arrays."""
        return any(p.kind == "generic" and not p.is_optional for p in self.parameters)

    def __reduce__(self) -> str | tuple[Any, ...]:
        """Pickle by name where that finds this operator again, else by the traced definitions."""
        if find_by_name(self) is self:
            return self.function.__qualname__
        if not self.is_generic and all(p.default is not MISSING for p in self._attributes()):
            self.definition()
        return restore, (Operator, self.name, self.parameters, self.location, self._definitions)

    def _attributes(self) -> list[Parameter]:
        return [parameter for parameter in self.parameters if parameter.kind == "attribute"]

    def __str__(self) -> str:
        if self.is_generic or any(p.default is MISSING for p in self._attributes()):
            tensors = [
                "tl.f32[M, N]" for p in self.parameters if p.kind == "generic" and not p.is_optional
            ]
            given = [f"{p.name}=..." for p in self._attributes() if p.default is MISSING]
            return (
                f"{self!r}: traced for each rank, dtype and attribute; "
                f"print({self.name}.definition({', '.join(tensors + given)}))"
            )
        return format_definition(self.definition())

    def _repr_html_(self) -> str:
        from tensorlang.ir.html import program_html

        return program_html(str(self))

    def __repr__(self) -> str:
        return f"<operator {self.name}({', '.join(p.name for p in self.parameters)})>"


def _definition_line(function: Callable[..., Any]) -> SourceLocation:
    """Return the line of ``def``, which follows those of the decorators."""
    code = function.__code__
    first = SourceLocation(code.co_filename, code.co_firstlineno, function.__name__)
    for line in range(first.line, first.line + 20):
        place = SourceLocation(first.file, line, first.function)
        if place.text.startswith(("def ", "async def ")):
            return place
    return first


def compute(function: Callable[..., Any]) -> Operator:
    """Turn a function whose body describes tensors into an operator.

    Parameters
    ----------
    function
        Parameters annotated ``tl.f32[M, K]`` are tensors, ``tl.f32`` scalars; ones without
        annotation are tensors of any rank and dtype, traced once per combination; keyword-only
        ones are attributes, or sizes (``n: tl.Dim``). It returns a tensor or a tuple of tensors.

    Returns
    -------
    An ``Operator``.

    Raises
    ------
    DefinitionError
        For annotations that mean nothing; mistakes in the body are reported when it is traced,
        at the first use of ``definition``, ``reference`` or a call.

    Examples
    --------
    >>> import tensorlang as tl
    >>> M, N, K = tl.dims("M N K")
    >>> @tl.compute
    ... def matmul(A: tl.f32[M, K], B: tl.f32[K, N]):
    ...     return tl.tensor(tl.sum(A[i, k] * B[k, j] for k in K) for i in M for j in N)
    >>> print(matmul)
    def matmul(A: f32[M, K], B: f32[K, N]) -> f32[M, N]:
        matmul[i < M, j < N] = sum(A[i, k] * B[k, j] for k < K)

    """
    if not callable(function) or not hasattr(function, "__code__"):
        raise definition_error("@tl.compute decorates a function and takes no arguments")
    location = _definition_line(function)
    frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    return Operator(function, read_parameters(function, frame, location), location)
