"""The ways to a node against plain lazy evaluation, on random graphs of choices."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from tensorlang.dtypes import bool_, f32
from tensorlang.ir import branches
from tensorlang.ir.affine import Var, affine
from tensorlang.ir.branches import ways_to_nodes
from tensorlang.ir.definition import Tensor
from tensorlang.ir.expr import Call, Load, Select, iterate

X = Tensor("X", (affine(9),), f32)
FLAG = Tensor("flag", (affine(9),), bool_)
CONDITIONS = tuple(Load(FLAG, (affine(number),)) for number in range(4))


@st.composite
def graphs(draw):
    """A root over nodes that each use earlier ones, by a sum or by a choice."""
    nodes = [Load(X, (affine(Var(name)),)) for name in "abc"]
    for _ in range(draw(st.integers(1, 12))):
        left, right = (draw(st.sampled_from(nodes[-5:])) for _ in range(2))
        if draw(st.booleans()):
            nodes.append(Select(draw(st.sampled_from(CONDITIONS)), left, right, f32))
        else:
            nodes.append(Call("add", (left, right), f32))
    return nodes[-1]


def evaluated(root, holds):
    """The ids of the nodes that lazy evaluation visits."""
    seen, stack = set(), [root]
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, Select):
            stack.append(node.condition)
            stack.append(node.then if holds[id(node.condition)] else node.otherwise)
        elif isinstance(node, Call):
            stack.extend(node.args)
    return seen


def worlds():
    for values in itertools.product((False, True), repeat=len(CONDITIONS)):
        yield {id(c): value for c, value in zip(CONDITIONS, values, strict=True)}


def holds_in(branch, world):
    return all(world[id(condition)] is taken for condition, taken in branch)


@given(graphs())
def test_a_node_is_evaluated_exactly_where_a_way_leads_to_it(root):
    ways = ways_to_nodes((root,), lambda condition, taken: True)
    for world in worlds():
        visited = evaluated(root, world)
        for node in iterate(root):
            led_to = any(holds_in(branch, world) for branch in ways[id(node)])
            assert led_to == (id(node) in visited)


@given(graphs(), st.sets(st.integers(0, 3)), st.integers(1, 2))
def test_what_is_left_out_only_adds_points(root, silent, most):
    quiet = {id(CONDITIONS[number]) for number in silent}
    before, branches._MOST = branches._MOST, most
    try:
        ways = ways_to_nodes((root,), lambda condition, taken: id(condition) not in quiet)
    finally:
        branches._MOST = before
    for world in worlds():
        for number in evaluated(root, world):
            assert any(holds_in(branch, world) for branch in ways[number])


def test_a_long_chain_of_choices_is_no_matter():
    start = node = Load(X, (affine(0),))
    for number in range(2_000):
        condition = Load(FLAG, (affine(number),))
        node = Select(condition, Call("add", (node, node), f32), node, f32)
    assert ways_to_nodes((node,), lambda condition, taken: True)[id(start)] == ((),)
