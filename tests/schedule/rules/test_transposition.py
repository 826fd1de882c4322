"""The default schedule of transpositions: which maps it takes, and that each element is right."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorlang as tl

M, N, K = tl.dims("M N K")
SIZES = st.sampled_from([0, 1, 2, 15, 16, 17, 127, 128, 131, 260])
TYPES = {
    "bool": tl.bool, "int8": tl.i8, "uint16": tl.u16, "int32": tl.i32, "float16": tl.f16,
    "float32": tl.f32, "float64": tl.f64,
}  # fmt: skip


def transpose_of(dtype):
    @tl.compute
    def transpose(x: dtype[M, N]):
        return tl.tensor(x[i, j] for j in N for i in M)

    return transpose


TRANSPOSES = {name: transpose_of(dtype) for name, dtype in TYPES.items()}


@tl.compute
def last_first(x: tl.f32[M, N, K], y: tl.f32[K, M]):
    return tl.tensor(x[i, j, k] * 2 + y[k, i] for k in K for j in N for i in M)


@tl.compute
def symmetric(x: tl.f32[N, N]):
    return tl.tensor(x[i, j] + x[j, i] for i in N for j in N)


def uses_tiles(schedule):
    return "x.local" in str(schedule)


def test_tiles_are_read_along_rows_and_written_along_rows():
    text = str(tl.schedule(TRANSPOSES["float32"]).default())
    assert "x.local = global f32[128, 128]" in text
    assert "laid out (i, j) -> (i, j) of [128, 144]" in text


@pytest.mark.parametrize("name", TYPES)
def test_a_tile_fits_its_share_of_the_cache(name):
    line = str(tl.schedule(TRANSPOSES[name]).default()).splitlines()[2]
    side = int(line.split("[")[1].split(",")[0])
    assert 64 <= side <= 512
    assert side**2 * np.dtype(name).itemsize <= 128 * 1024


def test_which_maps_are_transpositions():
    assert uses_tiles(tl.schedule(last_first).default())
    assert not uses_tiles(tl.schedule(symmetric).default())


def test_it_is_proved_and_its_steps_rebuild_it():
    schedule = tl.schedule(last_first).default()
    assert schedule.verify().ok
    names = {"tl": tl, "last_first": last_first}
    exec(schedule.to_python(), names)
    assert str(names["s"]) == str(schedule)


@pytest.mark.parametrize("name", TYPES)
@given(rows=SIZES, columns=SIZES, fortran=st.booleans())
@settings(max_examples=15, deadline=None)
def test_every_element(name, rows, columns, fortran):
    x = np.random.default_rng(3).integers(0, 2, (rows, columns)).astype(name)
    x = np.asfortranarray(x) if fortran else x
    np.testing.assert_array_equal(TRANSPOSES[name](x), x.T)


@given(sizes=st.tuples(SIZES, st.integers(0, 3), SIZES))
@settings(max_examples=15, deadline=None)
def test_three_axes(sizes):
    x = np.random.default_rng(1).standard_normal(sizes, dtype=np.float32)
    y = np.random.default_rng(2).standard_normal((sizes[2], sizes[0]), dtype=np.float32)
    np.testing.assert_allclose(last_first(x, y), x.transpose(2, 1, 0) * 2 + y[:, None], rtol=1e-6)
