"""The model that chooses register tiles, on machines of several kinds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tensorlang as tl
from tensorlang.schedule.rules.facts import ANY, Range
from tensorlang.schedule.rules.machine import Machine
from tensorlang.schedule.rules.tiles import Tile, choose_tile, even_rows

AVX512 = Machine(64, 32, 48 * 1024, 2 * 1024**2, cores=2)
AVX2 = Machine(32, 16, 32 * 1024, 512 * 1024, cores=2)
SSE = Machine(16, 16, 32 * 1024, 256 * 1024)

sizes = st.builds(lambda n: Range(n, n), st.integers(1, 3000))
limits = st.builds(lambda n: Range(0, n), st.integers(1, 3000))


@given(
    st.sampled_from([AVX512, AVX2, SSE]),
    st.sampled_from([tl.f32, tl.f64, tl.i8]),
    st.just(ANY) | sizes | limits,
    st.just(ANY) | sizes | limits,
    st.none() | st.integers(1, 20000),
)
def test_a_tile_fits_the_registers_and_the_rows(machine, dtype, rows, columns, stride):
    tile = choose_tile(machine, dtype, rows, columns, row_stride=stride)
    assert min(tile.rows, tile.vectors) >= 1
    if tile != Tile(1, 1):
        assert tile.rows * tile.vectors + tile.vectors + 1 < machine.vector_registers
    assert rows.high is None or tile.rows <= rows.high


@given(st.integers(1, 5000), st.integers(1, 20))
def test_equal_tiles_are_as_many_and_waste_less_than_one_row_each(extent, most):
    height = even_rows(extent, most)
    tiles = -(-extent // height)
    assert height <= most
    assert tiles == -(-extent // most)
    assert height * tiles - extent < tiles


def test_the_tile_of_the_literature_on_avx2():
    assert choose_tile(AVX2, tl.f32) == Tile(6, 2)


def test_rows_that_share_a_cache_set_are_fewer():
    apart = choose_tile(AVX512, tl.f32, row_stride=1000 * 4)
    together = choose_tile(AVX512, tl.f32, row_stride=1024 * 4)
    assert together.rows <= 9
    assert apart.rows >= together.rows


@pytest.mark.parametrize("rows", [1, 2, 3, 7])
def test_few_rows_are_one_tile(rows):
    assert choose_tile(AVX512, tl.f32, Range(rows, rows)).rows == rows


def test_narrow_results_have_narrow_tiles():
    assert choose_tile(SSE, tl.f32, columns=Range(4, 4)).vectors == 1
    assert choose_tile(SSE, tl.f32, columns=Range(8, 8)).vectors == 2


def test_threads_get_a_panel_each():
    assert choose_tile(AVX512, tl.f32, columns=Range(64, 64)).vectors == 2
    alone = choose_tile(AVX512, tl.f32, columns=Range(64, 64), parallel_columns=False)
    assert alone.vectors == 4


@pytest.mark.parametrize("rows", [29, 24])
def test_many_rows_at_a_distance_of_a_way_are_worse_than_fewer(rows):
    tile = choose_tile(AVX512, tl.f32, Range(rows * 8, rows * 8), Range(16, 16), row_stride=4096)
    assert tile.rows < 16
