"""Rows divided by one number each: bit for bit what NumPy's division gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as numpy_strategies

import tensorlang as tl

M, N = tl.dims("M N")
KINDS = {np.float32: (tl.f32, np.uint32), np.float64: (tl.f64, np.uint64)}


def divided(kind: Any) -> Any:
    dtype, _ = KINDS[kind]

    @tl.compute
    def divide(x: dtype[M, N], d: dtype[M]):
        return tl.tensor(x[i, j] / d[i] for i in M for j in N)

    return divide


DIVIDE = {kind: divided(kind) for kind in KINDS}


def require_same_bits(x: np.ndarray, d: np.ndarray) -> None:
    with np.errstate(all="ignore"):
        wanted = x / d[:, None]
    found = DIVIDE[x.dtype.type](x, d)
    np.testing.assert_array_equal(found, wanted)
    zeros = wanted == 0
    np.testing.assert_array_equal(np.signbit(found[zeros]), np.signbit(wanted[zeros]))


@pytest.mark.parametrize("kind", KINDS)
def test_any_bits(kind: Any) -> None:
    generator, bits = np.random.default_rng(1), KINDS[kind][1]
    most = np.iinfo(bits).max
    x, d = (generator.integers(0, most, shape, bits).view(kind) for shape in ((500, 64), 500))
    require_same_bits(x, d)
    moderate = np.exp(generator.uniform(-60, 60, 500)).astype(kind)
    require_same_bits(x, moderate)


@pytest.mark.parametrize("kind", KINDS)
def test_quotients_near_the_middle_of_two_numbers(kind: Any) -> None:
    """A product of short mantissas and its neighbours: quotients that are nearly exact."""
    generator = np.random.default_rng(2)
    d = generator.integers(1, 1 << 12, 2000).astype(kind)
    x = (generator.integers(1, 1 << 12, (2000, 96)) * d[:, None]).astype(kind)
    x *= kind(2.0) ** generator.integers(-30, 30, x.shape).astype(kind)
    for neighbour in (x, np.nextafter(x, kind(0)), np.nextafter(x, kind(np.inf))):
        require_same_bits(neighbour, d)
        require_same_bits(-neighbour, np.nextafter(d, kind(0)))


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
@settings(max_examples=40, deadline=None)
def test_special_values(kind: Any, data: st.DataObject) -> None:
    width = np.finfo(kind).bits
    columns = data.draw(st.sampled_from([16, 17, 33]))
    numbers = st.floats(width=width) | st.sampled_from([0.0, -0.0, 1.0, np.inf, -np.inf, np.nan])
    x = data.draw(numpy_strategies.arrays(kind, (2, columns), elements=numbers))
    d = data.draw(numpy_strategies.arrays(kind, 2, elements=numbers))
    require_same_bits(x, d)


def test_one_reciprocal_where_a_division_is_slow() -> None:
    for target, expected in (("znver4", True), ("haswell", False)):
        compiled = tl.compile(DIVIDE[np.float32], target=f"cpu -mcpu={target}")
        assert ("multiply." in compiled.source("llvm")) is expected
