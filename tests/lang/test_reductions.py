"""Reductions, custom reductions and scans, against NumPy on sizes that include 0 and 1."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import tensorlang as tl

M, N = tl.dims("M N")
SHAPES = hnp.array_shapes(min_dims=2, max_dims=2, min_side=0, max_side=7)
VALUES = st.sampled_from([0.0, -0.0, 1.5, -2.0, np.inf, -np.inf, np.nan, 3.0])


def arrays(dtype, elements=None):
    return SHAPES.flatmap(lambda shape: hnp.arrays(dtype, shape, elements=elements))


@tl.compute
def extremes(x: tl.f64[M, N]):
    high = tl.tensor(tl.max(x[i, j] for j in N) for i in M)
    low = tl.tensor(tl.min(x[i, j] for j in N) for i in M)
    return high, low


@settings(max_examples=40, deadline=None)
@given(arrays(np.float64, VALUES))
def test_max_and_min_propagate_nan_and_have_identities(x):
    high, low = extremes.reference(x)
    np.testing.assert_array_equal(high, x.max(axis=1, initial=-np.inf))
    np.testing.assert_array_equal(low, x.min(axis=1, initial=np.inf))


@tl.compute
def positions(x: tl.f64[M, N]):
    best = tl.tensor(tl.argmax(x[i, j] for j in N) for i in M)
    worst = tl.tensor(tl.argmin(x[i, j] for j in N) for i in M)
    return best, worst, tl.argmax(x[i, j] for i in M for j in N)


@settings(max_examples=60, deadline=None)
@given(arrays(np.float64, VALUES).filter(lambda x: x.size))
def test_argmax_and_argmin_take_the_first_and_nan(x):
    best, worst, flat = positions.reference(x)
    np.testing.assert_array_equal(best, np.argmax(x, axis=1))
    np.testing.assert_array_equal(worst, np.argmin(x, axis=1))
    assert int(flat) == np.argmax(x)
    assert best.dtype == worst.dtype == flat.dtype == np.int64


def test_argmax_of_nothing():
    @tl.compute
    def best(x: tl.f32[M, N]):
        return tl.tensor(tl.argmax(x[i, j] for j in N) for i in M)

    assert best.reference(np.zeros((0, 0), "f")).shape == (0,)
    with pytest.raises(ValueError, match="argmax needs at least one element: N must not be 0"):
        best.reference(np.zeros((2, 0), "f"))


@settings(max_examples=40, deadline=None)
@given(arrays(np.int8))
def test_integers_wrap_and_bools_count(x):
    @tl.compute
    def counted(x: tl.i8[M, N]):
        return (
            tl.tensor(tl.sum(x[i, j] for j in N) for i in M),
            tl.tensor(tl.prod(x[i, j] for j in N) for i in M),
            tl.tensor(tl.sum((x[i, j] for j in N), dtype=tl.i32) for i in M),
            tl.tensor(tl.sum(x[i, j] > 0 for j in N) for i in M),
            tl.tensor(tl.all(x[i, j] > 0 for j in N) for i in M),
            tl.tensor(tl.any(x[i, j] for j in N) for i in M),
        )

    total, product, wide, positive, every, some = counted.reference(x)
    np.testing.assert_array_equal(total, x.sum(axis=1, dtype=np.int8))
    np.testing.assert_array_equal(product, x.prod(axis=1, dtype=np.int8))
    np.testing.assert_array_equal(wide, x.sum(axis=1, dtype=np.int32))
    np.testing.assert_array_equal(positive, (x > 0).sum(axis=1))
    np.testing.assert_array_equal(every, (x > 0).all(axis=1))
    np.testing.assert_array_equal(some, x.any(axis=1))
    dtypes = [part.dtype for part in (total, product, wide, positive, every, some)]
    assert dtypes == [np.int8, np.int8, np.int32, np.int64, np.bool_, np.bool_]


def test_sums_do_not_need_memory_for_all_points():
    @tl.compute
    def matmul(A: tl.f64[M, N], B: tl.f64[N, M]):
        return tl.tensor(tl.sum(A[i, k] * B[k, j] for k in N) for i in M for j in M)

    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(90, 131)), rng.normal(size=(131, 90))
    np.testing.assert_allclose(matmul.reference(a, b), a @ b, rtol=1e-12, atol=1e-12)

    @tl.compute
    def total(x: tl.f64[N]):
        return tl.sum(x[i] for i in N)

    x = rng.normal(size=1_000_003)
    np.testing.assert_allclose(total.reference(x), x.sum(), rtol=1e-11)


def welford(a, b):
    n = a[0] + b[0]
    safe = tl.where(n > 0, n, 1)
    delta = b[1] - a[1]
    return n, a[1] + delta * b[0] / safe, a[2] + b[2] + delta * delta * a[0] * b[0] / safe


@tl.compute
def moments(x: tl.f64[M, N]):
    n, mean, m2 = tl.tensor(
        tl.reduce(welford, (0, 0, 0), ((1.0, x[i, j], 0.0) for j in N)) for i in M
    )
    return n, mean, m2


@settings(max_examples=30, deadline=None)
@given(arrays(np.float64, st.floats(-100, 100)))
def test_tuple_states(x):
    (stage,) = moments.definition().stages
    assert [tensor.name for tensor in stage.tensors] == ["n", "mean", "m2"]
    count, mean, m2 = moments.reference(x)
    np.testing.assert_array_equal(count, np.full(x.shape[0], x.shape[1]))
    expected = x.mean(axis=1) if x.shape[1] else np.zeros(x.shape[0])
    np.testing.assert_allclose(mean, expected, atol=1e-9)
    np.testing.assert_allclose(m2, ((x - mean[:, None]) ** 2).sum(axis=1), atol=1e-7)


def test_states_used_in_expressions():
    @tl.compute
    def deviation(x: tl.f64[N]):
        n, _, m2 = tl.reduce(welford, (0, 0, 0), ((1.0, x[i], 0.0) for i in N))
        return tl.sqrt(m2 / n)

    x = np.random.default_rng(0).normal(size=11)
    np.testing.assert_allclose(deviation.reference(x), x.std())
    assert [len(stage.tensors) for stage in deviation.definition().stages] == [3, 1]


def test_ordered_reductions_keep_the_order():
    """Horner's rule: neither associative nor commutative, and begun with the leading term."""

    @tl.compute
    def polynomial(c: tl.f64[N], x: tl.f64):
        y, _ = tl.reduce(
            lambda a, b: (a[0] * b[1] + b[0], b[1]), (0, 0), ((c[i], x) for i in N), ordered=True
        )
        return y

    c = np.array([2.0, -1.0, 3.0])
    np.testing.assert_allclose(polynomial.reference(c, 1.5), np.polyval(c, 1.5))
    combiner = polynomial.definition().stages[0].combiner
    assert combiner is not None
    assert combiner.ordered


