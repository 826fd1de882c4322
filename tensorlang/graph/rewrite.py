"""What passes do to nodes: other inputs, and two nodes in one.

Input:  ``relu = relu(matmul)`` and the mapping ``{matmul: matmul_1}``
Output: ``relu = relu(matmul_1)``: the node's own tensors stay, so that its readers need no change
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tensorlang.graph.program import Node, complete
from tensorlang.ir.definition import Stage, Tensor
from tensorlang.ir.specialize import Replacement, replace_in_expr, replace_in_index


def with_inputs(node: Node, mapping: Mapping[Tensor, Tensor]) -> Node:
    """Return the node reading other tensors, of the same shapes and dtypes."""
    if not any(tensor in mapping for tensor in node.inputs):
        return node
    new = Replacement(tensors=mapping)
    stages = tuple([_replace_in_stage(stage, new) for stage in node.definition.stages])
    inputs = tuple(dict.fromkeys([mapping.get(t, t) for t in node.inputs]))
    definition = complete(replace(node.definition, inputs=inputs, stages=stages))
    arguments = tuple([mapping.get(tensor, tensor) for tensor in node.arguments])
    return replace(node, definition=definition, arguments=arguments)


def _replace_in_stage(stage: Stage, new: Replacement) -> Stage:
    return replace(
        stage,
        values=tuple([replace_in_expr(value, new) for value in stage.values]),
        predicate=tuple([replace_in_index(form, new) for form in stage.predicate]),
        copies=None if stage.copies is None else new.tensors.get(stage.copies, stage.copies),
    )


def merge(producer: Node, consumer: Node, outputs: tuple[Tensor, ...]) -> Node:
    """Return one node that does the work of two; ``outputs`` is what others still need."""
    made = {tensor for stage in producer.definition.stages for tensor in stage.tensors}
    arguments = [t for t in (*producer.arguments, *consumer.arguments) if t not in made]
    name = f"{producer.operator}_{consumer.operator}"
    definition = replace(
        consumer.definition,
        name=name,
        inputs=tuple(dict.fromkeys(arguments)),
        stages=producer.definition.stages + consumer.definition.stages,
        outputs=outputs,
        conditions=producer.definition.conditions + consumer.definition.conditions,
        documentation="",
    )
    attributes = producer.attributes + consumer.attributes
    return Node(
        consumer.name,
        complete(definition),
        tuple(dict.fromkeys(arguments)),
        attributes,
        consumer.location,
    )
