"""A graph evaluated with NumPy, node by node, as the definitions say: the oracle of the tests.

Input:  a ``GraphProgram`` and arrays     Output: what the compiled graph must return
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tensorlang.graph.program import GraphProgram
from tensorlang.lang.binding import bind_sizes
from tensorlang.lang.reference import evaluate_definition
from tensorlang.runtime.signature import Signature


def evaluate_graph(
    program: GraphProgram, args: tuple[Any, ...], keywords: Mapping[str, Any]
) -> Any:
    """Return the outputs of a graph for the arguments of a call.

    Raises TypeError and ValueError as a call of the compiled graph does.
    """
    signature = program.signature
    arguments = Signature(signature).bind(args, keywords)
    values: dict[Any, Any] = {c.tensor: c.array for c in program.constants}
    values.update(zip(program.inputs, arguments.arrays, strict=True))
    shapes = {tensor: values[tensor].shape for tensor in program.inputs}
    sizes = bind_sizes(signature, shapes, {})
    for node in program.nodes:
        inputs = {tensor: values[tensor] for tensor in node.inputs}
        results = evaluate_definition(node.definition, inputs, {}, sizes)
        values.update(zip(node.outputs, results, strict=True))
    outputs = tuple([values[tensor] for tensor in program.outputs])
    return outputs[0] if len(outputs) == 1 else outputs
