"""``@tl.graph``: a Python function over graph tensors, traced into graphs.

Input:  ``def mlp(x: tl.f32[B, 784], w): return tl.nn.softmax(x @ w)``
Output: a ``GraphFunction``; annotated throughout it is one graph, else one per ranks and dtypes
        of the parameters without annotation, all sizes symbolic
"""

from __future__ import annotations

import functools
import inspect
import pickle
import sys
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, cast

import tensorlang as tl
from tensorlang.dtypes import TensorAnnotation
from tensorlang.graph.builder import Graph
from tensorlang.graph.tensor import GraphTensor
from tensorlang.lang.arguments import (
    arguments_by_name,
    check_attribute,
    describe_array,
    typed_key,
)
from tensorlang.lang.dims import Dim
from tensorlang.lang.mistakes import definition_error
from tensorlang.lang.parameters import Parameter, read_parameters
from tensorlang.lang.values import Index
from tensorlang.runtime.dispatcher import FastCalls
from tensorlang.source import SourceLocation
from tensorlang.vectorcall import callable_type

if TYPE_CHECKING:
    from tensorlang.driver.options import CompileOptions
    from tensorlang.graph.executor import CompiledGraph


class GraphFunction:
    """A function that builds graphs; called with arrays it compiles and runs the one that fits.

    Called with tensors of another graph, it adds its nodes there.
    """

    def __new__(cls, *_: Any, **__: Any) -> GraphFunction:
        """Return an instance with room for a C function, which repeated calls run."""
        return object.__new__(callable_type(cls))

    def __init__(
        self,
        function: Callable[..., Any],
        parameters: tuple[Parameter, ...],
        location: SourceLocation,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self.name = function.__name__
        self.parameters = parameters
        self.location = location
        self._options = dict(options or {})
        self._lock = threading.RLock()
        self._graphs: dict[Any, Graph] = {}
        self._fast = FastCalls(GraphFunction.__call__)
        self._compiled: dict[Any, CompiledGraph] = {}

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """Run on arrays, or add the nodes to the graph whose tensors are given."""
        if any(isinstance(value, GraphTensor) for value in (*args, *keywords.values())):
            return self.function(*args, **keywords)
        named = dict(keywords)
        out = named.pop("out", None)
        arguments = arguments_by_name(self.name, self.parameters, args, named)
        key = self._key(arguments)
        compiled = self._compiled.get(key)
        if compiled is None:
            with self._lock:
                compiled = self._compiled.get(key)
                if compiled is None:
                    compiled = tl.compile(self._graph(key, arguments), **self._options)
                    self._compiled[key] = compiled
        arrays = tuple(self._arrays(arguments))
        return compiled.call_for(self, self._fast, args, keywords, arrays, {"out": out})

    def graph(self, *args: Any, **keywords: Any) -> Graph:
        """Return the graph for certain attributes, ranks and dtypes.

        A parameter without annotation is described by an array, or by an annotation such as
        ``tl.f32[B, 784]``, whose sizes the graph then has.
        """
        given = dict(keywords)
        names = [p.name for p in self.parameters if not p.keyword_only]
        if len(args) > len(names):
            raise TypeError(f"{self.name} has {len(names)} parameters, not {len(args)}")
        given |= dict(zip(names, args, strict=False))
        for parameter in self.parameters:
            if parameter.kind == "tensor":
                given.setdefault(parameter.name, _annotation(parameter))
            elif parameter.name not in given and self._must_be_described(parameter):
                raise TypeError(
                    f"{self.name}: describe {parameter.name} by an array or an annotation, as "
                    f"in {self.name}.graph({parameter.name}=tl.f32[M, N])"
                )
        arguments = arguments_by_name(self.name, self.parameters, (), given)
        return self._graph(self._key(arguments), arguments)

    def reference(self, *args: Any, **keywords: Any) -> Any:
        """Return the graph's value, each node evaluated with NumPy as its definition says."""
        arguments = arguments_by_name(self.name, self.parameters, args, keywords)
        return self._graph(self._key(arguments), arguments).reference(*self._arrays(arguments))

    @property
    def is_generic(self) -> bool:
        """Whether the graph depends on ranks and dtypes of the arguments."""
        return any(self._must_be_described(parameter) for parameter in self.parameters)

    @staticmethod
    def _must_be_described(parameter: Parameter) -> bool:
        return parameter.kind == "generic" and not parameter.is_optional

    def __tensorlang_compile__(self, options: CompileOptions, fixed: Mapping[str, Any]) -> Any:
        """Compile the graph; one that depends on its arguments is compiled when called."""
        from dataclasses import fields

        if not self.is_generic:
            return self.graph(**fixed).__tensorlang_compile__(options, {})
        chosen = {field.name: getattr(options, field.name) for field in fields(options)}
        function = functools.partial(self.function, **fixed) if fixed else self.function
        functools.update_wrapper(function, self.function) if fixed else None
        remaining = tuple([p for p in self.parameters if p.name not in fixed])
        return GraphFunction(function, remaining, self.location, chosen)

    # --- tracing -------------------------------------------------------------------------

    def _key(self, arguments: Mapping[str, Any]) -> tuple[Any, ...]:
        parts: list[Any] = []
        for parameter in self.parameters:
            value = arguments[parameter.name]
            if parameter.kind == "attribute":
                parts.append(typed_key(check_attribute(self.name, parameter.name, value)))
            elif value is None and parameter.is_optional:
                parts.append(None)
            elif parameter.kind == "tensor":
                parts.append(True)
            else:
                described = describe_array(value)
                if described is None:
                    raise TypeError(
                        f"{self.name}: {parameter.name} must be an array, not "
                        f"{type(value).__name__}"
                    )
                parts.append(value if isinstance(value, TensorAnnotation) else described)
        return tuple(parts)

    def _arrays(self, arguments: Mapping[str, Any]) -> list[Any]:
        tensors = [p.name for p in self.parameters if p.kind in ("tensor", "generic")]
        return [arguments[name] for name in tensors if arguments[name] is not None]

    def _graph(self, key: tuple[Any, ...], arguments: Mapping[str, Any]) -> Graph:
        with self._lock:
            known = self._graphs.get(key)
            if known is None:
                known = self._graphs[key] = self._trace(arguments)
            return known

    def _trace(self, arguments: Mapping[str, Any]) -> Graph:
        graph = Graph(self.name, inspect.getdoc(self.function) or "")
        values: dict[str, Any] = {}
        for parameter in self.parameters:
            value = arguments[parameter.name]
            if parameter.kind == "tensor":
                values[parameter.name] = graph.input(parameter.name, _annotation(parameter))
            elif parameter.kind == "generic" and value is not None:
                annotation = _described(parameter.name, value)
                values[parameter.name] = graph.input(parameter.name, annotation)
            else:
                values[parameter.name] = value
        positional = [values[p.name] for p in self.parameters if not p.keyword_only]
        keywords = {p.name: values[p.name] for p in self.parameters if p.keyword_only}
        returned = self.function(*positional, **keywords)
        outputs = cast("Any", returned) if isinstance(returned, tuple | list) else (returned,)
        if returned is None or not outputs:
            raise definition_error(
                f"{self.name} returns nothing; return a tensor, or a tuple of tensors",
                self.location,
            )
        for output in outputs:
            if not isinstance(output, GraphTensor) or output.graph is not graph:
                raise definition_error(
                    f"{self.name} returns {type(output).__name__}; return tensors of the graph",
                    self.location,
                )
        graph.output(*outputs)
        return graph

    def __reduce__(self) -> str:
        """Pickle by name, as Python's functions are."""
        name = self.function.__qualname__
        found: Any = sys.modules.get(self.function.__module__)
        for part in name.split("."):
            found = getattr(found, part, None)
        if found is not self:
            raise pickle.PicklingError(
                f"the graph function {self.name} cannot be pickled: it is not found as "
                f"{self.function.__module__}.{name}.\nPut it at the top level of a module, or "
                f"pickle tl.compile({self.name}), which holds its graph"
            )
        return name

    def __str__(self) -> str:
        if self.is_generic:
            return f"{self!r}: traced for each rank and dtype; print(g.graph(tl.f32[M, N]))"
        return str(self.graph())

    def _repr_html_(self) -> str:
        from tensorlang.ir.html import program_html

        return program_html(str(self))

    def __repr__(self) -> str:
        return f"<graph function {self.name}({', '.join(p.name for p in self.parameters)})>"


def _annotation(parameter: Parameter) -> TensorAnnotation:
    assert parameter.dtype is not None
    return TensorAnnotation(parameter.dtype, tuple([Index(form) for form in parameter.shape]))


def _described(name: str, value: Any) -> TensorAnnotation:
    """Return the annotation of a parameter that has none: fresh sizes ``x0, x1``."""
    if isinstance(value, TensorAnnotation):
        return value
    described = describe_array(value)
    assert described is not None
    rank, dtype = described
    return TensorAnnotation(dtype, tuple([Dim(f"{name}{axis}") for axis in range(rank)]))


def graph(function: Callable[..., Any]) -> GraphFunction:
    """Turn a function over tensors into a graph of operators.

    Parameters
    ----------
    function
        Parameters annotated ``tl.f32[B, 784]`` are inputs; ones without annotation are inputs of
        any rank and dtype, for each combination of which the function is run anew; keyword-only
        ones are attributes. It calls operators and returns a tensor or a tuple of tensors.

    Raises
    ------
    DefinitionError
        For annotations that mean nothing; mistakes in the body, at the first use.

    Examples
    --------
    >>> import numpy as np, tensorlang as tl
    >>> B, N = tl.dims("B N")
    >>> @tl.graph
    ... def scores(x: tl.f32[B, N], w: tl.f32[N, 10]):
    ...     return tl.nn.softmax(x @ w)
    >>> print(scores)
    def scores(x: f32[B, N], w: f32[N, 10]) -> f32[B, 10]:
        matmul = matmul(x, w)      # f32[B, 10]
        softmax = softmax(matmul)  # f32[B, 10]
        return softmax
    >>> scores(np.zeros((2, 3), np.float32), np.zeros((3, 10), np.float32))[0, :2]
    array([0.1, 0.1], dtype=float32)

    """
    if not callable(function) or not hasattr(function, "__code__"):
        raise definition_error("@tl.graph decorates a function and takes no arguments")
    frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    code = function.__code__
    location = SourceLocation(code.co_filename, code.co_firstlineno, function.__name__)
    parameters = read_parameters(function, frame, location)
    for parameter in parameters:
        if parameter.kind in ("scalar", "dim"):
            raise definition_error(
                f"{function.__name__}: {parameter.name}: a graph takes tensors and attributes; "
                "give a number as an attribute (keyword-only) or as a tensor without axes, "
                "tl.f32[()]",
                location,
            )
    return GraphFunction(function, parameters, location)
