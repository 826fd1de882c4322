"""fold_constants: what depends on constants alone is computed now.

Before                              After
::

    w = constant                        transpose = constant
    transpose = transpose(w)            matmul = matmul(x, transpose)
    matmul = matmul(x, transpose)
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tensorlang.graph.passes.registry import graph_pass
from tensorlang.graph.program import Constant, GraphProgram, Node
from tensorlang.ir.definition import Tensor
from tensorlang.lang.reference import evaluate_definition

_LARGE = 1 << 24
"""Bytes beyond which a constant is not made from smaller ones: it would fill memory."""


@graph_pass(level=1)
def fold_constants(program: GraphProgram) -> GraphProgram:
    """Replace nodes whose inputs are all constants by constants, as the definitions say."""
    known = {constant.tensor: constant for constant in program.constants}
    kept: list[Node] = []
    for node in program.nodes:
        folded = _fold(node, known) if _is_foldable(node, known, program) else None
        if folded is None:
            kept.append(node)
        else:
            known.update({constant.tensor: constant for constant in folded})
    if len(kept) == len(program.nodes):
        return program
    return replace(program, nodes=tuple(kept), constants=tuple(known.values()))


def _is_foldable(node: Node, known: dict[Tensor, Constant], program: GraphProgram) -> bool:
    fixed = not node.definition.sizes and all(tensor in known for tensor in node.inputs)
    return fixed and not any(tensor in program.outputs for tensor in node.outputs)


def _fold(node: Node, known: dict[Tensor, Constant]) -> list[Constant] | None:
    """Return the constants in place of a node; None if they would be too large."""
    given = sum(known[tensor].array.nbytes for tensor in node.inputs)
    made = sum(_bytes(tensor) for tensor in node.outputs)
    if made > max(given, _LARGE):
        return None
    inputs = {tensor: known[tensor].array for tensor in node.inputs}
    result: list[Constant] = []
    for tensor, value in zip(
        node.outputs, evaluate_definition(node.definition, inputs, {}, {}), strict=True
    ):
        array = np.array(value, order="C")
        array.flags.writeable = False
        result.append(Constant(tensor, array))
    return result


def _bytes(tensor: Tensor) -> int:
    count = tensor.dtype.bits // 8
    for extent in tensor.shape:
        count *= extent.constant
    return count
