"""What ``fast_math`` may not change: NaN and inf are still seen."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tensorlang as tl
from tensorlang.testing import assert_close

N = tl.dim("N")
SPECIAL = st.sampled_from([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -2.5, 1e38, 1e-45])


@tl.compute
def seen(x: tl.f32[N]):
    """1 for NaN, 2 for inf, 4 where a number differs from itself."""
    return tl.tensor(
        tl.cast(tl.isnan(x[i]), tl.i32)
        + tl.cast(tl.isinf(x[i]), tl.i32) * 2
        + tl.cast(x[i] != x[i], tl.i32) * 4
        for i in N
    )


@tl.compute
def functions(x: tl.f32[N]):
    """Functions whose limits are decided by comparisons with inf and NaN."""
    return tl.tensor(tl.exp(x[i]) + tl.sigmoid(x[i]) * tl.tanh(x[i]) + tl.erf(x[i]) for i in N)


@pytest.mark.parametrize("operator", [seen, functions])
@given(values=st.lists(SPECIAL, max_size=40))
def test_special_values_survive(operator, values):
    x = np.array(values, np.float32)
    fast = _fast(operator)
    assert_close(fast(x), operator.reference(x))


_compiled = {}


def _fast(operator):
    if operator not in _compiled:
        _compiled[operator] = tl.compile(operator, fast_math=True)
    return _compiled[operator]
