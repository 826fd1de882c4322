"""Convolutions of one and three axes, and transposed ones, against sums written out in NumPy."""

import itertools

import numpy as np
import pytest

import tensorlang as tl
from tensorlang import nn
from tests.nn.agreement import check, normal

SIZES = {1: (11,), 2: (6, 5), 3: (4, 3, 5)}
KERNELS = {1: (3,), 2: (3, 2), 3: (2, 3, 1)}


def transposed(x, w, stride, padding, output_padding, dilation, groups):
    """Return the transposed convolution: each element of x adds a scaled copy of w."""
    sizes, windows = x.shape[2:], w.shape[2:]
    full = [(s - 1) * stride + dilation * (k - 1) + 1 for s, k in zip(sizes, windows, strict=True)]
    share, depth = w.shape[1], x.shape[1] // groups
    result = np.zeros((x.shape[0], share * groups, *[n + output_padding for n in full]))
    for c in range(x.shape[1]):
        group = c // depth
        for j in itertools.product(*map(range, windows)):
            cut = tuple(
                [
                    slice(p * dilation, p * dilation + (s - 1) * stride + 1, stride)
                    for p, s in zip(j, sizes, strict=True)
                ]
            )
            part = result[(slice(None), slice(group * share, (group + 1) * share), *cut)]
            scale = w[(c, slice(None), *j)].reshape(1, -1, *[1] * len(sizes))
            part += x[:, c : c + 1] * scale
    cut = tuple([slice(padding, n + output_padding - padding) for n in full])
    return result[(slice(None), slice(None), *cut)].astype(x.dtype)


def correlated(x, w, margins, dilation, groups):
    """Return the correlation of stride 1 with zeros around."""
    x = np.pad(x, [(0, 0), (0, 0), *margins])
    windows, share, depth = w.shape[2:], w.shape[0] // groups, w.shape[1]
    sizes = [n - dilation * (k - 1) for n, k in zip(x.shape[2:], windows, strict=True)]
    result = np.zeros((x.shape[0], w.shape[0], *sizes))
    for o in range(w.shape[0]):
        group = o // share
        for j in itertools.product(*map(range, windows)):
            cut = tuple(
                [slice(p * dilation, p * dilation + n) for p, n in zip(j, sizes, strict=True)]
            )
            part = x[(slice(None), slice(group * depth, (group + 1) * depth), *cut)]
            result[:, o] += np.tensordot(part, w[(o, slice(None), *j)], ((1,), (0,)))
    return result.astype(x.dtype)


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize(("groups", "dilation", "padding"), [(1, 1, 0), (2, 1, 1), (1, 2, 2)])
def test_convolutions(count, groups, dilation, padding):
    x, w, b = normal(2, 4, *SIZES[count]), normal(6, 4 // groups, *KERNELS[count]), normal(6)
    operator = nn.conv1d if count == 1 else nn.conv3d
    options = {"groups": groups, "dilation": dilation, "padding": padding}
    plain = correlated(x, w, [(padding, padding)] * count, dilation, groups)
    wanted = plain + b.reshape(-1, *[1] * count)
    np.testing.assert_allclose(operator.reference(x, w, b, **options), wanted, rtol=1e-4, atol=1e-4)
    if count == 1 or groups == 2:
        check(operator, wanted, x, w, b, **options, rtol=1e-4, atol=1e-4)
    strided = operator.reference(x[0], w, stride=2, **options)
    every_other = (0, slice(None), *[slice(None, None, 2)] * count)
    np.testing.assert_allclose(strided, plain[every_other], rtol=1e-4, atol=1e-4)
    assert operator.reference(x[:0], w, b, **options).shape == (0, *wanted.shape[1:])


@pytest.mark.parametrize("count", [1, 2, 3])
def test_as_many_results_as_elements(count):
    x, w = normal(2, 4, *SIZES[count]), normal(6, 4, *KERNELS[count])
    operator = getattr(nn, f"conv{count}d")
    totals = [2 * (k - 1) for k in KERNELS[count]]
    margins = [(total // 2, total - total // 2) for total in totals]
    wanted = correlated(x, w, margins, 2, 1)
    found = operator.reference(x, w, padding="same", dilation=2)
    assert found.shape == (2, 6, *SIZES[count])
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)
    with pytest.raises(tl.DefinitionError, match='padding="same" needs a stride of 1'):
        operator(x, w, padding="same", stride=2)


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("case", [(1, 0, 0, 1, 1), (2, 1, 1, 1, 2), (2, 1, 0, 2, 1)], ids=str)
def test_transposed_convolutions(count, case):
    names = ("stride", "padding", "output_padding", "dilation", "groups")
    options = dict(zip(names, case, strict=True))
    x = normal(2, 4, *SIZES[count])
    w, b = normal(4, 6 // case[-1], *KERNELS[count]), normal(6)
    operator = getattr(nn, f"conv_transpose{count}d")
    wanted = transposed(x, w, *case) + b.reshape(-1, *[1] * count)
    found = operator.reference(x, w, b, **options)
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)
    if count == 2:
        check(operator, wanted, x, w, b, **options, rtol=1e-4, atol=1e-4)


def test_mistakes():
    with pytest.raises(tl.DefinitionError, match="conv1d: x has shape"):
        nn.conv1d(normal(3), normal(1, 1, 1))
    with pytest.raises(tl.DefinitionError, match="output_padding must be less than the stride"):
        nn.conv_transpose1d(normal(1, 1, 3), normal(1, 1, 1), output_padding=1)
    with pytest.raises(ValueError, match="conv_transpose2d: x and w have the same channels"):
        nn.conv_transpose2d(normal(1, 2, 3, 3), normal(3, 1, 1, 1))