def test_ordered_reductions_skip_points_outside_the_range():
    @tl.compute
    def last(x: tl.i64[N]):
        return tl.tensor(
            tl.reduce(lambda a, b: b, -7, (x[j] for j in tl.range(i)), ordered=True) for i in N
        )

    np.testing.assert_array_equal(last.reference(np.array([3, 4, 5])), [-7, 3, 4])


@tl.compute
def scans(x: tl.i64[M, N]):
    def add(a, b):
        return a + b

    return (
        tl.tensor(tl.scan(add, 0, (x[i, j] for j in N)) for i in M),
        tl.tensor(tl.scan(add, 0, (x[i, j] for j in N), exclusive=True) for i in M),
        tl.tensor(tl.scan(add, 0, (x[i, j] for j in N), reverse=True) for i in M),
        tl.tensor(tl.scan(add, 0, (x[i, j] for j in N), reverse=True, exclusive=True) for i in M),
    )


@settings(max_examples=40, deadline=None)
@given(arrays(np.int64, st.integers(-9, 9)))
def test_scans(x):
    forward, before, backward, after = scans.reference(x)
    np.testing.assert_array_equal(forward, np.cumsum(x, axis=1))
    np.testing.assert_array_equal(before, np.cumsum(x, axis=1) - x)
    np.testing.assert_array_equal(backward, np.cumsum(x[:, ::-1], axis=1)[:, ::-1])
    np.testing.assert_array_equal(after, np.cumsum(x[:, ::-1], axis=1)[:, ::-1] - x)


def test_scan_is_a_recurrence_and_needs_no_associativity():
    @tl.compute
    def smooth(x: tl.f64[N]):
        y = tl.scan(lambda y, x: 0.5 * y + x, 0, (x[i] for i in N))
        return y

    (stage,) = smooth.definition().stages
    assert stage.is_recurrence
    assert stage.name == "y"
    np.testing.assert_allclose(smooth.reference(np.ones(4)), [1, 1.5, 1.75, 1.875])


def test_scan_must_be_the_whole_body():
    def shifted(x: tl.f64[M, N]):
        return tl.tensor(tl.scan(tl.maximum, 0, (x[i, j] for j in N)) + 1 for i in M)

    with pytest.raises(tl.DefinitionError, match=r"tl\.scan is part of an expression"):
        tl.compute(shifted).definition()


def test_scan_of_tuples():
    @tl.compute
    def running(x: tl.f64[N]):
        low, high = tl.scan(
            lambda a, b: (tl.minimum(a[0], b[0]), tl.maximum(a[1], b[1])),
            (tl.inf, -tl.inf),
            ((x[i], x[i]) for i in N),
        )
        return low, high

    x = np.array([3.0, 1.0, 4.0])
    low, high = running.reference(x)
    np.testing.assert_array_equal(low, np.minimum.accumulate(x))
    np.testing.assert_array_equal(high, np.maximum.accumulate(x))


def test_scan_in_half_precision_rounds_once_at_the_end():
    @tl.compute
    def running(x: tl.f16[N]):
        return tl.scan(lambda a, b: a + b, 0, (x[i] for i in N))

    x = np.full(2100, 1, np.float16)  # f16 alone would stop at 2048
    assert running.reference(x)[-1] == 2100
    assert [stage.name for stage in running.definition().stages] == ["running.acc", "running"]


def test_literal_floats_of_a_state_have_the_type_of_the_floats_beside_them():
    @tl.compute
    def moments(x: tl.f32[N]):
        count, total, last = tl.reduce(
            lambda a, b: (a[0] + b[0], a[1] + b[1], tl.maximum(a[2], b[2])),
            (0.0, 0.0, 0),
            ((1.0, x[i], i) for i in N),
        )
        return count, total, last

    results = moments.reference(np.float32([1, 2, 4]))
    assert [float(result) for result in results] == [3, 7, 2]
    assert [result.dtype for result in results] == [np.float32, np.float32, np.int64]
