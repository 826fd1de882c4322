"""Reductions to one value: half-line vectors for streams, and every length and type right."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorlang as tl

N = tl.dim("N")
TYPES = {"float32": tl.f32, "float64": tl.f64, "int32": tl.i32, "int8": tl.i8}


def total_of(dtype):
    @tl.compute
    def total(x: dtype[N]):
        return tl.sum(x[i] for i in N)

    return total


TOTALS = {name: total_of(dtype) for name, dtype in TYPES.items()}


@tl.compute
def place_of_greatest(x: tl.f32[N]):
    return tl.argmax(x[i] for i in N)


def vector_lengths(schedule):
    lines = str(schedule).splitlines()
    return {int(line.split()[-1][:-1]) for line in lines if "vectorized for" in line}


def test_vectors_are_half_a_line_where_registers_are_a_line():
    wide, narrow = "cpu -mcpu=skylake-avx512", "cpu -mcpu=haswell"
    text = str(tl.schedule(TOTALS["float32"]).default(target=wide))
    assert "unrolled for" in text
    assert vector_lengths(tl.schedule(TOTALS["float32"]).default(target=wide)) == {8}
    assert "unrolled for" not in str(tl.schedule(TOTALS["float32"]).default(target=narrow))


@pytest.mark.parametrize("op", [*TOTALS.values(), place_of_greatest])
def test_it_is_proved(op):
    assert tl.schedule(op).default().verify().ok


@pytest.mark.parametrize("name", TYPES)
@given(count=st.one_of(st.integers(0, 200), st.integers(65_000, 140_000)), seed=st.integers(0, 9))
@settings(max_examples=25, deadline=None)
def test_every_length(name, count, seed):
    x = np.random.default_rng(seed).integers(-3, 4, count).astype(name)
    assert TOTALS[name](x) == x.sum(dtype=name)


@given(count=st.integers(1, 140_000), seed=st.integers(0, 9))
@settings(max_examples=25, deadline=None)
def test_the_place_of_the_greatest(count, seed):
    x = np.random.default_rng(seed).integers(0, 1000, count).astype(np.float32)
    assert place_of_greatest(x) == x.argmax()
