"""eliminate_dead: nodes and constants on which no output depends disappear.

Before                              After
::

    a = exp(x)                          b = relu(x)
    b = relu(x)                         return b
    return b
"""

from __future__ import annotations

from dataclasses import replace

from tensorlang.graph.passes.registry import graph_pass
from tensorlang.graph.program import GraphProgram, Node


@graph_pass(level=0)
def eliminate_dead(program: GraphProgram) -> GraphProgram:
    """Drop what no output depends on; inputs stay, used or not."""
    needed = set(program.outputs)
    kept: list[Node] = []
    for node in reversed(program.nodes):
        if not needed.isdisjoint(node.outputs):
            kept.append(node)
            needed.update(node.inputs)
    constants = tuple([c for c in program.constants if c.tensor in needed])
    if len(kept) == len(program.nodes) and len(constants) == len(program.constants):
        return program
    return replace(program, nodes=tuple(reversed(kept)), constants=constants)
