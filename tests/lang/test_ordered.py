"""Ordered reductions: whatever the schedule, bit for bit what a loop in plain Python computes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorlang as tl
import tensorlang.testing as tlt

M, N, K = tl.dims("M N K")


@tl.compute
def dot_rows(x: tl.f32[M, N, K], y: tl.f32[N, K]):
    return tl.tensor(tl.sum((x[i, j, k] * y[j, k] for j in N for k in K), ordered=True) for i in M)


@tl.compute
def total(x: tl.f32[N]):
    return tl.sum((x[i] * x[i] for i in N), ordered=True)


@tl.compute
def alternating(x: tl.f32[M, N]):
    return tl.tensor(
        tl.reduce(lambda a, b: b - a * 0.75, 1.0, (x[i, j] for j in N), ordered=True) for i in M
    )


def in_order(x: Any, y: Any) -> Any:
    result = np.zeros(x.shape[0], np.float32)
    for place in range(x.shape[0]):
        state = np.float32(0)
        for a, b in zip(x[place].ravel(), y.ravel(), strict=True):
            state = state + a * b
        result[place] = state
    return result


def drawn(shape: tuple[int, ...], seed: int) -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


@settings(max_examples=12, deadline=None)
@given(tlt.schedules(dot_rows), st.integers(0, 40), st.integers(0, 9))
def test_any_schedule_keeps_the_order(s: tl.Schedule, columns: int, seed: int) -> None:
    x, y = drawn((3, 4, columns), seed), drawn((4, columns), seed + 1)
    np.testing.assert_array_equal(tl.compile(s)(x, y), in_order(x, y))


@pytest.mark.parametrize("count", [0, 1, 7, 1000, 5000])
def test_the_default_schedule_keeps_the_order(count: int) -> None:
    x, y = drawn((2, 1, count), 1), drawn((1, count), 2)
    for result in (dot_rows(x, y), dot_rows.reference(x, y)):
        np.testing.assert_array_equal(result, in_order(x, y))
    fast = tl.compile(dot_rows, fast_math=True)
    np.testing.assert_array_equal(fast(x, y), in_order(x, y))
    assert total(x[0, 0]) == in_order(x[:1], x[0])[0]
    state = np.ones(2, np.float32)
    for column in x[:, 0].T:
        state = column - state * np.float32(0.75)
    np.testing.assert_array_equal(alternating(x[:, 0]), state)


@pytest.mark.parametrize(
    "step",
    [
        lambda s: s.reorder("k", "j"),
        lambda s: s.rfactor("k"),
        lambda s: s.parallel("j"),
        lambda s: s.vectorize(s.split("k", 4)[1]),
        lambda s: s.reorder(s.split("k", 4)[1], "k.o"),
    ],
)
def test_what_would_change_the_order_is_refused(step: Any) -> None:
    s = tl.schedule(dot_rows)
    with pytest.raises(tl.ScheduleError):
        step(s)


def test_it_prints_as_ordered() -> None:
    assert "sum(x[i, j, k] * y[j, k] for j < N, k < K, ordered)" in str(dot_rows)
