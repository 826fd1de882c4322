"""Attention against NumPy: masks, causal, rows for which nothing takes part."""

import numpy as np
import pytest

import tensorlang as tl
from tensorlang import nn
from tests.nn.agreement import check, normal


def attended(q, k, v, allowed=True, added=0.0, scale=None):
    scale = 1 / np.sqrt(q.shape[-1]) if scale is None else scale
    scores = (q.astype("f8") @ k.swapaxes(-1, -2).astype("f8")) * scale + added
    scores = np.where(allowed, scores, -np.inf)
    top = scores.max(-1, keepdims=True, initial=-1e300)
    e = np.exp(scores - top)
    total = e.sum(-1, keepdims=True)
    return np.where(total == 0, 0, e @ v / np.where(total == 0, 1, total)).astype(q.dtype)


SHAPES = [
    ((2, 3, 5, 8), 7, 4),
    ((5, 8), 5, 3),
    ((1, 1, 1), 1, 1),
    ((2, 0, 4), 3, 4),
    ((2, 3, 4), 0, 4),
]


@pytest.mark.parametrize(("shape", "keys", "width"), SHAPES, ids=str)
def test_attention(shape, keys, width):
    q = normal(*shape)
    k = normal(*shape[:-2], keys, shape[-1], seed=1)
    v = normal(*shape[:-2], keys, width, seed=2)
    before = np.tril(np.ones((shape[-2], keys), bool))
    mask = normal(*shape[:-1], keys, seed=3) > -0.5
    mask[..., :1, :] = False
    added = normal(shape[-2], keys, seed=4)
    cases = [
        ((q, k, v), {}, attended(q, k, v)),
        ((q, k, v), {"causal": True, "scale": 0.3}, attended(q, k, v, before, scale=0.3)),
        ((q, k, v, mask), {}, attended(q, k, v, mask)),
        ((q, k, v, added), {}, attended(q, k, v, added=added)),
    ]
    for args, attributes, wanted in cases:
        if len(shape) == 4 and len(args) + len(attributes) != 3 and args[-1] is not added:
            check(nn.attention, wanted, *args, **attributes)
        else:
            found = nn.attention.reference(*args, **attributes)
            np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=1e-5)


def test_f16():
    q, k, v = (normal(3, 7, 8, dtype="f2", seed=n) * 3 for n in range(3))
    wanted = attended(*[a.astype("f8") for a in (q, k, v)]).astype("f2")
    check(nn.attention, wanted, q, k, v, rtol=1e-2, atol=1e-2)


def test_mistakes():
    with pytest.raises(tl.DefinitionError, match="attention: q, k and v have shapes"):
        nn.attention(normal(2, 3), normal(1, 2, 3), normal(2, 3))
    with pytest.raises(ValueError, match="attention: k and v have the same number of rows"):
        nn.attention(normal(2, 3), normal(4, 3), normal(5, 3))
    with pytest.raises(tl.DefinitionError, match="mask holds bools or floats"):
        nn.attention(normal(2, 3), normal(4, 3), normal(4, 3), np.ones((2, 4), "i4"))
