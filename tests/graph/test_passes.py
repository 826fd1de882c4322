"""Each pass does what its page says, and leaves alone what it must."""

import numpy as np
import pytest

import tensorlang as tl
from tensorlang.graph.passes import (
    PASSES,
    eliminate_common,
    eliminate_dead,
    fold_constants,
    fuse_elementwise,
    graph_pass,
)

B = tl.dim("B")


def graph_of(build):
    g = tl.Graph("g")
    g.output(*build(g, g.input("x", tl.f32[B, 5])))
    return g.program


def operators(program):
    return [node.operator for node in program.nodes]


def test_fold_constants():
    w = np.arange(10, dtype="f4").reshape(2, 5)
    program = fold_constants(graph_of(lambda g, x: [x @ tl.nn.transpose(g.constant(w))]))
    assert operators(program) == ["matmul"]
    np.testing.assert_array_equal(program.constants[-1].array, w.T)


def test_an_output_is_not_folded():
    program = graph_of(lambda g, x: [tl.nn.relu(g.constant(np.ones(2, "f4")))])
    assert fold_constants(program) is program


def test_eliminate_common():
    program = eliminate_common(
        graph_of(lambda g, x: [tl.nn.softmax(x) + tl.nn.softmax(x) * tl.nn.relu(x)])
    )
    assert operators(program) == ["softmax", "relu", "multiply", "add"]


@pytest.mark.parametrize(
    "pair",
    [lambda x: (x * 0.0, x * -0.0), lambda x: (x - 1, 1 - x), lambda x: (x.T, x.T.T),
     lambda x: (tl.nn.softmax(x, axis=0), tl.nn.softmax(x, axis=1)),
     lambda x: (x + np.zeros(5, "f4"), x + np.full(5, -0.0, "f4"))],
)  # fmt: skip
def test_what_differs_stays_apart(pair):
    program = graph_of(lambda g, x: [tl.nn.negative(y) for y in pair(x)])
    values = [node for node in eliminate_common(program).nodes if node.operator != "negative"]
    assert len(values) == len([node for node in program.nodes if node.operator != "negative"]) - (
        sum(node.operator == "transpose" for node in program.nodes) > 1
    )


def test_eliminate_dead():
    def build(g, x):
        tl.nn.softmax(x + g.constant(np.ones(5, "f4")))
        return [tl.nn.relu(x)]

    program = eliminate_dead(graph_of(build))
    assert operators(program) == ["relu"]
    assert program.constants == ()


def test_fuse_elementwise():
    program = fuse_elementwise(graph_of(lambda g, x: [tl.nn.relu(x @ np.ones((5, 3), "f4") + 1)]))
    assert operators(program) == ["matmul_add_relu"]
    assert len(program.nodes[0].definition.stages) == 3


def test_a_value_that_others_need_is_not_fused_away():
    def read_twice(g, x):
        h = tl.nn.softmax(x)
        return [tl.nn.relu(h), tl.nn.tanh(h)]

    def returned(g, x):
        h = tl.nn.softmax(x)
        return [h, tl.nn.relu(h)]

    for build in (read_twice, returned):
        program = graph_of(build)
        assert fuse_elementwise(program) is program


def test_another_place_is_not_fused():
    for build in (lambda g, x: [tl.nn.softmax(x).T], lambda g, x: [tl.nn.softmax(tl.nn.relu(x))]):
        program = graph_of(build)
        assert fuse_elementwise(program) is program


def test_two_producers_and_one_consumer():
    program = fuse_elementwise(graph_of(lambda g, x: [tl.nn.softmax(x) + tl.nn.tanh(x)]))
    assert operators(program) == ["tanh", "softmax_add"]


def test_the_context_chooses_and_shows(capsys, tmp_path):
    g = tl.Graph("g")
    g.output(tl.nn.relu(g.input("x", tl.f32[B]) + 1))
    with tl.PassContext(disable=["fuse_elementwise"]):
        assert len(tl.compile(g).program.nodes) == 2
    with tl.PassContext(opt_level=0, print_ir=True):
        assert len(tl.compile(g).program.nodes) == 2
    assert capsys.readouterr().out == f"# input\n{g}\n\n"
    with tl.PassContext(dump_ir=tmp_path):
        assert len(tl.compile(g).program.nodes) == 1
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["00-input.txt", "05-fuse_elementwise.txt"]


def test_a_pass_that_does_not_exist():
    with pytest.raises(ValueError, match="there is no graph pass nothing; the passes are fold_con"):
        tl.PassContext(disable=["nothing"])


def test_every_pass_has_a_summary():
    assert all(known.summary.endswith(".") for known in PASSES)


def test_a_pass_of_ones_own_runs_last_and_has_a_name_of_its_own():
    seen = []

    @graph_pass(level=2)
    def remember(program):
        """Remember the program."""
        seen.append(program)
        return program

    try:
        g = tl.Graph("g")
        g.output(tl.nn.relu(g.input("x", tl.f32[B]) + 1))
        tl.compile(g, opt_level=1)
        assert not seen
        assert len(tl.compile(g).program.nodes) == len(seen[0].nodes) == 1
        remember.__name__ = "fuse_elementwise"
        with pytest.raises(ValueError, match="a graph pass is called fuse_elementwise already"):
            graph_pass(level=1)(remember)
    finally:
        PASSES.pop()
