"""Small forms of what the fuzz found, so that it stays mended."""

from __future__ import annotations

import numpy as np
import pytest

import tensorlang as tl
from tensorlang.dtypes import i64
from tensorlang.ir.expr import Const
from tensorlang.lang.evaluate import Environment, evaluate_expr

M, N, K = tl.dims("M N K")


def test_the_evaluator_tells_expressions_apart_that_came_and_went() -> None:
    env = Environment({}, {})
    assert [evaluate_expr(Const(n, i64), env) for n in range(100)] == list(range(100))


def test_a_refused_unroll_takes_its_split_back() -> None:
    @tl.compute
    def double(x: tl.f32[N]):
        return tl.tensor(x[i] * 2 for i in N)

    s = tl.schedule(double)
    before = str(s)
    with pytest.raises(tl.ScheduleError, match=r"unrolling i\.i would write out 5000 statements"):
        s.unroll("i", factor=5000)
    assert str(s) == before
    assert s.trace == ()
    s.unroll("i", factor=4)
    assert "unrolled for i.i in 4" in str(s)


def test_the_guard_of_a_copy_back_mentions_no_loop_inside() -> None:
    @tl.compute
    def filled(x: tl.f32[M, K]):
        return tl.tensor(x[i, j] + 1 for i in M for j in K)

    s = tl.schedule(filled)
    outer, inner = s.split("j", 2)
    inner_outer, _ = s.split(inner, 4)
    s.fuse(outer, inner_outer)
    s.cache_write("filled", at="i", scope="global")
    x = np.arange(15, dtype=np.float32).reshape(3, 5)
    np.testing.assert_array_equal(tl.compile(s)(x), x + 1)


def test_an_accumulator_that_may_only_pass_through_is_refused_at_once() -> None:
    @tl.compute
    def above(x: tl.i64[K, M]):
        return tl.tensor(tl.sum(x[k, j] for k in K for j in tl.range(i + 1, M)) for i in M)

    s = tl.schedule(above)
    try:
        s.cache_write("above", at="j", scope="global")
    except tl.ScheduleError:
        assert s.trace == ()
    else:
        s.verify()


def test_an_index_comes_from_a_copy_in_an_unrolled_loop() -> None:
    @tl.compute
    def picked(x: tl.f32[M], ids: tl.i32[N]):
        return tl.tensor(x[ids[k]] for i in tl.range(4) for k in N)

    s = tl.schedule(picked)
    s.unroll("i")
    s.cache_read("ids", at="k", scope="local")
    x, ids = np.arange(5, dtype=np.float32), np.array([4, 0, 2], np.int32)
    np.testing.assert_array_equal(tl.compile(s)(x, ids), np.tile(x[ids], (4, 1)))


def test_what_is_read_at_an_index_from_data_is_not_inlined() -> None:
    @tl.compute
    def picked(x: tl.f32[M], ids: tl.i64[N]):
        later = tl.tensor(x[i + 1] * 2 for i in M - 1)
        return tl.tensor(later[ids[i]] for i in N)

    x = np.arange(5, dtype=np.float32)
    np.testing.assert_array_equal(picked(x, np.array([3, 0])), [8, 2])
    with pytest.raises(IndexError, match="index -1 leaves axis 0 of later, which has 4 elements"):
        picked(x, np.array([-1]))  # x[0] exists, later[-1] does not
    with pytest.raises(tl.ScheduleError, match="reads later at an index taken from data"):
        tl.schedule(picked).compute_inline("later")


def test_lanes_are_not_moved_around_tiles_that_overlap() -> None:
    @tl.compute
    def double(x: tl.f32[N]):
        return tl.tensor(x[i] * 2 for i in N)

    s = tl.schedule(double)
    outer, lane = s.split("i", 5, tail="shift")
    s.vectorize(lane)
    tiles, tile = s.split(outer, 2, tail="shift")
    before = str(s)
    with pytest.raises(tl.ScheduleError, match="breaks a dependence"):
        s.reorder(lane, tiles, tile)
    assert str(s) == before
    s.verify()


def test_an_argmax_of_small_integers_has_lanes_for_its_positions() -> None:
    @tl.compute
    def least(x: tl.i8[M, N]):
        return tl.tensor(tl.argmin(x[i, j] for j in N) for i in M)

    x = np.random.default_rng(0).integers(-9, 9, (3, 301)).astype(np.int8)
    np.testing.assert_array_equal(least(x), x.argmin(axis=1))
