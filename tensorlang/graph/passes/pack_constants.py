"""What ``pack_filters`` and ``pack_matrices`` share: stages that read a constant packed anew.

Input:  a graph, and a function that gives a stage reading packed constants in place of a stage
Output: the graph with its definitions rebuilt, and the constants that are still read
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tensorlang.graph.program import Constant, GraphProgram, Node, complete
from tensorlang.ir.affine import Affine
from tensorlang.ir.definition import Stage, Tensor
from tensorlang.ir.expr import Expr, Load
from tensorlang.ir.walk import rewrite_expr

Constants = dict[Tensor, Constant]
PackStage = Callable[[Stage, Constants], Stage | None]
"""Returns a stage that reads packed constants, which it adds to those known; None: as it is."""


def pack_constants(program: GraphProgram, pack: PackStage) -> GraphProgram:
    """Return the graph after ``pack`` has seen every stage; the same if it changed none."""
    constants = {constant.tensor: constant for constant in program.constants}
    nodes = [_packed(node, constants, pack) for node in program.nodes]
    if nodes == list(program.nodes):
        return program
    read = {tensor for node in nodes for tensor in node.inputs}
    kept = tuple([constant for tensor, constant in constants.items() if tensor in read])
    return replace(program, nodes=tuple(nodes), constants=kept)


def _packed(node: Node, constants: Constants, pack: PackStage) -> Node:
    stages = [pack(stage, constants) or stage for stage in node.definition.stages]
    if stages == list(node.definition.stages):
        return node
    definition = complete(replace(node.definition, stages=tuple(stages)))
    made = {tensor for stage in stages for tensor in stage.tensors}
    return replace(node, definition=definition, arguments=tuple(
        [tensor for tensor in definition.inputs if tensor not in made]
    ))  # fmt: skip


def reading(stage: Stage, load: Load, packed: Tensor, indices: tuple[Affine, ...]) -> Stage:
    """Return ``stage`` with ``packed[indices]`` in place of every load of that tensor."""

    def visit(expr: Expr) -> Expr:
        here = isinstance(expr, Load) and expr.tensor is load.tensor
        return Load(packed, indices) if here else expr

    return replace(stage, values=tuple([rewrite_expr(value, visit) for value in stage.values]))
