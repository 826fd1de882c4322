"""``tl.Graph``: a graph while it is built, a thin mutable face over an immutable program.

Input:  ``g = tl.Graph(); x = g.input("x", tl.f32[B, 784]); g.output(tl.nn.softmax(x))``
Output: ``g.program``, a ``GraphProgram``, to which each call has added a node
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

import tensorlang as tl
from tensorlang.dtypes import TensorAnnotation, evaluation_dtype, from_numpy, to_numpy
from tensorlang.graph.instantiate import instantiate
from tensorlang.graph.program import Constant, GraphProgram
from tensorlang.graph.tensor import GraphTensor
from tensorlang.ir.affine import Affine, affine, variables_of
from tensorlang.ir.definition import Attribute, Definition, Scalar, Tensor
from tensorlang.ir.expr import Expr
from tensorlang.lang.application import as_operand, index_form, is_index_like
from tensorlang.lang.arguments import (
    arguments_by_name,
    as_numpy,
    check_attribute,
    check_scalar,
    describe_array,
)
from tensorlang.lang.compute import Operator
from tensorlang.lang.conversion import adapt
from tensorlang.lang.mistakes import definition_error
from tensorlang.lang.parameters import Parameter
from tensorlang.source import user_location

if TYPE_CHECKING:
    from tensorlang.driver.options import CompileOptions
    from tensorlang.graph.executor import CompiledGraph


class Graph:
    """A graph of operators.

    ``input`` declares what a call brings, ``constant`` what it does not, operators called on the
    tensors that these return add nodes, and ``output`` says what a call returns.

    Examples
    --------
    >>> import numpy as np, tensorlang as tl
    >>> N = tl.dim("N")
    >>> g = tl.Graph("double_relu")
    >>> x = g.input("x", tl.f32[N])
    >>> g.output(tl.nn.relu(x) * 2)
    >>> print(g)
    def double_relu(x: f32[N]) -> f32[N]:
        relu = relu(x)                       # f32[N]
        multiply = multiply(relu, number=2)  # f32[N]
        return multiply
    >>> g(np.array([-1, 3], np.float32))
    array([0., 6.], dtype=float32)

    """

    def __init__(self, name: str = "graph", documentation: str = "") -> None:
        self._program = GraphProgram(name, documentation=documentation)
        self._names: set[str] = set()
        self._compiled: CompiledGraph | None = None

    @property
    def program(self) -> GraphProgram:
        """The graph as it stands."""
        return self._program

    @property
    def name(self) -> str:
        """The graph's name."""
        return self._program.name

    # --- building ------------------------------------------------------------------------

    def input(self, name: str, annotation: TensorAnnotation) -> GraphTensor:
        """Declare an input, ``g.input("x", tl.f32[B, 784])``; returns its tensor.

        Raises DefinitionError for a name that is taken and a shape that means nothing.
        """
        if not name.isidentifier():
            raise definition_error(f"an input's name must be a Python identifier, not {name!r}")
        if name in self._names:
            raise definition_error(f"{self.name}: the name {name} is taken")
        if not isinstance(annotation, TensorAnnotation):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise definition_error(
                f"the input {name} needs a dtype and a shape, as in tl.f32[B, 784]; found "
                f"{annotation!r}"
            )
        shape = tuple([_extent(extent, name) for extent in annotation.shape])
        self._check_sizes(shape)
        self._names.add(name)
        tensor = Tensor(name, shape, annotation.dtype)
        self._change(replace(self._program, inputs=(*self._program.inputs, tensor)))
        return GraphTensor(self, tensor)

    def constant(self, value: Any, name: str = "constant") -> GraphTensor:
        """Make an array part of the graph (a copy of it); returns its tensor."""
        array = np.array(as_numpy(value), order="C")
        dtype = from_numpy(array.dtype)
        if dtype is None or not array.dtype.isnative:
            raise definition_error(f"the constant {name} has dtype {array.dtype}; convert it first")
        array.flags.writeable = False
        tensor = Tensor(self._unique(name), tuple([affine(n) for n in array.shape]), dtype)
        constants = (*self._program.constants, Constant(tensor, array))
        self._change(replace(self._program, constants=constants))
        return GraphTensor(self, tensor)

    def output(self, *tensors: Any) -> None:
        """Add to what a call returns: one tensor, or several in order."""
        for value in tensors:
            if not isinstance(value, GraphTensor) or value.graph is not self:
                raise definition_error(
                    f"{self.name}: an output must be a tensor of this graph, not {value!r}"
                )
            made = self._program.producer_of(value.tensor) is not None
            if not made or value.tensor in self._program.outputs:
                value = self.call(copy, (value,), {})
            outputs = (*self._program.outputs, value.tensor)
            self._change(replace(self._program, outputs=outputs))

    def call(self, operator: Operator, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Add a call of ``operator``; returns the tensor of its output, a tuple for several.

        Arrays among the arguments become constants.
        """
        try:
            arguments = arguments_by_name(operator.name, operator.parameters, args, kwargs)
        except TypeError as error:
            raise definition_error(str(error)) from None
        tensors: dict[str, GraphTensor] = {}
        for parameter in operator.parameters:
            value = arguments[parameter.name]
            if parameter.kind in ("tensor", "generic") and not (
                value is None and parameter.is_optional
            ):
                tensors[parameter.name] = self._as_tensor(operator, parameter, value)
        definition = _definition(operator, arguments, tensors)
        node = instantiate(
            definition,
            self._unique(operator.name),
            {name: value.tensor for name, value in tensors.items()},
            _scalars(operator, definition, arguments),
            {size.name: _size(operator, size.name, arguments) for size in definition.dims},
            _shown(operator, arguments),
            user_location(),
        )
        self._names.update([t.name for stage in node.definition.stages for t in stage.tensors])
        self._change(replace(self._program, nodes=(*self._program.nodes, node)))
        results = tuple([GraphTensor(self, tensor) for tensor in node.outputs])
        return results[0] if len(results) == 1 else results

    def _as_tensor(self, operator: Operator, parameter: Parameter, value: Any) -> GraphTensor:
        if not isinstance(value, GraphTensor):
            try:
                described = describe_array(value)
            except TypeError as error:
                raise definition_error(f"{operator.name}: {parameter.name}: {error}") from None
            if described is None:
                raise definition_error(
                    f"{operator.name}: {parameter.name} must be a tensor of the graph or an array, "
                    f"not {type(value).__name__}"
                )
            value = self.constant(value, parameter.name)
        if value.graph is not self:
            raise definition_error(
                f"{operator.name}: {parameter.name} is a tensor of the graph {value.graph.name}, "
                f"not of {self.name}"
            )
        if parameter.kind == "tensor":
            assert parameter.dtype is not None
            if value.ndim != len(parameter.shape) or value.dtype is not parameter.dtype:
                shape = ", ".join(map(str, parameter.shape))
                raise definition_error(
                    f"{operator.name}: {parameter.name} is {parameter.dtype.name}[{shape}], but "
                    f"{value!r} is given"
                )
        return value

    def _check_sizes(self, shape: tuple[Affine, ...]) -> None:
        known = {size.name: size for size in self._program.sizes}
        for extent in shape:
            for size in sorted(variables_of(extent), key=lambda var: var.serial):
                if known.setdefault(size.name, size) is not size:
                    raise definition_error(
                        f"{self.name}: two different dims are called {size}; make each with one "
                        "tl.dims call and use that object everywhere"
                    )

    def _unique(self, wanted: str) -> str:
        name, number = wanted, 0
        while name in self._names:
            number += 1
            name = f"{wanted}_{number}"
        self._names.add(name)
        return name

    def _change(self, program: GraphProgram) -> None:
        self._program = program
        self._compiled = None

    # --- running -------------------------------------------------------------------------

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """Run the graph on arrays, compiling it the first time."""
        if self._compiled is None:
            self._compiled = tl.compile(self)
        return self._compiled(*args, **keywords)

    def reference(self, *args: Any, **keywords: Any) -> Any:
        """Return the graph's value, each node evaluated with NumPy as its definition says."""
        from tensorlang.graph.reference import evaluate_graph

        return evaluate_graph(self._program, args, keywords)

    def __tensorlang_compile__(
        self, options: CompileOptions, fixed: Mapping[str, Any]
    ) -> CompiledGraph:
        """Compile the graph; ``tl.compile`` looks for this method."""
        from tensorlang.graph.compile import compile_graph

        if fixed:
            names = ", ".join(f"{name}=" for name in fixed)
            raise TypeError(f"a graph has its sizes in its inputs; {names} cannot be fixed")
        return compile_graph(self._program, options)

    def summary(self) -> str:
        """Return a table of the nodes: operators, shapes, operations, parameters."""
        from tensorlang.graph.text import summarize

        return summarize(self._program)

    def __str__(self) -> str:
        return str(self._program)

    def _repr_html_(self) -> str:
        from tensorlang.ir.html import program_html

        return program_html(str(self))

    def __repr__(self) -> str:
        program = self._program
        return f"<graph {self.name}: {len(program.inputs)} inputs, {len(program.nodes)} nodes>"


@tl.compute
def copy(x: Any):
    """Return ``x``: an output that is an input, a constant, or an output already."""
    return tl.tensor(x[i] for i in tl.grid(x.shape))


def _extent(extent: Any, name: str) -> Affine:
    if not is_index_like(extent):
        raise definition_error(
            f"{extent!r} in the shape of {name} is not a size; make dims with "
            'M, N = tl.dims("M N"), or write an integer'
        )
    return index_form(extent)


def _definition(
    operator: Operator, arguments: Mapping[str, Any], tensors: Mapping[str, GraphTensor]
) -> Definition:
    described: dict[str, Any] = {}
    for parameter in operator.parameters:
        if parameter.kind in ("tensor", "generic"):
            described[parameter.name] = tensors.get(parameter.name)
        elif parameter.kind == "attribute":
            described[parameter.name] = arguments[parameter.name]
    try:
        return operator.definition(**described)
    except TypeError as error:
        if isinstance(error, tl.DefinitionError):
            raise
        raise definition_error(str(error)) from None


def _scalars(
    operator: Operator, definition: Definition, arguments: Mapping[str, Any]
) -> dict[Scalar, Expr]:
    result: dict[Scalar, Expr] = {}
    for scalar in definition.scalars:
        try:
            value = check_scalar(operator.name, scalar.name, scalar.dtype, arguments[scalar.name])
        except (TypeError, ValueError) as error:
            raise definition_error(str(error)) from None
        rounded = to_numpy(scalar.dtype).type(value).item()
        result[scalar] = adapt(as_operand(rounded), evaluation_dtype(scalar.dtype))
    return result


def _size(operator: Operator, name: str, arguments: Mapping[str, Any]) -> Affine:
    value = arguments[name]
    if not is_index_like(value):
        raise definition_error(
            f"{operator.name}: the size {name} must be an integer or a dim: {value!r}"
        )
    return index_form(value)


def _shown(operator: Operator, arguments: Mapping[str, Any]) -> tuple[tuple[str, Attribute], ...]:
    """Return what was given besides tensors and differs from the default."""
    result: list[tuple[str, Attribute]] = []
    for parameter in operator.parameters:
        value = arguments[parameter.name]
        if parameter.kind == "attribute":
            value = check_attribute(operator.name, parameter.name, value)
        if parameter.kind in ("attribute", "scalar", "dim") and value is not parameter.default:
            same = type(value) is type(parameter.default) and value == parameter.default
            if not same:
                result.append((parameter.name, value))
    return tuple(result)
