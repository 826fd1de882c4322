"""The graph IR: nodes whose definitions share their tensors.

Input (what tracing a graph makes of)::

    h = tl.nn.relu(x @ w)

Output::

    GraphProgram(inputs=(x, w), nodes=(
        Node("matmul", definition with inputs (x, w) and output matmul),
        Node("relu", definition with input matmul and output relu)), outputs=(relu,))

A node is an operator's definition in which the operator's parameters have become the graph's
tensors and its sizes the graph's. To put two nodes into one is therefore to put their stages one
after the other, and nothing is renamed. Tensors, nodes and constants are compared by identity.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tensorlang.ir.affine import Affine, Var, variables_of
from tensorlang.ir.definition import Attribute, Condition, Definition, Tensor
from tensorlang.ir.expr import expr_variables
from tensorlang.source import UNKNOWN, SourceLocation


@dataclass(frozen=True, slots=True, eq=False)
class Constant:
    """A tensor whose elements are part of the graph; ``array`` is read-only."""

    tensor: Tensor
    array: np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """One step of a graph.

    ``arguments`` and ``attributes`` say how the operator was called, for people; what counts is
    the definition.
    """

    name: str
    definition: Definition
    arguments: tuple[Tensor, ...]
    attributes: tuple[tuple[str, Attribute], ...] = ()
    location: SourceLocation = field(default=UNKNOWN)

    @property
    def operator(self) -> str:
        """The name of the operator, or the names of those that were fused."""
        return self.definition.name

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """The tensors of the graph that the node reads, each once."""
        return self.definition.inputs

    @property
    def outputs(self) -> tuple[Tensor, ...]:
        """The tensors of the graph that the node makes."""
        return self.definition.outputs


@dataclass(frozen=True, slots=True, eq=False)
class GraphProgram:
    """A graph: nodes in an order in which they can run.

    ``outputs`` are distinct tensors of nodes, never inputs or constants: the builder copies.
    ``target`` and ``rtol`` are what passes may count on: where the graph will run, and how far its
    results may be off for the sake of a faster algorithm.
    """

    name: str
    inputs: tuple[Tensor, ...] = ()
    constants: tuple[Constant, ...] = ()
    nodes: tuple[Node, ...] = ()
    outputs: tuple[Tensor, ...] = ()
    documentation: str = ""
    target: str = "cpu"
    rtol: float = 0.0

    @property
    def sizes(self) -> tuple[Var, ...]:
        """The free sizes, in the order in which the inputs mention them."""
        return sizes_of(self.inputs)

    @property
    def signature(self) -> Definition:
        """Inputs, outputs, sizes and every condition on them, as a definition without stages."""
        return Definition(
            name=self.name,
            sizes=self.sizes,
            inputs=self.inputs,
            scalars=(),
            stages=(),
            outputs=self.outputs,
            conditions=self.conditions,
            parameters=tuple([tensor.name for tensor in self.inputs]),
            documentation=self.documentation,
        )

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """The conditions of all nodes on the sizes, each once."""
        found: dict[tuple[Affine, bool], Condition] = {}
        for node in self.nodes:
            for condition in node.definition.conditions:
                found.setdefault((condition.form, condition.equality), condition)
        return tuple(found.values())

    def producer_of(self, tensor: Tensor) -> Node | None:
        """Return the node that makes ``tensor``; None for inputs and constants."""
        return next((node for node in self.nodes if tensor in node.outputs), None)

    def readers_of(self, tensor: Tensor) -> tuple[Node, ...]:
        """Return the nodes that read ``tensor``."""
        return tuple([node for node in self.nodes if tensor in node.inputs])

    def __str__(self) -> str:
        from tensorlang.graph.text import format_graph

        return format_graph(self)


def sizes_of(tensors: tuple[Tensor, ...]) -> tuple[Var, ...]:
    """Return the sizes in the shapes of tensors, in the order in which they stand there."""
    found: dict[Var, None] = {}
    for tensor in tensors:
        for extent in tensor.shape:
            found.update(dict.fromkeys(sorted(variables_of(extent), key=lambda var: var.serial)))
    return tuple(found)


def complete(definition: Definition) -> Definition:
    """Return a node's definition with its lists of inputs and sizes brought up to date.

    Sizes that no input has as the extent of an axis are ``dims``: the executor, which knows all
    sizes of the graph, passes them.
    """
    from dataclasses import replace

    from tensorlang.ir.expr import loads_of

    made = {tensor for stage in definition.stages for tensor in stage.tensors}
    read = [load.tensor for stage in definition.stages for load in loads_of(*stage.values)]
    wanted = dict.fromkeys([*definition.inputs, *read])
    inputs = tuple([t for t in wanted if t not in made and t in read])
    exact = {_lone_size(extent) for tensor in inputs for extent in tensor.shape}
    used = dict.fromkeys(sizes_of(inputs))
    axes: set[Var] = set()
    for stage in definition.stages:
        axes.update(stage.variables)
        forms = [axis.extent for axis in stage.all_axes] + list(stage.predicate)
        for form in forms:
            used.update(dict.fromkeys(sorted(variables_of(form), key=lambda var: var.serial)))
        states = () if stage.combiner is None else stage.combiner.result + stage.combiner.identity
        found = expr_variables(*stage.values, *states)
        used.update(dict.fromkeys(sorted(found, key=lambda var: var.serial)))
    for condition in definition.conditions:
        found = variables_of(condition.form)
        used.update(dict.fromkeys(sorted(found, key=lambda var: var.serial)))
    sizes = tuple([size for size in used if size not in axes])
    dims = tuple([size for size in sizes if size not in exact])
    names = tuple([tensor.name for tensor in inputs] + [size.name for size in dims])
    return replace(definition, inputs=inputs, sizes=sizes, dims=dims, parameters=names)


def _lone_size(extent: Affine) -> Var | None:
    if extent.constant or len(extent.terms) != 1:
        return None
    atom, coefficient = extent.terms[0]
    return atom if isinstance(atom, Var) and coefficient == 1 else None
