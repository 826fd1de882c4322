"""Random graphs of up to twelve operators, and arrays for them.

Every value stays small (weights are scaled, activations bounded), so that tolerances mean
something. Sizes: a symbolic batch, and two constants that no vector divides.
"""

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

import tensorlang as tl

NARROW, WIDE = 3, 19


@dataclass(frozen=True)
class Case:
    """A graph, and the arrays of one call."""

    graph: tl.Graph
    arrays: tuple[np.ndarray, ...]


def unary(draw, graph, x, rng):
    function = draw(st.sampled_from([tl.nn.relu, tl.nn.sigmoid, tl.nn.tanh, tl.nn.negative]))
    return function(x)


def with_number(draw, graph, x, rng):
    number = draw(st.sampled_from([2, 0.5, -0.0, 1.25, -1]))
    return draw(st.sampled_from([x * number, number - x, x + number, tl.nn.maximum(x, number)]))


def arithmetic(draw, graph, x, rng):
    others = [y for y in graph.values if y.ndim and str(y.shape[-1]) == str(x.shape[-1])]
    others = [y for y in others if y.ndim == 1 or str(y.shape) == str(x.shape)]
    y = draw(st.sampled_from(others))
    return draw(st.sampled_from([x + y, y - x, x * y * 0.5, tl.nn.minimum(x, y)]))


def with_constant(draw, graph, x, rng):
    if not isinstance(x.shape[-1], int):
        return -x
    return x + rng.standard_normal((1, x.shape[-1]) if x.ndim == 2 else (x.shape[-1],)).astype(
        tl.dtypes.to_numpy(x.dtype)
    )


def product(draw, graph, x, rng):
    if x.ndim != 2 or not isinstance(x.shape[1], int):
        return x * 0.25
    depth, width = x.shape[1], draw(st.sampled_from([NARROW, WIDE, 1]))
    w = (rng.standard_normal((width, depth)) / 4).astype(tl.dtypes.to_numpy(x.dtype))
    return draw(st.sampled_from([tl.nn.linear(x, w), x @ w.T]))


def along_rows(draw, graph, x, rng):
    return draw(st.sampled_from([tl.nn.softmax(x), tl.nn.layer_norm(x, eps=0.5)]))


def moved(draw, graph, x, rng):
    choices = [x.T, tl.nn.flatten(x)]
    if isinstance(x.shape[-1], int):
        choices.append(x[..., : x.shape[-1] // 2 + 1])
        choices.append(x[..., ::2])
    return draw(st.sampled_from(choices))


STEPS = (unary, with_number, arithmetic, with_constant, product, along_rows, moved)


@st.composite
def graphs(draw, most=12):
    """Draw a case; a graph has one to three outputs, and nodes that lead nowhere."""
    batch = tl.dim("B")
    dtype = draw(st.sampled_from([tl.f32, tl.f64]))
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    graph = tl.Graph()
    values = [graph.input("x", dtype[batch, WIDE]), graph.input("y", dtype[batch, NARROW])]
    values.append(graph.input("z", dtype[WIDE]))
    graph.values = values
    for _ in range(draw(st.integers(1, most))):
        x = values[-1] if draw(st.booleans()) else draw(st.sampled_from(values))
        values.append(draw(st.sampled_from(STEPS))(draw, graph, x, rng))
    graph.output(values[-1])
    for _ in range(draw(st.integers(0, 2))):
        graph.output(draw(st.sampled_from(values)))
    rows = draw(st.sampled_from([0, 1, 2, 7, 17]))
    numpy = tl.dtypes.to_numpy(dtype)
    shapes = [(rows, WIDE), (rows, NARROW), (WIDE,)]
    return Case(graph, tuple([rng.standard_normal(shape).astype(numpy) for shape in shapes]))
