"""The default schedule of attention: what it is, that it is proved, and that it is right."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorlang as tl
import tensorlang.testing as tlt

B, H, S, T, D, E = tl.dims("B H S T D E")


@tl.compute
def attention(
    q: tl.f32[B, H, S, D],
    k: tl.f32[B, H, T, D],
    v: tl.f32[B, H, T, E],
    *,
    causal: bool = False,
):
    products = tl.tensor(
        tl.sum(q[b, h, i, c] * k[b, h, j, c] for c in D) * 0.5
        for b in B for h in H for i in S for j in T
    )  # fmt: skip
    scores = products
    if causal:
        scores = tl.tensor(
            tl.where(j <= i, products[b, h, i, j], -tl.inf)
            for b in B for h in H for i in S for j in T
        )  # fmt: skip
    top = tl.tensor(tl.max(scores[b, h, i, j] for j in T) for b in B for h in H for i in S)
    e = tl.tensor(
        tl.exp(scores[b, h, i, j] - top[b, h, i]) for b in B for h in H for i in S for j in T
    )
    total = tl.tensor(tl.sum(e[b, h, i, j] for j in T) for b in B for h in H for i in S)
    p = tl.tensor(e[b, h, i, j] / total[b, h, i] for b in B for h in H for i in S for j in T)
    return tl.tensor(
        tl.sum(p[b, h, i, j] * v[b, h, j, d] for j in T)
        for b in B for h in H for i in S for d in E
    )  # fmt: skip


@tl.compute
def divided_last(
    q: tl.f32[B, H, S, D],
    k: tl.f32[B, H, T, D],
    v: tl.f32[B, H, T, E],
    *,
    causal: bool = False,
):
    """The same numbers, divided by their total when all of a row is known."""
    scores = tl.tensor(
        tl.where((j <= i) | (not causal), tl.sum(q[b, h, i, c] * k[b, h, j, c] for c in D), -tl.inf)
        for b in B for h in H for i in S for j in T
    )  # fmt: skip
    top = tl.tensor(tl.max(scores[b, h, i, j] for j in T) for b in B for h in H for i in S)
    e = tl.tensor(
        tl.exp((scores[b, h, i, j] - top[b, h, i]) * 0.5)
        for b in B for h in H for i in S for j in T
    )  # fmt: skip
    total = tl.tensor(tl.sum(e[b, h, i, j] for j in T) for b in B for h in H for i in S)
    mixed = tl.tensor(
        tl.sum(e[b, h, i, j] * v[b, h, j, d] for j in T)
        for b in B for h in H for i in S for d in E
    )  # fmt: skip
    return tl.tensor(mixed[b, h, i, d] / total[b, h, i] for b in B for h in H for i in S for d in E)


@tl.compute
def with_totals(q: tl.f32[H, S, D], k: tl.f32[H, T, D], v: tl.f32[H, T, E]):
    """Totals that are a result themselves."""
    s = tl.tensor(tl.sum(q[h, i, c] * k[h, j, c] for c in D) for h in H for i in S for j in T)
    top = tl.tensor(tl.max(s[h, i, j] for j in T) for h in H for i in S)
    e = tl.tensor(tl.exp(s[h, i, j] - top[h, i]) for h in H for i in S for j in T)
    total = tl.tensor(tl.sum(e[h, i, j] for j in T) for h in H for i in S)
    mixed = tl.tensor(tl.sum(e[h, i, j] * v[h, j, d] for j in T) for h in H for i in S for d in E)
    result = tl.tensor(mixed[h, i, d] / total[h, i] for h in H for i in S for d in E)
    return result, total


@tl.compute
def normalised_layers(x: tl.f32[S, D], w: tl.f32[D, T], u: tl.f32[T, E]):
    a = tl.tensor(tl.sum(x[i, c] * w[c, j] for c in D) for i in S for j in T)
    mean = tl.tensor(tl.sum(a[i, j] for j in T) / T for i in S)
    n = tl.tensor(a[i, j] / (1 + mean[i] * mean[i]) for i in S for j in T)
    return tl.tensor(tl.sum(n[i, j] * u[j, d] for j in T) for i in S for d in E)


def arguments(b, h, s, t, d, e):
    generator = np.random.default_rng(b + h + s + t + d + e)
    shapes = (b, h, s, d), (b, h, t, d), (b, h, t, e)
    return [generator.standard_normal(shape, dtype=np.float32) for shape in shapes]


def expected(q, k, v, causal):
    scores = np.einsum("bhsd,bhtd->bhst", q, k, dtype=np.float64) * 0.5
    if causal:
        seen = np.arange(k.shape[2]) <= np.arange(q.shape[2])[:, None]
        scores = np.where(seen, scores, -np.inf)
    e = np.exp(scores - scores.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True) @ v


WAYS = pytest.mark.parametrize("way", [attention, divided_last], ids=lambda way: way.name)


@WAYS
@pytest.mark.parametrize("causal", [False, True])
def test_strips_of_scores_instead_of_the_square(way, causal):
    text = str(tl.schedule(way, causal=causal).default())
    kept = [line for line in text.splitlines() if " = global " in line]
    weights = "p" if way is attention else "e"
    assert any(f"{weights} = global f32[1, 1, " in line and ", T]" in line for line in kept)
    assert not any("[B, H, S, T]" in line or "[1, 1, S, T]" in line for line in kept)


@WAYS
@pytest.mark.parametrize("causal", [False, True])
def test_it_is_proved(way, causal):
    assert tl.schedule(way, causal=causal).default().verify().ok


def test_the_division_finishes_a_strip():
    text = str(tl.schedule(divided_last).default())
    assert re.search(r"mixed = global f32\[1, 1, \d+, E\]", text)
    assert re.search(r"total = global f32\[1, 1, \d+\]", text)


def test_totals_that_are_a_result_stay_whole():
    schedule = tl.schedule(with_totals).default()
    assert "total = " not in str(schedule)
    assert schedule.verify().ok
    tlt.check(with_totals)


def test_the_printed_steps_rebuild_it():
    schedule = tl.schedule(attention).default()
    names = {"tl": tl, "attention": attention}
    exec(schedule.to_python(), names)
    assert str(names["s"]) == str(schedule)


@WAYS
@pytest.mark.parametrize("causal", [False, True])
@given(
    sizes=st.tuples(
        st.integers(0, 2),
        st.integers(1, 2),
        st.sampled_from([0, 1, 7, 64, 65, 130]),
        st.sampled_from([1, 15, 33, 64, 129]),
        st.sampled_from([1, 5, 16, 64]),
        st.sampled_from([1, 17, 32, 70]),
    )
)
@settings(max_examples=8, deadline=None)
def test_awkward_sizes(way, causal, sizes):
    args = arguments(*sizes)
    compiled = tl.compile(way, causal=causal)
    np.testing.assert_allclose(compiled(*args), expected(*args, causal), rtol=2e-5, atol=1e-5)


def test_more_rows_than_a_band():
    args = arguments(1, 1, 515, 20, 8, 8)
    np.testing.assert_allclose(attention(*args), expected(*args, False), rtol=2e-5, atol=2e-6)


def strip_of_scores(schedule):
    return int(re.search(r"p = global f32\[1, 1, (\d+), \d+\]", str(schedule)).group(1))


def test_long_rows_of_fixed_length_come_in_lower_strips():
    fixed = {"B": 1, "H": 2, "S": 64, "D": 8, "E": 8}
    short = strip_of_scores(tl.schedule(attention, T=512, **fixed).default())
    assert strip_of_scores(tl.schedule(attention, T=1 << 20, **fixed).default()) < short <= 66


@pytest.mark.parametrize(
    "sizes", [(1, 1, 40, 33, 8, 8), (1, 2, 1, 7, 4, 4), (2, 1, 9, 1, 16, 3), (2, 3, 70, 20, 1, 1)]
)
def test_fixed_sizes(sizes):
    schedule = tl.schedule(attention, **dict(zip("BHSTDE", sizes, strict=True))).default()
    assert schedule.verify().ok
    args = arguments(*sizes)
    result = tl.compile(schedule)(*args)
    np.testing.assert_allclose(result, expected(*args, False), rtol=2e-5, atol=2e-6)


def test_layers_of_a_network_are_no_attention():
    text = str(tl.schedule(normalised_layers).default())
    assert "512" not in text.splitlines()[1]
    tlt.check(normalised_layers)
