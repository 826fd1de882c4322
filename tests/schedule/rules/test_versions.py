"""Versions of default schedules: which calls want which, and that each call is right."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorlang as tl
from tensorlang.driver import versions
from tensorlang.schedule.rules import choice

M, N, K = tl.dims("M N K")


@tl.compute
def product(A: tl.f32[M, K], B: tl.f32[K, N]):
    return tl.tensor(tl.sum(A[i, k] * B[k, j] for k in K) for i in M for j in N)


@tl.compute
def layer(A: tl.f32[M, K], B: tl.f32[K, N], bias: tl.f32[N]):
    total = tl.tensor(tl.sum(A[i, k] * B[k, j] for k in K) for i in M for j in N)
    return tl.tensor(tl.maximum(total[i, j] + bias[j], 0) for i in M for j in N)


@tl.compute
def linear(A: tl.f32[M, K], W: tl.f32[N, K], bias: tl.f32[N]):
    total = tl.tensor(tl.sum(A[i, k] * W[j, k] for k in K) for i in M for j in N)
    return tl.tensor(tl.maximum(total[i, j] + bias[j], 0) for i in M for j in N)


def assumptions(schedule):
    return [str(step.arguments[0]) for step in schedule.trace if step.name == "assume"]


SIZES = [
    {"M": 1, "N": 1000, "K": 1000},
    {"M": 7, "N": 1000, "K": 1000},
    {"M": 31, "N": 1009, "K": 2039},
    {"M": 1000, "N": 100, "K": 300},
    {"M": 255, "N": 257, "K": 100_000},
]


def test_the_versions_of_a_product():
    found = [assumptions(tl.schedule(product).default(sizes=sizes)) for sizes in SIZES]
    assert found == [["M <= 1"], ["M <= 8"], ["M <= 32"], [], []]
    tall, deep = [str(tl.schedule(product).default(sizes=sizes)) for sizes in SIZES[3:]]
    assert "f32[K," in tall
    assert "for k.o in" in deep


def test_sizes_must_be_complete():
    with pytest.raises(tl.ScheduleError, match=r"sizes= lacks K\b[^$]*give every symbolic size"):
        tl.schedule(product).default(sizes={"M": 1, "N": 2})


def test_fixed_sizes_need_no_version():
    sizes = {"M": 4, "N": 8, "K": 2}
    schedule = tl.schedule(product, **sizes)
    assert str(schedule.default(sizes={})) == str(tl.schedule(product, **sizes).default())


@pytest.mark.parametrize("operator", [product, layer, linear])
@pytest.mark.parametrize("sizes", SIZES)
def test_each_is_proved(operator, sizes):
    assert tl.schedule(operator).default(sizes=sizes).verify().ok
    fixed = tl.schedule(operator, M=5, N=1000, K=100).default()
    assert fixed.verify().ok


def test_long_calls_have_versions_and_short_ones_share_one():
    f = tl.compile(product, opt_level=1)
    assert len(f.report.versions) == 1
    for m in (3, 4, 5):
        f(np.ones((m, 7), np.float32), np.ones((7, 9), np.float32))
    assert len(f.report.versions) == 1
    long = np.ones((2000, 2000), np.float32)
    for m in (1, 31, 32, 1000):
        f(np.ones((m, 2000), np.float32), long)
    assert [version.choice.split(", ")[0] for version in f.report.versions[1:3]] == [
        "M <= 1",
        "M <= 32",
    ]
    assert "for M <= 1, tiles of 1 rows" in str(f.report)
    assert f.source("schedule").count("def product(") == len(f.report.versions)


def test_few_rows_are_not_packed_and_read_in_long_runs():
    text = str(tl.schedule(product, M=8, N=4096, K=4096).default())
    assert "B.local" not in text
    assert "prefetch B[" in text


def test_a_panel_that_outgrows_level_2_is_cut():
    text = str(tl.schedule(product, M=512, N=512, K=1_000_000).default())
    assert "for k.o in" in text


def test_the_rules_use_what_is_assumed():
    schedule = tl.schedule(product)
    schedule.assume(M <= 4)
    text = str(schedule.default())
    assert "B.local" not in text
    with pytest.raises(tl.ScheduleError, match="the schedule has steps already"):
        schedule.default()


@pytest.fixture(scope="module")
def compiled():
    return {
        operator.name: tl.compile(operator, opt_level=1) for operator in (product, layer, linear)
    }


edges = [0, 1, 2, 7, 8, 9, 15, 31, 32, 33, 47, 48, 49, 64, 65]


@pytest.fixture(autouse=True)
def every_call_is_long(request, monkeypatch):
    """Let the calls of the property tests have versions, though they are short."""
    if "compiled" in request.fixturenames:
        monkeypatch.setattr(versions, "LEAST_SECONDS", 0.0)
        monkeypatch.setattr(versions, "_MOST", 32)
        monkeypatch.setattr(choice, "_LONG_PRODUCT", 0.0)


@settings(deadline=None, max_examples=60)
@given(
    st.sampled_from(edges),
    st.sampled_from([*edges, 239, 240, 241, 480, 481, 1025]),
    st.sampled_from([0, 1, 15, 16, 17, 63, 64, 65, 129]),
)
def test_every_version_computes_the_product(compiled, m, n, k):
    rng = np.random.default_rng(m + n + k)
    A = rng.integers(-4, 5, (m, k)).astype(np.float32)
    B = rng.integers(-4, 5, (k, n)).astype(np.float32)
    bias = rng.integers(-4, 5, n).astype(np.float32)
    np.testing.assert_array_equal(compiled["product"](A, B), A @ B)
    expected = np.maximum(A @ B + bias, 0)
    np.testing.assert_array_equal(compiled["layer"](A, B, bias), expected)
    W = np.ascontiguousarray(B.T)
    np.testing.assert_array_equal(compiled["linear"](A, W, bias), expected)


@settings(deadline=None, max_examples=5)
@given(st.sampled_from(edges), st.sampled_from([1, 33, 100]), st.sampled_from([0, 5, 70]))
def test_fixed_sizes_compute_the_product(m, n, k):
    rng = np.random.default_rng(m + n + k)
    A = rng.integers(-4, 5, (m, k)).astype(np.float64)
    B = rng.integers(-4, 5, (k, n)).astype(np.float64)
    matmul = tl.compile(tl.nn.matmul)
    np.testing.assert_array_equal(matmul(A, B), A @ B)
    fixed = tl.compile(product, M=m, N=n, K=k, opt_level=1)
    A, B = A.astype(np.float32), B.astype(np.float32)
    np.testing.assert_array_equal(fixed(A, B), A @ B)


def test_pickled_with_every_version(compiled):
    again = pickle.loads(pickle.dumps(compiled["product"]))
    A, B = np.ones((1, 5), np.float32), np.ones((5, 3), np.float32)
    np.testing.assert_array_equal(again(A, B), A @ B)
    assert again.report.versions[-1].choice.startswith("M <= 1, ")


def test_panels_beyond_the_last_column_are_left_out():
    schedule = tl.schedule(product)
    schedule.assume(M <= 32)
    text = tl.compile(schedule.default(), opt_level=0).source("loops")
    panels = [line for line in text.splitlines() if "for j.o.i in" in line]
    assert len(panels) == 2  # of the init, and of the sums, which are copied into registers
    assert all("min(" in line for line in panels)
