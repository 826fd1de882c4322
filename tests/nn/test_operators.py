"""The operators of ``tl.nn`` against NumPy, at awkward sizes, for f32 and f64."""

import numpy as np
import pytest

import tensorlang as tl
from tensorlang import nn

DTYPES = (np.float32, np.float64)
rng = np.random.default_rng(0)


def normal(*shape, dtype=np.float32):
    return rng.standard_normal(shape).astype(dtype)


def assert_close(found, expected):
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("left", "right"),
    [((3, 4), (4, 5)), ((4,), (4,)), ((3, 4), (4,)), ((4,), (4, 3)), ((2, 3, 4), (4, 5)),
     ((2, 3, 4), (2, 4, 5)), ((3, 4), (2, 4, 5)), ((0, 4), (4, 5)), ((3, 0), (0, 5)),
     ((17, 31), (31, 33))],
)  # fmt: skip
def test_matmul(left, right, dtype):
    a, b = normal(*left, dtype=dtype), normal(*right, dtype=dtype)
    assert_close(np.asarray(nn.matmul(a, b)), np.asarray(a @ b))


def test_matmul_of_sizes_that_do_not_agree():
    with pytest.raises(ValueError, match="the last axis of a and the one before the last of b"):
        nn.matmul(normal(3, 4), normal(5, 2))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("lead", [(7,), (0,), (), (2, 3)])
def test_linear(lead, dtype):
    x, w, b = normal(*lead, 5, dtype=dtype), normal(19, 5, dtype=dtype), normal(19, dtype=dtype)
    assert_close(nn.linear(x, w, b), x @ w.T + b)
    assert_close(nn.linear(x, w), x @ w.T)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(0,), (1,), (13, 7), (2, 0, 3)])
def test_activations(shape, dtype):
    x = normal(*shape, dtype=dtype)
    assert_close(nn.relu(x), np.maximum(x, 0))
    assert_close(nn.sigmoid(x), 1 / (1 + np.exp(-x)))
    assert_close(nn.tanh(x), np.tanh(x))
    for axis in (0, -1):
        e = np.exp(x - x.max(axis=axis, keepdims=True, initial=-9))
        assert_close(nn.softmax(x, axis=axis), e / e.sum(axis=axis, keepdims=True))


def test_softmax_of_large_numbers():
    assert_close(nn.softmax(np.array([1e4, 1e4], "f4")), np.array([0.5, 0.5], "f4"))


def test_softmax_along_an_axis_that_does_not_exist():
    with pytest.raises(tl.DefinitionError, match="softmax: axis 2 does not exist"):
        nn.softmax(normal(2, 3), axis=2)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(5, 7), (0, 3), (2, 3, 33), (1,)])
def test_layer_norm(shape, dtype):
    x = normal(*shape, dtype=dtype) + 100
    w, b = normal(shape[-1], dtype=dtype), normal(shape[-1], dtype=dtype)
    plain = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-3)
    np.testing.assert_allclose(nn.layer_norm(x, w, b, eps=1e-3), plain * w + b, atol=2e-3)
    np.testing.assert_allclose(nn.layer_norm(x, eps=1e-3), plain, atol=2e-3)


