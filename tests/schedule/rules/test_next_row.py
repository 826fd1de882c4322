"""Chains over rows: which rows are asked for ahead, and that results do not depend on it."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorlang as tl

M, N = tl.dims("M N")


@tl.compute
def softmax(X: tl.f32[M, N]):
    top = tl.tensor(tl.max(X[i, j] for j in N) for i in M)
    e = tl.tensor(tl.exp(X[i, j] - top[i]) for i in M for j in N)
    total = tl.tensor(tl.sum(e[i, j] for j in N) for i in M)
    return tl.tensor(e[i, j] / total[i] for i in M for j in N)


@tl.compute
def centred(X: tl.f32[M, N], weight: tl.f32[N]):
    mean = tl.tensor(tl.sum(X[i, j] for j in N) / N for i in M)
    return tl.tensor((X[i, j] - mean[i]) * weight[j] for i in M for j in N)


def prefetches(op):
    text = str(tl.schedule(op).default())
    return [line.strip() for line in text.splitlines() if line.strip().startswith("prefetch")]


def test_the_last_map_that_reads_the_row_asks_for_the_next_one():
    lines = str(tl.schedule(softmax).default()).splitlines()
    asked = next(n for n, line in enumerate(lines) if "prefetch X[i + 1" in line)
    assert any("exp(" in line for line in lines[asked : asked + 3])


def test_what_all_rows_share_is_not_asked_for():
    result, line = prefetches(centred)
    assert line.startswith("prefetch X[i + 1,")
    assert result.startswith("prefetch centred[i + 1,")


def test_the_result_is_asked_for_where_it_is_written():
    lines = str(tl.schedule(softmax).default()).splitlines()
    asked = next(n for n, line in enumerate(lines) if "prefetch softmax[i + 1" in line)
    assert any("softmax[i, " in line for line in lines[asked + 1 : asked + 3])


def test_it_is_proved():
    assert tl.schedule(softmax).default().verify().ok


@given(rows=st.integers(0, 9), columns=st.sampled_from([1, 15, 16, 17, 63, 64, 65, 300]))
@settings(max_examples=25, deadline=None)
def test_rows_of_awkward_lengths(rows, columns):
    X = np.random.default_rng(rows).standard_normal((rows, columns), dtype=np.float32)
    weight = np.arange(columns, dtype=np.float32)
    e = np.exp(X.astype(float) - X.max(1, keepdims=True, initial=-np.inf))
    np.testing.assert_allclose(softmax(X), e / e.sum(1, keepdims=True), rtol=1e-5, atol=1e-7)
    expected = (X - X.mean(1, keepdims=True, dtype=float)) * weight
    np.testing.assert_allclose(centred(X, weight), expected, rtol=1e-4, atol=1e-3)
