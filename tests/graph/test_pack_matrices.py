"""Constant matrices in panels: packed where that is right, and products as before."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorlang as tl
from tensorlang.dtypes import to_numpy
from tensorlang.graph.passes.pack_matrices import pack, pack_matrices

R = tl.dim("R")
DTYPES = [tl.f32, tl.f64, tl.f16, tl.i32, tl.i8]


def layers(annotation, w, bias=None, transposed=False):
    """Return a graph of one product with the constant ``w``."""
    g = tl.Graph("layers")
    x = g.input("x", annotation)
    y = tl.nn.linear(x, g.constant(w)) if transposed else x @ g.constant(w)
    g.output(y if bias is None else tl.nn.relu(y + g.constant(bias)))
    return g


@st.composite
def products(draw):
    dtype = draw(st.sampled_from(DTYPES))
    lead = draw(st.sampled_from([(), (3,)]))
    rows = draw(st.sampled_from([0, 1, 5, 8, 33]))
    columns = draw(st.sampled_from([1, 15, 16, 17, 47, 48, 49, 100]))
    steps = draw(st.sampled_from([1, 7, 65]))
    return dtype, lead, rows, columns, steps, draw(st.booleans()), draw(st.booleans())


@settings(deadline=None, max_examples=30)
@given(products(), st.booleans())
def test_products_with_packed_matrices(case, is_symbolic):
    dtype, lead, rows, columns, steps, transposed, with_bias = case
    rng = np.random.default_rng(columns * 100 + steps)
    as_numpy = to_numpy(dtype)
    x = rng.integers(-3, 4, (*lead, rows, steps)).astype(as_numpy)
    w = rng.integers(-3, 4, (columns, steps) if transposed else (steps, columns)).astype(as_numpy)
    bias = rng.integers(-3, 4, columns).astype(as_numpy) if with_bias else None
    g = layers(dtype[(*lead, R if is_symbolic else rows, steps)], w, bias, transposed)
    f = tl.compile(g)
    expected = x.astype(np.float64) @ (w.T if transposed else w).astype(np.float64)
    if bias is not None:
        expected = np.maximum(expected + bias, 0)
    found = f(x)
    wrapped = expected.astype(np.int64).astype(as_numpy) if dtype.kind == "int" else expected
    np.testing.assert_array_equal(found, wrapped.astype(as_numpy))


@pytest.mark.parametrize("transposed", [False, True])
def test_a_constant_matrix_is_packed(transposed):
    w = np.zeros((300, 70) if transposed else (70, 300), "f4")
    program = pack_matrices(layers(tl.f32[R, 70], w, transposed=transposed).program)
    (packed,) = program.constants
    assert packed.tensor.name.endswith("/packed")
    assert packed.array.shape[1] == 70
    assert packed.array.shape[0] * packed.array.shape[2] >= 300


def test_narrow_and_variable_matrices_stay():
    narrow = layers(tl.f32[R, 70], np.zeros((70, 1), "f4")).program
    assert pack_matrices(narrow) is narrow
    g = tl.Graph("variable")
    g.output(g.input("x", tl.f32[R, 70]) @ g.input("w", tl.f32[70, 300]))
    assert pack_matrices(g.program) is g.program


def test_panels_are_filled_with_zeros():
    packed = pack(np.arange(6).reshape(3, 2), 2)
    np.testing.assert_array_equal(packed, [[[0, 2], [1, 3]], [[4, 0], [5, 0]]])
