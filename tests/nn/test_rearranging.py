"""Rearrangements, padding, joining, scans and tables against NumPy."""

import numpy as np
import pytest

import tensorlang as tl
from tensorlang import nn
from tests.nn.agreement import check, normal


def agrees(operator, expected, *args, **attributes):
    """Check the definition alone: most rearrangements are one gather, compiled alike."""
    found = operator.reference(*args, **attributes)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("shape", [(4, 6), (-1,), (2, -1, 2), (24,), (1, 24, 1)], ids=str)
def test_reshape(shape):
    x = normal(2, 3, 4)
    agrees(nn.reshape, x.reshape(shape), x, shape=shape)
    if -1 not in shape:
        check(nn.reshape, x.reshape(shape), x, shape=shape)


def test_reshape_of_no_elements_and_of_no_axes():
    agrees(nn.reshape, normal(3, 0).reshape(0, 5), normal(3, 0), shape=(0, 5))
    agrees(nn.reshape, normal(1, 1).reshape(()), normal(1, 1), shape=())
    agrees(nn.reshape, normal().reshape(1, 1), normal(), shape=(1, 1))


def test_reshape_to_another_number_of_elements():
    with pytest.raises(ValueError, match=r"x does not have as many elements as \(5, -1\)"):
        nn.reshape(normal(2, 3), shape=(5, -1))
    with pytest.raises(tl.DefinitionError, match="is not determined beside a 0"):
        nn.reshape(normal(0, 3), shape=(0, -1))


@pytest.mark.parametrize("sizes", [(2, 4), (-1, 2), (8,), (2, 2, -1)], ids=str)
def test_unflatten(sizes):
    x = normal(3, 8, 5)
    agrees(nn.unflatten, x.reshape(3, *sizes, 5), x, axis=1, sizes=sizes)


@pytest.mark.parametrize("x", [normal(1, 3, 4), normal(1, 0, 2), np.arange(5).reshape(1, 5, 1)])
def test_axes(x):
    agrees(nn.permute, x.transpose(2, 0, 1), x, axes=(2, 0, -2))
    agrees(nn.squeeze, x[0], x, axis=0)
    agrees(nn.unsqueeze, x[..., None], x, axis=-1)
    agrees(nn.flip, np.flip(x, (0, 2)), x, axis=(0, -1))
    agrees(nn.tile, np.tile(x, (2, 1, 3)), x, reps=(2, 1, 3))
    agrees(nn.tile, np.tile(x, (2, 1, 1, 2)), x, reps=(2, 1, 1, 2))
    agrees(nn.repeat_interleave, x.repeat(3, 1), x, repeats=3, axis=1)
    agrees(nn.tril, np.tril(x, -1), x, diagonal=-1)
    agrees(nn.triu, np.triu(x, 1), x, diagonal=1)
    for shift in (0, 1, -1, 7, -9):
        agrees(nn.roll, np.roll(x, shift, 1), x, shifts=shift, axis=1)


def test_compiled_rearrangements():
    x = normal(5, 7)
    check(nn.roll, np.roll(x, (2, -3), (0, 1)), x, shifts=(2, -3), axis=(0, 1))
    check(nn.tile, np.tile(x, (2, 3)), x, reps=(2, 3))
    check(nn.flip, x[::-1], x, axis=0)
    check(nn.tril, np.tril(x), x)


def test_squeeze_of_an_axis_of_several_elements():
    with pytest.raises(ValueError, match="squeeze: axis 1 must have one element"):
        nn.squeeze(normal(1, 2), axis=1)


def test_pixels():
    x = normal(2, 18, 4, 5)
    wanted = x.reshape(2, 2, 3, 3, 4, 5).transpose(0, 1, 4, 2, 5, 3).reshape(2, 2, 12, 15)
    check(nn.pixel_shuffle, wanted, x, upscale_factor=3)
    agrees(nn.pixel_unshuffle, x, wanted, downscale_factor=3)
    with pytest.raises(ValueError, match=r"pixel_shuffle: r \* r must divide the channels"):
        nn.pixel_shuffle(x, upscale_factor=4)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_scans(axis):
    x = normal(3, 5)
    np.testing.assert_allclose(nn.cumprod.reference(x, axis=axis), x.cumprod(axis), rtol=1e-5)
    check(nn.cumsum, x.cumsum(axis), x, axis=axis)
    integers = np.arange(6, dtype="i4").reshape(2, 3)
    agrees(nn.cumsum, integers.cumsum(axis, dtype="i8"), integers, axis=axis)
    agrees(nn.cumsum, np.zeros((0, 3)), np.zeros((0, 3)), axis=axis)


MODES = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}


