"""Pools against windows cut out one by one in NumPy: padding, ceil_mode, adaptive windows."""

import itertools
import math

import numpy as np
import pytest

import tensorlang as tl
from tensorlang import nn
from tests.nn.agreement import check, normal

SIZES = {1: (11,), 2: (9, 11), 3: (5, 4, 7)}


def pooled(x, count, reduce, kernel, stride, padding, ceil=False):
    """Return ``reduce(elements, whole)`` of each window; ``whole`` counts the padding too."""
    sizes = x.shape[-count:]
    ranges = []
    for size in sizes:
        number = (size + 2 * padding - kernel) / stride
        number = (math.ceil(number) if ceil else math.floor(number)) + 1
        while ceil and (number - 1) * stride >= size + padding:
            number -= 1
        starts = [place * stride - padding for place in range(number)]
        ranges.append([(s, min(s + kernel, size + padding)) for s in starts])
    result = np.empty((*x.shape[:-count], *map(len, ranges)))
    for place in itertools.product(*[range(len(r)) for r in ranges]):
        bounds = [r[p] for r, p in zip(ranges, place, strict=True)]
        cut = tuple([slice(max(a, 0), b) for a, b in bounds])
        part = x[(..., *cut)].reshape(*x.shape[:-count], -1)
        result[(..., *place)] = reduce(part, math.prod([b - a for a, b in bounds]))
    return result.astype(x.dtype)


CASES = [(2, 2, 0, False), (3, 2, 1, False), (3, 2, 1, True), (2, 3, 0, True), (2, 4, 1, True)]


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("count", [1, 2, 3])
def test_the_definition_of_pools(count, case):
    kernel, stride, padding, ceil = case
    x = normal(2, *SIZES[count])
    options = {"kernel_size": kernel, "stride": stride, "padding": padding, "ceil_mode": ceil}
    greatest = pooled(x, count, lambda part, _: part.max(-1), *case)
    np.testing.assert_array_equal(
        getattr(nn, f"max_pool{count}d").reference(x, **options), greatest
    )
    means = getattr(nn, f"avg_pool{count}d").reference
    whole = pooled(x, count, lambda part, n: part.sum(-1) / n, *case)
    np.testing.assert_allclose(means(x, **options), whole, rtol=1e-5, atol=1e-6)
    inside = pooled(x, count, lambda part, _: part.mean(-1), *case)
    found = means(x, **options, count_include_pad=False)
    np.testing.assert_allclose(found, inside, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("case", CASES[1:3], ids=str)
@pytest.mark.parametrize("count", [1, 2])
def test_compiled_pools(count, case):
    kernel, stride, padding, ceil = case
    x = normal(2, *SIZES[count])
    options = {"kernel_size": kernel, "stride": stride, "padding": padding, "ceil_mode": ceil}
    greatest = pooled(x, count, lambda part, _: part.max(-1), *case)
    check(getattr(nn, f"max_pool{count}d"), greatest, x, **options)
    inside = pooled(x, count, lambda part, _: part.mean(-1), *case)
    check(getattr(nn, f"avg_pool{count}d"), inside, x, **options, count_include_pad=False)


def test_dilated_windows():
    x = normal(3, 11)
    wanted = np.maximum(np.maximum(x[:, 0:7:2], x[:, 2:9:2]), x[:, 4:11:2])
    check(nn.max_pool1d, wanted, x, kernel_size=3, stride=2, dilation=2)


def test_a_divisor_and_f16():
    x = (normal(3, 6, 8) * 200).astype("f2")
    sums = x.astype("f8").reshape(3, 3, 2, 2, 4).sum((2, 4))
    check(nn.avg_pool2d, (sums / 5).astype("f2"), x, kernel_size=(2, 4), divisor_override=5,
          rtol=2e-3)  # fmt: skip


def adaptive(x, count, outputs, reduce):
    sizes = x.shape[-count:]
    numbers = [s if n is None else n for n, s in zip(outputs, sizes, strict=True)]
    result = np.empty((*x.shape[:-count], *numbers))
    for place in itertools.product(*map(range, numbers)):
        cut = [
            slice(p * s // n, -(-(p + 1) * s // n))
            for p, s, n in zip(place, sizes, numbers, strict=True)
        ]
        part = x[(..., *cut)].reshape(*x.shape[:-count], -1)
        result[(..., *place)] = reduce(part, -1)
    return result.astype(x.dtype)


@pytest.mark.parametrize(
    ("count", "outputs"),
    [
        (1, (4,)),
        (1, (13,)),
        (2, (1, 1)),
        (2, (3, None)),
        (2, (7, 4)),
        (3, (2, 3, 5)),
        (3, (1, 1, 1)),
    ],
)
def test_adaptive_pools(count, outputs):
    x = normal(2, *SIZES[count])
    for kind, reduce in (("avg", np.mean), ("max", np.max)):
        operator = getattr(nn, f"adaptive_{kind}_pool{count}d")
        wanted = adaptive(x, count, outputs, reduce)
        found = operator.reference(x, output_size=outputs)
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)
        if count == 2 and kind == "avg":
            check(operator, wanted, x, output_size=outputs)
    assert nn.adaptive_max_pool1d.reference(x[:0], output_size=2).shape[-1] == 2


def test_mistakes():
    with pytest.raises(tl.DefinitionError, match="the padding must be at most half of the kernel"):
        nn.avg_pool1d(normal(4), kernel_size=2, padding=2)
    with pytest.raises(tl.DefinitionError, match="kernel_size must be an integer of at least 1"):
        nn.max_pool3d(normal(4, 4, 4), kernel_size=(2, 2))
    with pytest.raises(tl.DefinitionError, match="or 2 of them or of None"):
        nn.adaptive_avg_pool2d(normal(4, 4), output_size=(1, 2, 3))
