"""Chains of choices: the code is as long as the chain, and each load happens where it may."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorlang as tl

N = tl.dim("N")
LANES = 8

STEPS = {
    "data": lambda x, i, k, e: tl.where(x[i + k] > k, e + 1, e),
    "index": lambda x, i, k, e: tl.where(i > k, e + 1, e),
    "lazy": lambda x, i, k, e: tl.where(i + 2 * k < N, e + x[i + 2 * k], e - 1),
    "both": lambda x, i, k, e: tl.where(x[i] > k, x[i + k] + e, e * 0.5),
    "twice": lambda x, i, k, e: (e + e) * 0.5,
    "apart": lambda x, i, k, e: tl.where(i > k, tl.where(x[i] > k, e + 1, x[i - k]), e),
}
"""``apart``: of what the branches share, no part runs in any case."""


def chain(kinds):
    @tl.compute
    def steps(x: tl.f64[N]):
        def value(i):
            e = x[i]
            for k, kind in enumerate(kinds):
                e = STEPS[kind](x, i, k, e)
            return e

        return tl.tensor(value(i) for i in N - len(kinds))

    return steps


def vectorized(operator):
    s = tl.schedule(operator)
    s.vectorize(s.split(s.loops[0], LANES)[1])
    return tl.compile(s)


@settings(max_examples=15)
@given(st.lists(st.sampled_from(sorted(STEPS)), max_size=5), st.integers(0, 30))
def test_chains_compute_what_is_written(kinds, extra):
    operator = chain(kinds)
    x = np.arange(len(kinds) + extra, dtype=np.float64) * 7 % 11 - 3
    expected = operator.reference(x)
    np.testing.assert_array_equal(tl.compile(tl.schedule(operator))(x), expected)
    np.testing.assert_array_equal(vectorized(operator)(x), expected)


@pytest.mark.parametrize("kind", sorted(set(STEPS) - {"apart"}))
def test_the_code_grows_with_the_chain_not_with_its_paths(kind):
    lengths = []
    for count in (20, 40):
        function = vectorized(chain([kind] * count))
        x = np.arange(100.0) * 7 % 31 - 3
        np.testing.assert_array_equal(function(x), chain([kind] * count).reference(x))
        lengths.append(len(function.source("llvm")))
    assert lengths[1] < 3 * lengths[0]


def test_what_would_grow_without_end_is_refused():
    with pytest.raises(tl.CompileError, match=r"what they share a stage of its own, a tl\.tensor"):
        vectorized(chain(["apart"] * 30))