@pytest.mark.parametrize("mode", MODES)
def test_pad(mode):
    for shape, amounts in [((2, 3, 5), (2, 1)), ((3, 5, 4), (1, 3, 4, 0)), ((0, 5), (1, 2))]:
        x = normal(*shape)
        pairs = list(zip(amounts[::2], amounts[1::2], strict=True))[::-1]
        wanted = np.pad(x, [(0, 0)] * (x.ndim - len(pairs)) + pairs, mode=MODES[mode])
        agrees(nn.pad, wanted, x, pad=amounts, mode=mode)
        if len(pairs) == 2:
            check(nn.pad, wanted, x, pad=amounts, mode=mode)
    cut = np.pad(x[:, 1:], [(0, 0), (0, 2)], mode=MODES[mode])
    agrees(nn.pad, cut, x, pad=(-1, 2), mode=mode)


def test_pad_with_a_value():
    agrees(nn.pad, np.array([9, 0, 1, 2]), np.arange(3), pad=(1, 0), value=9)


@pytest.mark.parametrize(
    ("mode", "amounts", "message"),
    [("reflect", (0, 3), "reflect needs an axis of more than 3 elements"),
     ("circular", (4, 0), "circular needs an axis of at least 4 elements"),
     ("mirror", (1, 1), "mode is constant, reflect, replicate or circular, not 'mirror'"),
     ("reflect", (1,), "pad holds pairs")],
)  # fmt: skip
def test_paddings_that_are_refused(mode, amounts, message):
    with pytest.raises((ValueError, TypeError), match=message):
        nn.pad(normal(3), pad=amounts, mode=mode)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_concat_and_split(axis):
    parts = [normal(*np.insert([3, 4], axis % 3, n)) for n in (2, 0, 5)]
    whole = np.concatenate(parts, axis)
    np.testing.assert_array_equal(nn.concat(parts, axis=axis), whole)
    for found, wanted in zip(nn.split(whole, [2, 0, 5], axis=axis), parts, strict=True):
        np.testing.assert_array_equal(found, wanted)
    for found, wanted in zip(
        nn.chunk(whole, 3, axis=axis), np.split(whole, [3, 6], axis), strict=True
    ):
        np.testing.assert_array_equal(found, wanted)


def test_stack():
    rows = [normal(2, 3, seed=n) for n in range(3)]
    for axis in (0, -1):
        np.testing.assert_array_equal(nn.stack(rows, axis=axis), np.stack(rows, axis))


def test_joining_what_does_not_fit():
    with pytest.raises(ValueError, match="concat: axis 1 of all tensors must be equal"):
        nn.concat([normal(2, 3), normal(2, 4)])
    with pytest.raises(tl.DefinitionError, match="the same rank and dtype"):
        nn.stack([normal(2), normal(2, dtype="f8")])
    with pytest.raises(tl.DefinitionError, match=r"the parts \[1, 1\] do not add up to axis 0, 3"):
        nn.split(normal(3), [1, 1])


def test_tables():
    w, places = normal(5, 3), np.array([[1, 2], [4, 0]])
    check(nn.embedding, w[places], places, w)
    assert nn.embedding.reference(places[:0], w).shape == (0, 2, 3)
    check(nn.one_hot, np.eye(5, dtype="i8")[places], places, num_classes=5)
    with pytest.raises(IndexError):
        nn.embedding(places + 1, w)


@pytest.mark.parametrize(
    ("a", "b"),
    [((1, 3, 4), (2, 4, 2)), ((2, 1, 3, 4), (5, 4, 2)), ((3, 4), (7, 4, 2)), ((0, 3, 4), (1, 4, 2)),
     ((1, 1, 4), (4,)), ((1, 3, 4), (1, 4, 2))],
)  # fmt: skip
def test_matmul_broadcasts(a, b):
    a, b = normal(*a), normal(*b)
    for _ in range(3):  # the third call of a kind runs without Python
        np.testing.assert_allclose(nn.matmul(a, b), a @ b, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(nn.matmul.reference(a, b), a @ b, rtol=1e-4, atol=1e-5)


def test_bmm():
    a, b = normal(3, 4, 5), normal(3, 5, 2)
    check(nn.bmm, a @ b, a, b)
    with pytest.raises(ValueError, match="bmm: a and b have as many matrices"):
        nn.bmm(a, b[:1])


def test_where_broadcasts():
    condition = normal(3, 4) > 0
    for shapes in [((3, 4), (3, 4)), ((1, 4), (3, 1)), ((), (5, 1, 1))]:
        a, b = normal(*shapes[0], seed=1), normal(*shapes[1], seed=2)
        np.testing.assert_array_equal(nn.where(condition, a, b), np.where(condition, a, b))


def test_operators_in_a_graph():
    B = tl.dim("B")

    @tl.graph
    def block(x: tl.f32[B, 4, 6], w: tl.f32[1, 6, 5]):
        left, right = nn.split(nn.matmul(x, w), [2, 3], axis=2)
        joined = nn.concat([right, left], axis=2)
        return nn.where(joined > 0, joined, joined - nn.mean(joined, axis=1, keepdim=True))

    for rows in (1, 3):
        x, w = normal(rows, 4, 6), normal(1, 6, 5)
        y = np.roll(x @ w, 3, 2)
        wanted = np.where(y > 0, y, y - y.mean(1, keepdims=True))
        np.testing.assert_allclose(block(x, w), wanted, rtol=1e-4, atol=1e-5)