def conv2d_in_numpy(x, w, bias, stride, padding, dilation, groups):
    (sy, sx), (py, px), (dy, dx) = stride, padding, dilation
    x = np.pad(x, ((0, 0), (0, 0), (py, py), (px, px)))
    batch, _, height, width = x.shape
    outputs, depth, rows, columns = w.shape
    shape = (batch, outputs, (height - dy * (rows - 1) - 1) // sy + 1,
             (width - dx * (columns - 1) - 1) // sx + 1)  # fmt: skip
    result = np.zeros(shape, x.dtype) + bias[:, None, None]
    share = outputs // groups
    for o in range(outputs):
        part = x[:, o // share * depth : (o // share + 1) * depth]
        for r in range(rows):
            for s in range(columns):
                seen = part[:, :, r * dy :: sy, s * dx :: sx][:, :, : shape[2], : shape[3]]
                result[:, o] += np.einsum("bchw,c->bhw", seen, w[o, :, r, s])
    return result


@pytest.mark.parametrize(
    ("options", "dtype"),
    [({}, np.float64), ({"stride": 2, "padding": 1}, np.float32), ({"groups": 2}, np.float32),
     ({"dilation": 2, "padding": (1, 2), "stride": (1, 3)}, np.float32)],
    ids=str,
)  # fmt: skip
def test_conv2d(options, dtype):
    x, b = normal(2, 4, 9, 8, dtype=dtype), normal(8, dtype=dtype)
    w = normal(8, 4 // options.get("groups", 1), 3, 2, dtype=dtype)
    full = {"stride": 1, "padding": 0, "dilation": 1} | options
    pairs = {k: v if isinstance(v, tuple) else (v, v) for k, v in full.items() if k != "groups"}
    expected = conv2d_in_numpy(x, w, b, **pairs, groups=options.get("groups", 1))
    assert_close(nn.conv2d(x, w, b, **options), expected)
    assert nn.conv2d(x[:0], w, b, **options).shape == (0, *expected.shape[1:])
    assert_close(nn.conv2d(x[0], w, b, **options), expected[0])


def test_conv2d_of_channels_that_do_not_agree():
    with pytest.raises(ValueError, match="x has groups times the channels of w"):
        nn.conv2d(normal(1, 3, 4, 4), normal(2, 2, 3, 3))


def test_conv2d_names_a_bad_attribute():
    with pytest.raises(tl.DefinitionError, match="stride must be an integer of at least 1"):
        nn.conv2d(normal(1, 3, 4, 4), normal(2, 3, 3, 3), stride=0)


@pytest.mark.parametrize("dtype", [*DTYPES, np.int32])
def test_max_pool2d(dtype):
    x = (normal(2, 3, 9, 8) * 50).astype(dtype)
    expected = x[:, :, :8].reshape(2, 3, 4, 2, 4, 2).max(axis=(3, 5))
    assert_close(nn.max_pool2d(x, kernel_size=2), expected)
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)), constant_values=-1000)
    seen = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    expected = seen[:, :, ::2, ::2].max(axis=(4, 5))
    assert_close(nn.max_pool2d(x, kernel_size=3, stride=2, padding=1), expected)
    assert nn.max_pool2d(x[:0], kernel_size=2).shape == (0, 3, 4, 4)


def test_arithmetic_broadcasts_as_numpy_does():
    pairs = [((4, 3), (3,)), ((4, 1), (1, 3)), ((1,), (5, 2)), ((2, 1, 3), (4, 1)), ((), (3,))]
    for left, right in pairs:
        a, b = normal(*left), normal(*right)
        assert_close(nn.add(a, b), a + b)
        assert_close(nn.divide(a, b), a / b)
        assert np.array_equal(nn.less(a, b), a < b)


def test_arithmetic_with_numbers_keeps_the_dtype():
    x = normal(5)
    for found, expected in [
        (nn.subtract(2, x), 2 - x), (nn.multiply(x, 0.5), x * 0.5), (nn.maximum(x, 0), x.clip(0)),
    ]:  # fmt: skip
        assert found.dtype == np.float32
        assert_close(found, expected.astype("f4"))


def test_the_sign_of_zero_is_part_of_an_attribute():
    one = np.ones(1, "f4")
    assert np.signbit(nn.multiply(one, 0.0))[0] == np.False_
    assert np.signbit(nn.multiply(one, -0.0))[0] == np.True_


def test_sizes_that_are_not_equal_do_not_broadcast():
    with pytest.raises(ValueError, match="axis -1 of the operands must be equal"):
        nn.add(normal(2), normal(3))


def test_shapes():
    x = normal(2, 3, 4)
    assert_close(nn.transpose(x), x.T)
    assert_close(nn.transpose(x, axes=(1, 0, -1)), x.transpose(1, 0, 2))
    assert_close(nn.flatten(x), x.reshape(-1))
    assert_close(nn.flatten(x, start_axis=1), x.reshape(2, -1))
    assert_close(nn.flatten(x[:0], start_axis=1), x[:0].reshape(0, 12))
    slices = ((1, 2, None), (1, None, None), (0, -1, 2))
    assert_close(nn.take_slice(x, slices=slices, drop=(0,)), x[1, 1:, :-1:2])


def test_operators_of_nn_can_be_used_in_operators():
    M, N = tl.dims("M N")

    @tl.compute
    def gate(x: tl.f32[M, N], b: tl.f32[N]):
        return nn.multiply(nn.sigmoid(nn.add(x, b)), x)

    x, b = normal(3, 5), normal(5)
    assert_close(gate(x, b), x / (1 + np.exp(-(x + b))))
