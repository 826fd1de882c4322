"""Dims, ranges, grids, shapes, and tuples of axes."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorlang as tl
from tensorlang.errors import DefinitionError
from tensorlang.lang.axes import IndexTuple, Shape

M, N = tl.dims("M, N")


def test_dims_always_returns_a_tuple():
    (only,) = tl.dims("A")
    assert isinstance(only, tl.Dim)
    assert str(only) == "A"
    assert only.name == "A"


def test_dims_compare_by_identity():
    other = tl.dim("N")
    assert bool(N == N)
    assert not bool(other == N)
    assert bool(other != N)
    assert (M, N) == (M, N)
    assert len({N: 1, other: 2}) == 2
    assert bool(N + 1 > N)
    assert bool(N + 1 == 1 + N)


def test_dims_pickle_by_name():
    assert pickle.loads(pickle.dumps(N)).name == "N"


def test_arithmetic_gives_canonical_extents():
    assert str((2 * N + 4) // 2 - 1) == "N + 1"
    assert str(N % 1) == "0"
    assert str(-N + N) == "0"
    assert int(N - N + 3) == 3


ranges = st.tuples(st.integers(-3, 3), st.integers(-2, 2), st.integers(-3, 3), st.integers(-2, 2))


@settings(max_examples=60, deadline=None)
@given(ranges, st.integers(0, 6), st.integers(0, 5))
def test_range_visits_what_python_visits(bounds, m, n):
    """The bounds are a * i + b + d * (N or 0)."""
    low, slope, high, other = bounds

    @tl.compute
    def visited(x: tl.i64[M], y: tl.i64[N]):
        return tl.tensor(
            tl.sum(2 ** (j + 20) for j in tl.range(low + slope * i, high + other * i + N))
            for i in M
        )

    expected = [
        sum(2 ** (j + 20) for j in range(low + slope * i, high + other * i + n)) for i in range(m)
    ]
    result = visited.reference(np.zeros(m, np.int64), np.zeros(n, np.int64))
    assert result.tolist() == expected


@pytest.mark.parametrize("n", [0, 1, 2, 7])
def test_range_with_lower_bound_is_empty_for_small_sizes(n):
    @tl.compute
    def rest(x: tl.i64[N]):
        return tl.sum(x[j] for j in tl.range(1, N)), tl.sum(x[j] for j in tl.range(2, N - 1))

    x = np.arange(n) + 5
    assert [int(part) for part in rest.reference(x)] == [x[1:].sum(), x[2:-1].sum()]


def test_range_from_zero_is_an_extent_and_must_not_be_negative():
    @tl.compute
    def rest(x: tl.i64[N]):
        return tl.sum(x[j + 2] for j in tl.range(N - 2))

    assert rest.reference(np.array([1, 2, 3])) == 3
    with pytest.raises(ValueError, match=r"rest: the extent N - 2 is negative \(-1\) for N = 1"):
        rest.reference(np.array([1]))


def test_range_of_constants_and_expressions_in_tensors():
    @tl.compute
    def blocks(x: tl.f32[4 * N]):
        return tl.tensor(x[4 * i + j] for i in tl.range(N) for j in tl.range(4))

    x = np.arange(8, dtype=np.float32)
    np.testing.assert_array_equal(blocks.reference(x), x.reshape(2, 4))


def test_range_refuses_values():
    def by_data(x: tl.f32[N], count: tl.i64[N]):
        return tl.tensor(tl.sum(x[j] for j in tl.range(count[i])) for i in N)

    with pytest.raises(DefinitionError, match=r"a bound of tl.range must be .*, not count\[i\]"):
        tl.compute(by_data).definition()


def test_shapes_and_indices_are_edited_at_any_axis():
    index = IndexTuple(["a", "b", "c"])
    assert index.insert(0, "x") == ("x", "a", "b", "c")
    assert index.insert(-1, "x") == ("a", "b", "c", "x")
    assert index.replace(1, "x") == ("a", "x", "c")
    assert index.drop(-1) == ("a", "b")
    assert isinstance(index.drop(0), IndexTuple)
    assert isinstance(Shape([M, N]).drop(0), Shape)
    with pytest.raises(DefinitionError, match="axis 3 does not exist: there are 3 axes"):
        index.drop(3)


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -3])
def test_reductions_along_any_axis_are_written_once(axis):
    @tl.compute
    def greatest(x, *, axis):
        return tl.tensor(
            tl.max(x[i.insert(axis, j)] for j in x.shape[axis]) for i in tl.grid(x.shape.drop(axis))
        )

    x = np.random.default_rng(0).normal(size=(2, 3, 5))
    np.testing.assert_array_equal(greatest.reference(x, axis=axis), x.max(axis))


@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 1, 3)])
def test_grid_of_any_rank(shape):
    @tl.compute
    def doubled(x):
        assert x.ndim == len(shape)
        assert x.dtype is tl.f64
        return tl.tensor(x[i] + x[i] for i in tl.grid(x.shape))

    x = np.random.default_rng(0).normal(size=shape)
    np.testing.assert_array_equal(doubled.reference(x), 2 * x)


def test_axes_are_named_after_loop_variables():
    @tl.compute
    def named(x: tl.f32[M, N, 2, 3]):
        a = tl.tensor(x[row, column, 0, 0] for row, column in tl.grid((M, N)))
        b = tl.tensor(x[i] for i in tl.grid(x.shape))
        c = tl.tensor(x[first, (*rest,)[0], rest[1], 0]
                      for first, *rest in tl.grid(x.shape.drop(-1)))  # fmt: skip
        d = tl.tensor(tl.sum(x[i, j, 0, 0] for j in N) for i in M)
        return a, b, c, d

    axes = [[str(axis.variable) for axis in stage.all_axes] for stage in named.definition().stages]
    assert axes == [
        ["row", "column"],
        ["i0", "i1", "i2", "i3"],
        ["first", "rest0", "rest1"],
        ["i", "j"],
    ]


def test_captured_axes_keep_their_order():
    """An inner comprehension that captures j moves it in the frame, not in the tensor."""

    @tl.compute
    def ordered(A: tl.f32[M, N], B: tl.f32[N, N]):
        return tl.tensor(tl.sum(A[i, k] * B[k, j] for k in N) for i in M for j in N)

    (stage,) = ordered.definition().stages
    assert [str(axis.variable) for axis in stage.all_axes] == ["i", "j", "k"]
    assert [str(axis.extent) for axis in stage.all_axes] == ["M", "N", "N"]


def test_generator_functions_are_comprehensions_too():
    @tl.compute
    def helper(x: tl.f32[M, N]):
        def elements():
            for i in M:
                for j in N:
                    yield x[i, j] + 1

        return tl.tensor(elements())

    np.testing.assert_array_equal(helper.reference(np.zeros((2, 3), "f")), np.ones((2, 3)))


def test_a_loop_over_one_python_element_is_allowed():
    @tl.compute
    def once(x: tl.f32[N]):
        return tl.tensor(x[i] * factor for i in N for factor in (2,))

    np.testing.assert_array_equal(once.reference(np.ones(3, "f")), [2, 2, 2])
