"""Convolutions against sums written out with NumPy: sizes, strides, groups, layouts, algorithms."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorlang as tl
from tensorlang.nn.winograd import transformed_filters, winograd_conv2d, winograd_filters

F32 = np.float32


def expected(x, w, bias=None, *, stride=1, padding=0, dilation=1, groups=1):
    """Return conv2d in f64, tap by tap."""
    x = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (padding, padding), (padding, padding)))
    batch, _, height, width = x.shape
    outputs, depth, rows, columns = w.shape
    out_height = (height - dilation * (rows - 1) - 1) // stride + 1
    out_width = (width - dilation * (columns - 1) - 1) // stride + 1
    y = np.zeros((batch, outputs, out_height, out_width))
    share = outputs // groups
    for group in range(groups):
        for r in range(rows):
            for s in range(columns):
                top, left = r * dilation, s * dilation
                window = x[
                    :,
                    group * depth : (group + 1) * depth,
                    top : top + stride * (out_height - 1) + 1 : stride,
                    left : left + stride * (out_width - 1) + 1 : stride,
                ]
                of_group = w[group * share : (group + 1) * share, :, r, s].astype(np.float64)
                y[:, group * share : (group + 1) * share] += np.einsum(
                    "bchw,oc->bohw", window, of_group
                )
    return y if bias is None else y + bias[:, None, None]


def values(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape).astype(F32)


@st.composite
def convolutions(draw):
    groups = draw(st.sampled_from([1, 1, 1, 2, 3]))
    depth = draw(st.sampled_from([1, 2, 3, 17]))
    share = draw(st.sampled_from([1, 2, 5, 16, 33]))
    rows, columns = draw(st.sampled_from([1, 2, 3])), draw(st.sampled_from([1, 3, 5]))
    dilation = draw(st.sampled_from([1, 1, 2]))
    padding = draw(st.sampled_from([0, 1, 2]))
    height = draw(st.integers(0, 6)) + max(0, dilation * (rows - 1) + 1 - 2 * padding)
    width = draw(st.sampled_from([0, 1, 6, 13, 30]))
    width += max(0, dilation * (columns - 1) + 1 - 2 * padding)
    attributes = {
        "stride": draw(st.sampled_from([1, 1, 2, 3])),
        "padding": padding,
        "dilation": dilation,
        "groups": groups,
    }
    batch = draw(st.sampled_from([0, 1, 1, 2]))
    x = values(1, batch, groups * depth, height, width)
    w = values(2, groups * share, depth, rows, columns)
    bias = values(3, groups * share) if draw(st.booleans()) else None
    return x, w, bias, attributes


def assert_close(found, wanted):
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=2e-4)


@settings(max_examples=30, deadline=None)
@given(convolutions())
def test_default_schedules_of_fixed_sizes_and_constant_filters(drawn):
    x, w, bias, attributes = drawn

    @tl.graph
    def layer(x: tl.f32[x.shape]):
        return tl.nn.relu(tl.nn.conv2d(x, w, bias, **attributes))

    found = tl.compile(layer, precision="strict")(x)
    assert_close(found, np.maximum(expected(x, w, bias, **attributes), 0))


@settings(max_examples=12, deadline=None)
@given(convolutions())
def test_default_schedules_of_symbolic_sizes(drawn):
    x, w, bias, attributes = drawn
    found = tl.nn.conv2d(x, w, bias, **attributes)
    assert_close(found, expected(x, w, bias, **attributes))


@pytest.mark.parametrize("stride", [1, 2])
def test_channels_may_be_last(stride):
    B, C, O = tl.dims("B C O")  # noqa: E741

    @tl.compute
    def channels_last(x: tl.f32[B, 9, 11, C], w: tl.f32[3, 3, C, O]):
        return tl.tensor(
            tl.sum(
                x[b, i * stride + r, j * stride + s, c] * w[r, s, c, o]
                for r in tl.range(3)
                for s in tl.range(3)
                for c in C
            )
            for b in B
            for i in tl.range(6 // stride + 1)
            for j in tl.range(8 // stride + 1)
            for o in O
        )

    x, w = values(1, 2, 9, 11, 5), values(2, 3, 3, 5, 37)
    wanted = expected(x.transpose(0, 3, 1, 2), w.transpose(3, 2, 0, 1), stride=stride)
    assert_close(channels_last(x, w), wanted.transpose(0, 2, 3, 1))


def test_one_and_three_dimensions_are_convolutions_too():
    @tl.compute
    def line(x: tl.f32[2, 5, 40], w: tl.f32[33, 5, 4]):
        return tl.tensor(
            tl.sum(x[b, c, 2 * i + r] * w[o, c, r] for c in tl.range(5) for r in tl.range(4))
            for b in tl.range(2)
            for o in tl.range(33)
            for i in tl.range(19)
        )

    @tl.compute
    def space(x: tl.f32[3, 6, 7, 20], w: tl.f32[20, 3, 2, 3, 3]):
        return tl.tensor(
            tl.sum(
                x[c, i + q, j + r, k + s] * w[o, c, q, r, s]
                for c in tl.range(3)
                for q in tl.range(2)
                for r in tl.range(3)
                for s in tl.range(3)
            )
            for o in tl.range(20)
            for i in tl.range(5)
            for j in tl.range(5)
            for k in tl.range(18)
        )

    for operator in (line, space):
        arguments = [values(n, *[e.constant for e in t.shape])
                     for n, t in enumerate(operator.definition().inputs)]  # fmt: skip
        assert_close(operator(*arguments), operator.reference(*arguments))


def test_a_default_schedule_is_proved():
    s = tl.schedule(_layer()).default()
    assert "proved" in str(s.verify())


def test_transforms_run_in_bands_of_rows_and_are_proved():
    @tl.compute
    def layer(x: tl.f32[1, 8, 18, 12], u: tl.f32[4, 4, 1, 8, 32]):
        return winograd_conv2d(x, u, outputs=20, tile=2)

    s = tl.schedule(layer).default()
    first = next(line for line in str(s).splitlines() if "for b.v in 8" in line)
    assert "parallel" in first
    assert "proved" in str(s.verify())
    x, w = values(1, 1, 8, 18, 12), values(2, 20, 8, 3, 3)
    found = tl.compile(s)(x, transformed_filters(w, 2, 32))
    np.testing.assert_allclose(found, expected(x, w), rtol=0, atol=1e-4)


def test_indices_that_known_sizes_keep_inside_are_not_checked():
    definition = tl.nn.conv2d.definition(tl.f32[1, 8, 6, 6], tl.f32[16, 4, 3, 3], groups=2)
    assert "x[i0, c + 4 * (i1 // 8), i2 + r, i3 + s]" in str(definition)


def _layer():
    @tl.compute
    def layer(x: tl.f32[1, 20, 14, 14], w: tl.f32[40, 20, 3, 3]):
        padded = tl.pad(x, {2: (1, 1), 3: (1, 1)})
        return tl.tensor(
            tl.sum(
                padded[b, c, 2 * i + r, 2 * j + s] * w[o, c, r, s]
                for c in tl.range(20)
                for r in tl.range(3)
                for s in tl.range(3)
            )
            for b in tl.range(1)
            for o in tl.range(40)
            for i in tl.range(7)
            for j in tl.range(7)
        )

    return layer


# --- Winograd ------------------------------------------------------------------------------------


@settings(max_examples=6, deadline=None)
@given(
    st.sampled_from([2, 4]),
    st.tuples(*[st.integers(0, 2), st.integers(0, 18), st.integers(2, 15), st.integers(2, 20)]),
    st.integers(1, 40),
)
def test_winograd_is_the_convolution_rounded_differently(tile, shape, outputs):
    x, w = values(1, *shape), values(2, outputs, shape[1], 3, 3)
    u = winograd_filters(w, tile=tile)
    np.testing.assert_allclose(u, transformed_filters(w, tile, 32), rtol=1e-5, atol=1e-5)
    found = winograd_conv2d(x, u, outputs=outputs, tile=tile)
    wanted = expected(x, w)
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found, wanted, rtol=0, atol=(1e-5 if tile == 2 else 1e-4) * 14)


def test_attributes_of_winograd_are_checked():
    with pytest.raises(tl.DefinitionError, match=r"^winograd_filters: tile must be 2 or 4, not 3"):
        winograd_filters(values(1, 4, 4, 3, 3), tile=3)
    with pytest.raises(ValueError, match="filters have 3 rows"):
        winograd_filters(values(1, 4, 4, 5, 3))
    with pytest.raises(ValueError, match="u has another number of outputs"):
        winograd_conv2d(values(1, 1, 4, 8, 8), values(2, 6, 6, 1, 4, 32), outputs=64)


def convolution_of(x, w, **options):
    @tl.graph
    def layer(x: tl.f32[x.shape]):
        return tl.nn.relu(tl.nn.conv2d(x, w, values(3, len(w)), padding=1))

    return tl.compile(layer, **options)


@pytest.mark.parametrize(
    ("options", "tile"),
    [
        ({}, 4),
        ({"rtol": 1e-5}, 2),
        ({"rtol": 1e-6}, None),
        ({"rtol": 0}, None),
        ({"precision": "strict"}, None),
        ({"opt_level": 0}, None),
    ],
)
def test_a_graph_uses_winograd_as_far_as_it_may_err(options, tile):
    x, w = values(1, 1, 64, 28, 28), values(2, 64, 64, 3, 3)
    compiled = convolution_of(x, w, **options)
    names = [constant.tensor.name for constant in compiled.program.constants]
    assert any("winograd" in name for name in names) == (tile is not None)
    if tile is not None:
        assert any(name.endswith(f"winograd{tile}") for name in names)
    wanted = np.maximum(expected(x, w, values(3, 64), padding=1), 0)
    error = np.abs(compiled(x) - wanted).max() / wanted.std()
    assert error < {4: 2e-4, 2: 2e-5, None: 1e-5}[tile]


def test_the_name_of_an_operator_does_not_decide():
    """An operator called conv2d that is none is left alone, one under another name is not."""
    w = values(2, 64, 64, 3, 3)

    @tl.compute
    def conv2d(x: tl.f32[1, 64, 30, 30], w: tl.f32[64, 64, 3, 3]):
        return tl.tensor(
            tl.sum(
                x[0, c, i + s, j + r] * w[o, c, r, s]  # rows and columns of the filter changed
                for c in tl.range(64)
                for r in tl.range(3)
                for s in tl.range(3)
            )
            for b in tl.range(1)
            for o in tl.range(64)
            for i in tl.range(28)
            for j in tl.range(28)
        )

    @tl.graph
    def net(x: tl.f32[1, 64, 30, 30]):
        return conv2d(x, w)

    x = values(1, 1, 64, 30, 30)
    wanted = expected(x, w.swapaxes(2, 3))
    assert np.abs(tl.compile(net)(x) - wanted).max() / wanted.std() < 2e-4


def test_constant_filters_are_laid_out_once():
    x, w = values(1, 1, 20, 9, 9), values(2, 40, 20, 3, 3)
    compiled = convolution_of(x, w, precision="strict")
    packed = next(c for c in compiled.program.constants if c.tensor.name.endswith("/packed"))
    width = packed.array.shape[-1]
    assert width % 4 == 0
    assert packed.array.shape[-2] == 16
    assert "local = global" not in compiled.source("loops")
    assert packed.array[0, 1, 2, 0, 3, 5] == w[5, 19, 2, 0]
