"""Fixing sizes changes the text of a definition, and never what it computes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorlang as tl
from tensorlang.ir.definition import Tensor
from tensorlang.ir.expr import loads_of
from tensorlang.ir.printer import format_definition
from tensorlang.ir.specialize import fix_sizes
from tensorlang.lang.binding import bind_sizes
from tensorlang.lang.reference import evaluate_definition

M, N, K = tl.dims("M N K")


@tl.compute
def mixture(x: tl.f64[M, N], at: tl.i64[K], factor: tl.f64):
    """Everything that holds sizes: divisions, products, gathers, predicates, combiners."""
    flat = tl.tensor(x[i // N, i % N] * factor for i in M * N)
    some = tl.tensor(tl.where(at[k] < M * N, flat[at[k]], N) for k in K)
    low, high = tl.tensor(
        tl.reduce(
            lambda a, b: (tl.minimum(a[0], b[0]), tl.maximum(a[1], b[1])),
            (tl.inf, -tl.inf),
            ((x[i, j], x[i, j]) for j in tl.range(i, N)),
        )
        for i in M
    )
    best = tl.tensor(tl.argmax(x[i, j] for i in M) for j in N)
    return tl.scan(lambda a, b: a + b, 0, (some[k] for k in K)), low, high, best


def run(definition, x, at):
    arrays = dict(zip(definition.inputs, (x, at), strict=True))
    sizes = bind_sizes(definition, {tensor: array.shape for tensor, array in arrays.items()})
    return evaluate_definition(definition, arrays, {definition.scalars[0]: 2.5}, sizes)


@settings(max_examples=40, deadline=None)
@given(
    st.integers(1, 4), st.integers(0, 4), st.integers(0, 5),
    st.sets(st.sampled_from(["M", "N", "K"])),
)  # fmt: skip
def test_fixed_definitions_compute_the_same(m, n, k, names):
    rng = np.random.default_rng(0)
    x, at = rng.normal(size=(m, n)), rng.integers(0, m * n + 2, k)
    values = {"M": m, "N": n, "K": k}
    fixed = fix_sizes(mixture.definition(), {name: values[name] for name in names})
    assert [str(size) for size in fixed.sizes] == [s for s in ("M", "N", "K") if s not in names]
    for got, wanted in zip(run(fixed, x, at), run(mixture.definition(), x, at), strict=True):
        np.testing.assert_array_equal(got, wanted)


def test_fixed_definitions_share_only_free_sizes():
    original = mixture.definition()
    fixed = fix_sizes(original, {"N": 3})
    old = set(original.inputs) | {t for stage in original.stages for t in stage.tensors}
    new = set(fixed.inputs) | {t for stage in fixed.stages for t in stage.tensors}
    assert not old & new
    used = {load.tensor for stage in fixed.stages for load in loads_of(*stage.values)}
    assert used <= new
    assert all(isinstance(tensor, Tensor) for tensor in used)
    assert not {v for s in original.stages for v in s.variables} & {
        v for s in fixed.stages for v in s.variables
    }
    assert fixed.sizes == (original.sizes[0], original.sizes[2])
    assert fix_sizes(original, {}) is original


def test_text_after_fixing():
    fixed = fix_sizes(mixture.definition(), {"M": 2, "N": 4})
    assert format_definition(fixed).splitlines()[1:4] == [
        "    flat[i < 8] = x[i // 4, i % 4] * factor",
        "    some[k < K] = where(at[k] < 8, flat[int(at[k])], 4)",
        "    low[i < 2], high[i < 2] = custom(x[i, j], x[i, j] for j < 4 if i < j + 1)",
    ]


def test_conditions_are_decided_when_their_sizes_are_fixed():
    @tl.compute
    def odd(x: tl.f32[M], y: tl.f32[N]):
        return tl.tensor(x[2 * i + 1] + y[i] for i in N)

    definition = odd.definition()
    assert [str(c.form) for c in definition.conditions] == ["M - 2 * N"]
    assert [str(c.form) for c in fix_sizes(definition, {"N": 3}).conditions] == ["M - 6"]
    assert fix_sizes(definition, {"M": 6, "N": 3}).conditions == ()
    with pytest.raises(ValueError, match=r"odd: x\[2 \* i \+ 1\] stays inside .*; M = 5, N = 3"):
        fix_sizes(definition, {"M": 5, "N": 3})


@pytest.mark.parametrize(
    ("sizes", "text"),
    [
        ({"Q": 1}, "mixture has no size Q; its sizes are: M, N, K"),
        ({"M": -1}, "mixture: the size M = -1 is negative"),
    ],
)
def test_refusals(sizes, text):
    with pytest.raises(ValueError, match=text):
        fix_sizes(mixture.definition(), sizes)
