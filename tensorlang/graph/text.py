"""Graphs as text: the graph itself as a Python function, and a table of its nodes.

Output of ``print(g)``::

    def mlp(x: f32[B, 784], w: f32[784, 10]) -> f32[B, 10]:
        matmul = matmul(x, w)      # f32[B, 10]
        softmax = softmax(matmul)  # f32[B, 10]
        return softmax
"""

from __future__ import annotations

from tensorlang.graph.program import GraphProgram, Node
from tensorlang.ir.affine import Affine, affine
from tensorlang.ir.expr import Call, iterate
from tensorlang.ir.printer import format_tensor_type


def format_graph(program: GraphProgram) -> str:
    """Return a graph as text that reads like Python."""
    inputs = ", ".join(f"{t}: {format_tensor_type(t)}" for t in program.inputs)
    types = [format_tensor_type(output) for output in program.outputs]
    result = types[0] if len(types) == 1 else f"({', '.join(types)})"
    lines: list[tuple[str, str]] = []
    for constant in program.constants:
        lines.append((f"{constant.tensor} = constant", format_tensor_type(constant.tensor)))
    for node in program.nodes:
        shown = ", ".join(map(format_tensor_type, node.outputs))
        lines.append((f"{', '.join(map(str, node.outputs))} = {format_call(node)}", shown))
    width = max((len(code) for code, _ in lines), default=0)
    body = [f"    {code.ljust(width)}  # {remark}" for code, remark in lines]
    body.append(f"    return {', '.join(map(str, program.outputs))}")
    return "\n".join([f"def {program.name}({inputs}) -> {result}:", *body])


def format_call(node: Node) -> str:
    """Return how a node's operator is called: ``conv2d(x, w, padding=1)``."""
    given = [str(tensor) for tensor in node.arguments]
    given += [f"{name}={value!r}" for name, value in node.attributes]
    return f"{node.operator}({', '.join(given)})"


def summarize(program: GraphProgram) -> str:
    """Return a table with a line per node: what it makes, how many operations, from where.

    An operation is a call of a function (one of ``+``, ``exp``, ...) or one step of a reduction.
    """
    rows = [("node", "operator", "output", "operations", "constants")]
    total = affine(0)
    constants = {constant.tensor: constant.array for constant in program.constants}
    for node in program.nodes:
        count = operations_of(node)
        total = total + count
        held = sum(constants[t].size for t in node.inputs if t in constants)
        shapes = ", ".join(map(format_tensor_type, node.outputs))
        rows.append((node.name, node.operator, shapes, str(count), str(held)))
    held = sum(array.size for array in constants.values())
    rows.append(("total", f"{len(program.nodes)} nodes", "", str(total), str(held)))
    widths = [max(len(row[column]) for row in rows) for column in range(5)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )


def operations_of(node: Node) -> Affine:
    """Return how many operations a node performs, as an expression over the sizes."""
    total = affine(0)
    for stage in node.definition.stages:
        points = affine(1)
        for axis in stage.all_axes:
            points = points * axis.extent
        each = sum(isinstance(expr, Call) for expr in iterate(*stage.values))
        total = total + points * (each + stage.is_reduction)
    return total
