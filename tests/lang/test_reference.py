"""The NumPy evaluator against loops in plain Python, on random definitions and small sizes."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorlang as tl
from tensorlang.dtypes import is_float
from tensorlang.ir.affine import evaluate
from tensorlang.ir.expr import Call, Cast, Const, IndexValue, Load, Select
from tensorlang.lang import reference

M, N = tl.dims("M N")
DTYPES = (tl.f64, tl.i32, tl.i64)
OPERATIONS = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b,
    "minimum": min, "maximum": max, "lt": lambda a, b: a < b, "ge": lambda a, b: a >= b,
    "gt": lambda a, b: a > b, "eq": lambda a, b: a == b,
}  # fmt: skip


@st.composite
def programs(draw):
    """A choice of leaves and operations for a body over i < M, j < N and tensors x and y."""
    leaves = st.sampled_from(["x", "y", "xt", "i", "j", "two", "half", "previous"])
    return draw(
        st.recursive(
            leaves,
            lambda parts: st.tuples(
                st.sampled_from(["add", "sub", "mul", "minimum", "maximum", "where"]), parts, parts
            ),
            max_leaves=6,
        )
    )


def build(tree, x, y, i, j):
    match tree:
        case "x":
            return x[i, j]
        case "y":
            return y[j]
        case "xt":
            return tl.where(j < M, x[tl.minimum(j, M - 1), j], 3)
        case "i":
            return i
        case "j":
            return j + 1
        case "two":
            return 2
        case "half":
            return 0.5
        case "previous":
            return tl.where(i > 0, x[i - 1, j], y[j])
        case ("where", a, b):
            return tl.where(i + j >= 2, build(a, x, y, i, j), build(b, x, y, i, j))
        case (function, a, b):
            left, right = build(a, x, y, i, j), build(b, x, y, i, j)
            if function in ("minimum", "maximum"):
                return getattr(tl, function)(left, right)
            return OPERATIONS[function](left, right)


def value(expr, arrays, variables):
    """Evaluate one element in plain Python, laziness included."""
    match expr:
        case Const():
            return expr.value
        case IndexValue():
            return evaluate(expr.index, variables)
        case Load():
            index = tuple([evaluate(form, variables) for form in expr.indices])
            array = arrays[expr.tensor]
            assert all(0 <= at < size for at, size in zip(index, array.shape, strict=True))
            return array[index].item()
        case Cast():
            inner = value(expr.operand, arrays, variables)
            return float(inner) if is_float(expr.dtype) else int(inner)
        case Select():
            taken = expr.then if value(expr.condition, arrays, variables) else expr.otherwise
            return value(taken, arrays, variables)
        case Call():
            args = [value(arg, arrays, variables) for arg in expr.args]
            return OPERATIONS[expr.function](*args)


def by_loops(definition, arrays, sizes):
    arrays = dict(arrays)
    for stage in definition.stages:
        shape = [evaluate(extent, sizes) for extent in stage.tensor.shape]
        result = np.zeros(shape, object)
        inner = [range(evaluate(axis.extent, sizes)) for axis in stage.reduction_axes]
        for place in np.ndindex(*shape):
            elements = [
                value(stage.values[0], arrays,
                      {**sizes, **dict(zip(stage.variables, (*place, *more), strict=True))})
                for more in itertools.product(*inner)
            ]  # fmt: skip
            result[place] = sum(elements) if stage.combiner is not None else elements[0]
        arrays[stage.tensor] = result
    return arrays[definition.outputs[0]]


@settings(max_examples=80, deadline=None)
@given(
    programs(), st.sampled_from(DTYPES), st.booleans(), st.integers(0, 4), st.integers(0, 3),
    st.sampled_from([1, 5, 1 << 18]),
)  # fmt: skip
def test_random_bodies(tree, dtype, reduces, m, n, points):
    def mapped(x: tl.f64[M, N], y: tl.f64[N]):
        if reduces:
            return tl.tensor(tl.sum(build(tree, x, y, i, j) for j in N) for i in M)
        return tl.tensor(build(tree, x, y, i, j) for i in M for j in N)

    mapped.__annotations__ = {"x": dtype[M, N], "y": dtype[N]}
    operator = tl.compute(mapped)
    rng = np.random.default_rng(m * 10 + n)
    x = rng.integers(-4, 5, (m, n)).astype(tl.dtypes.to_numpy(dtype))
    y = rng.integers(-4, 5, n).astype(x.dtype)
    definition = operator.definition()
    sizes = {size: {"M": m, "N": n}[size.name] for size in definition.sizes}
    arrays = dict(zip(definition.inputs, (x, y), strict=True))
    expected = by_loops(definition, arrays, sizes)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reference, "_POINTS", points)  # blocks of any size give the same
        result = operator.reference(x, y)
    np.testing.assert_allclose(result.astype(float), expected.astype(float), rtol=1e-12)


def test_each_stage_rounds_once():
    @tl.compute
    def operator(x: tl.f32[N]):
        y = tl.tensor((tl.cast(x[i], tl.f64) / 3 for i in N), dtype=tl.f32)
        return tl.tensor(y[i] * 3 for i in N)

    x = np.array([1, 7, 1e-3], np.float32)
    y = (x.astype(np.float64) / 3).astype(np.float32)
    np.testing.assert_array_equal(operator.reference(x), y * np.float32(3))


@pytest.mark.parametrize("dtype", [tl.f16, tl.bf16])
def test_half_precision_is_computed_in_single(dtype):
    def operator(x: tl.f16[N]):
        return tl.tensor(x[i] * x[i] * x[i] for i in N)

    operator.__annotations__ = {"x": dtype[N]}
    kind = tl.dtypes.to_numpy(dtype)
    x = np.linspace(0.1, 9, 50).astype(kind)
    wide = x.astype(np.float32)
    expected = (wide * wide * wide).astype(kind)
    result = tl.compute(operator).reference(x)
    assert result.dtype == kind
    np.testing.assert_array_equal(result.astype("f"), expected.astype("f"))


def test_strided_read_only_and_foreign_arrays():
    @tl.compute
    def operator(x: tl.f32[M, N]):
        return tl.tensor(x[i, j] + 1 for j in N for i in M)

    x = np.arange(24, dtype=np.float32).reshape(4, 6)[::2, ::-3]
    x.flags.writeable = False
    np.testing.assert_array_equal(operator.reference(x), x.T + 1)

    class Foreign:
        def __init__(self, array):
            self._array = array

        def __dlpack__(self, **options):
            return self._array.__dlpack__(**options)

        def __dlpack_device__(self):
            return self._array.__dlpack_device__()

    np.testing.assert_array_equal(
        operator.reference(Foreign(np.ones((2, 3), "f"))), np.full((3, 2), 2)
    )


def test_results_are_arrays_of_their_own():
    @tl.compute
    def same(x: tl.f32[N]):
        return x

    x = np.zeros(3, np.float32)
    result = same.reference(x)
    result[0] = 1
    assert x[0] == 0


@pytest.mark.parametrize("depth", [3, 40, 3_000])
def test_the_work_is_that_of_the_nodes_not_of_the_paths(depth):
    """Each step uses the one before it in both branches, and in more than one operand."""

    @tl.compute
    def steps(x: tl.f64[N]):
        def value(i):
            e = x[i]
            for step in range(depth):
                e = tl.where(x[i] > step, (e + e) * 0.5, tl.where(i >= step, e, x[i] + e * 0))
            return e

        return tl.tensor(value(i) for i in N)

    x = np.arange(1.0, 9.0)
    np.testing.assert_array_equal(steps.reference(x)[:2], x[:2] * [1, 1])
    assert len(str(steps)) < 1_000_000


def test_an_index_may_leave_where_no_branch_needs_it():
    @tl.compute
    def gather(x: tl.f64[M], at: tl.i64[N]):
        def value(i):
            e = x[at[i]]
            return tl.where(at[i] >= 0, e, -1) + tl.where(at[i] == 7, 1, tl.where(at[i] > 8, e, 0))

        return tl.tensor(value(i) for i in N)

    x = np.arange(8.0)
    np.testing.assert_array_equal(gather.reference(x, np.array([-5, 3, 7])), [-1, 3, 8])
    with pytest.raises(IndexError, match="index 9 is out of range for axis 0 of x"):
        gather.reference(x, np.array([-5, 9, 7]))


@settings(deadline=None)
@given(st.data())
def test_each_axis_is_checked_where_the_load_happens(data):
    """Points that leave by a guarded axis do not hide those that leave by another."""

    @tl.compute
    def picked(x: tl.f32[M, N], rows: tl.i64[N], columns: tl.i64[N]):
        return tl.tensor(
            tl.where((i >= 1) & (rows[i] < 100), x[rows[i], columns[i - 1]], 0) for i in N
        )

    m, n = data.draw(st.integers(0, 3)), data.draw(st.integers(1, 5))
    wrong = data.draw(st.lists(st.booleans(), min_size=2, max_size=2))

    def indices(extent, outside, leaves):
        choices = [*range(extent), *outside, *([-1, extent] if leaves else [])]
        return np.array(data.draw(st.lists(st.sampled_from(choices), min_size=n, max_size=n)))

    rows = indices(m, [100], wrong[0])
    columns = indices(n, [], wrong[1])
    x = np.arange(m * n, dtype=np.float32).reshape(m, n)
    needed = [(rows[i], columns[i - 1]) for i in range(1, n) if rows[i] < 100]
    if all(0 <= row < m and 0 <= column < n for row, column in needed):
        expected = [x[rows[i], columns[i - 1]] if i >= 1 and rows[i] < 100 else 0 for i in range(n)]
        np.testing.assert_array_equal(picked.reference(x, rows, columns), expected)
    else:
        with pytest.raises(IndexError, match="is out of range for axis"):
            picked.reference(x, rows, columns)
