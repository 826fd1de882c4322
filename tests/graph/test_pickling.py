"""Graphs travel between processes: compiled ones by their graph, graph functions by name."""

import pickle

import numpy as np
import pytest

import tensorlang as tl

B, H = tl.dims("B H")


@tl.graph
def mlp(x: tl.f32[B, 8], w: tl.f32[8, H], b: tl.f32[H]):
    return tl.nn.softmax(tl.nn.relu(x @ w) + b)


def arguments():
    generator = np.random.default_rng(3)
    return [generator.standard_normal(s, np.float32) for s in ((5, 8), (8, 3), (3,))]


@pytest.mark.parametrize("options", [{}, {"opt_level": 1}])
def test_a_compiled_graph_is_compiled_anew_with_its_options(options):
    first = tl.compile(mlp, **options)
    again = pickle.loads(pickle.dumps(first))
    np.testing.assert_array_equal(again(*arguments()), first(*arguments()))
    assert str(again.program) == str(first.program)
    third = pickle.loads(pickle.dumps(again))
    np.testing.assert_array_equal(third(*arguments()), first(*arguments()))


def test_a_graph_function_is_pickled_by_name():
    assert pickle.loads(pickle.dumps(mlp)) is mlp


def test_one_that_has_no_name_says_what_to_do():
    @tl.graph
    def inner(x: tl.f32[B, 8]):
        return tl.nn.relu(x)

    with pytest.raises(pickle.PicklingError, match=r"pickle tl\.compile\(inner\), which holds"):
        pickle.dumps(inner)
    assert pickle.loads(pickle.dumps(tl.compile(inner)))(np.ones((2, 8), np.float32)).sum() == 16
