"""Random shapes and attributes: definitions against NumPy, and identities between operators."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorlang import nn
from tests.nn.agreement import compiled, normal
from tests.nn.test_convolution_nd import transposed

FEW = settings(max_examples=12, deadline=None)
extents = st.sampled_from([0, 1, 2, 3, 5, 7])


@FEW
@given(st.lists(extents, min_size=1, max_size=4), st.data())
def test_sums_over_any_axes(shape, data):
    x = normal(*shape, dtype="f8")
    axes = data.draw(st.sets(st.integers(-len(shape), -1)))
    keepdim = data.draw(st.booleans())
    wanted = x.sum(tuple(axes), keepdims=keepdim)
    found = nn.sum.reference(x, axis=tuple(axes), keepdim=keepdim)
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)


@FEW
@given(st.lists(st.integers(1, 6), min_size=1, max_size=3), st.data())
def test_reflections_and_wraps(shape, data):
    x = normal(*shape)
    for mode, name, most in (
        ("reflect", "reflect", 1),
        ("circular", "wrap", 0),
        ("replicate", "edge", -2),
    ):
        pairs = [
            tuple(data.draw(st.integers(0, max(n - most, 0))) for _ in range(2)) for n in shape
        ]
        flat = tuple(number for pair in reversed(pairs) for number in pair)
        found = nn.pad.reference(x, pad=flat, mode=mode)
        np.testing.assert_array_equal(found, np.pad(x, pairs, mode=name))


@FEW
@given(st.data())
def test_transposed_convolutions(data):
    groups, depth, share = (data.draw(st.integers(1, 2)) for _ in range(3))
    stride, dilation = data.draw(st.integers(1, 4)), data.draw(st.sampled_from([1, 1, 2]))
    window, size = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 6))
    added = data.draw(st.integers(0, max(stride, dilation) - 1))
    whole = (size - 1) * stride + dilation * (window - 1) + 1
    padding = data.draw(st.integers(0, (whole - 1) // 2))
    x = normal(2, groups * depth, size, size, dtype="f8")
    w = normal(groups * depth, share, window, window, dtype="f8")
    case = (stride, padding, added, dilation, groups)
    names = ("stride", "padding", "output_padding", "dilation", "groups")
    found = nn.conv_transpose2d.reference(x, w, **dict(zip(names, case, strict=True)))
    np.testing.assert_allclose(found, transposed(x, w, *case), rtol=1e-10, atol=1e-10)


@FEW
@given(st.lists(extents, min_size=2, max_size=3), st.integers(-9, 9), st.data())
def test_what_undoes_itself(shape, shift, data):
    x, axis = normal(*shape), data.draw(st.integers(0, len(shape) - 1))
    there = compiled(nn.roll, (("shifts", shift), ("axis", axis)))(x)
    np.testing.assert_array_equal(there, np.roll(x, shift, axis))
    np.testing.assert_array_equal(nn.roll.reference(there, shifts=-shift, axis=axis), x)
    np.testing.assert_array_equal(nn.flip(nn.flip(x, axis=axis), axis=axis), x)
    parts = nn.chunk(x, 2, axis=axis)
    np.testing.assert_array_equal(nn.concat(parts, axis=axis), x)


@FEW
@given(st.lists(extents, min_size=1, max_size=3), st.lists(extents, min_size=1, max_size=3))
def test_products_that_broadcast(left, right):
    fits = zip(reversed(left), reversed(right), strict=False)
    right = list(right)
    for place, (a, b) in enumerate(fits, 1):
        if a != b and 1 not in (a, b):
            right[-place] = 1
    a, b = normal(*left, 2, 3, dtype="f8"), normal(*right, 3, 1, dtype="f8")
    np.testing.assert_allclose(nn.matmul.reference(a, b), a @ b, rtol=1e-12, atol=1e-12)
