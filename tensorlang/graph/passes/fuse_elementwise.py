"""fuse_elementwise: an elementwise node becomes part of the node whose result it reads.

Before                              After
::

    matmul = matmul(x, w)               relu = matmul_add_relu(x, w, b)
    add = add(matmul, b)
    relu = relu(add)

The stages of both stand in one definition, one after the other, and its default schedule decides
where each is computed: at the end of the producer's tiles, in its rows, or inside its reader. Each
stage still rounds once to its own dtype. A value that anything else reads, or that the graph
returns, stays where it is: its reader is not fused.
"""

from __future__ import annotations

from dataclasses import replace

from tensorlang.graph.passes.registry import graph_pass
from tensorlang.graph.program import GraphProgram, Node
from tensorlang.graph.rewrite import merge
from tensorlang.ir.affine import affine
from tensorlang.ir.definition import Stage, Tensor
from tensorlang.ir.expr import loads_of

_STAGES = 24
"""Stages beyond which a definition grows no further: compiling it would take long."""


@graph_pass(level=1)
def fuse_elementwise(program: GraphProgram) -> GraphProgram:
    """Merge each elementwise node into the only producer that has no other reader."""
    fused = _fuse_once(program)
    while fused is not program:
        program, fused = fused, _fuse_once(fused)
    return program


def _fuse_once(program: GraphProgram) -> GraphProgram:
    for consumer in program.nodes:
        for tensor in consumer.inputs:
            producer = program.producer_of(tensor)
            if producer is not None and _is_fusible(program, producer, consumer, tensor):
                return _fused(program, producer, consumer)
    return program


def _fused(program: GraphProgram, producer: Node, consumer: Node) -> GraphProgram:
    kept = tuple([t for t in producer.outputs if t in program.outputs])
    node = merge(producer, consumer, kept + consumer.outputs)
    nodes = [node if n is consumer else n for n in program.nodes if n is not producer]
    return replace(program, nodes=tuple(nodes))


def _is_fusible(program: GraphProgram, producer: Node, consumer: Node, tensor: Tensor) -> bool:
    """Whether ``consumer`` computes each element from that of ``tensor`` at the same place.

    All that the producer makes is read by the consumer alone, so that no third node can stand
    between the two.
    """
    count = len(producer.definition.stages) + len(consumer.definition.stages)
    if count > _STAGES or tensor in program.outputs:
        return False
    if any(reader is not consumer for t in producer.outputs for reader in program.readers_of(t)):
        return False
    return all(_is_pointwise(stage, tensor) for stage in consumer.definition.stages)


def _is_pointwise(stage: Stage, tensor: Tensor) -> bool:
    if not stage.is_map:
        return False
    if tuple([axis.extent for axis in stage.axes]) != tensor.shape:
        return False
    here = tuple([affine(axis.variable) for axis in stage.axes])
    return all(load.indices == here for load in loads_of(*stage.values) if load.tensor is tensor)
