"""eliminate_common: what is computed twice is computed once.

Before                              After
::

    relu = relu(x)                      relu = relu(x)
    relu_1 = relu(x)                    add = add(relu, relu)
    add = add(relu, relu_1)

Nodes are compared by structure, constants element by element (bit by bit: 0 is not -0 here).
"""

from __future__ import annotations

from dataclasses import replace

from tensorlang.graph.passes.registry import graph_pass
from tensorlang.graph.program import Constant, GraphProgram, Node
from tensorlang.graph.rewrite import with_inputs
from tensorlang.graph.same import is_same_definition
from tensorlang.ir.definition import Tensor


@graph_pass(level=2)
def eliminate_common(program: GraphProgram) -> GraphProgram:
    """Let readers of a node that repeats an earlier one read the earlier one."""
    renamed: dict[Tensor, Tensor] = {}
    constants: list[Constant] = []
    for constant in program.constants:
        twin = next((c for c in constants if _is_same_constant(c, constant)), None)
        if twin is None:
            constants.append(constant)
        else:
            renamed[constant.tensor] = twin.tensor
    kept: list[Node] = []
    for original in program.nodes:
        node = with_inputs(original, renamed)
        twin = None
        if not any(tensor in program.outputs for tensor in node.outputs):
            twin = next(
                (n for n in kept if is_same_definition(n.definition, node.definition)), None
            )
        if twin is None:
            kept.append(node)
        else:
            renamed.update(zip(node.outputs, twin.outputs, strict=True))
    if not renamed:
        return program
    return replace(program, nodes=tuple(kept), constants=tuple(constants))


def _is_same_constant(left: Constant, right: Constant) -> bool:
    one, other = left.array, right.array
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    return one is other or one.tobytes() == other.tobytes()
