"""Sort, argsort, topk and scatter, at every level, against a few lines of plain Python."""

from __future__ import annotations

import functools
import math
import pickle
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorlang as tl
from tensorlang.interpreter import run_lowered, run_program
from tensorlang.ir.affine import evaluate
from tensorlang.ir.program import Program
from tensorlang.ir.verify import verify_lowered, verify_scheduled
from tensorlang.lower.pipeline import lowering_steps

M, N, K, B = tl.dims("M N K B")

NUMPY: dict[str, Any] = {
    "bool": np.bool_, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
    "u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64, "f16": np.float16,
    "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64,
}  # fmt: skip
SPECIAL = (0.0, -0.0, math.inf, -math.inf, math.nan, 1.0, 1.0, 2.0)
COMBINES = {"add": lambda a, b: a + b, "mul": lambda a, b: a * b, "min": min, "max": max}


def at_every_level(op: Any, *arrays: Any) -> list[Any]:
    """Return the results of the reference, of each pass in the interpreter, and compiled."""
    definition = op.definition()
    sizes = {
        size: array.shape[axis]
        for tensor, array in zip(definition.inputs, arrays, strict=True)
        for axis, extent in enumerate(tensor.shape)
        for size in [extent.terms[0][0]]
    }
    results = [op.reference(*arrays)]
    for name, program in lowering_steps(tl.schedule(op).program):
        if isinstance(program, Program):
            verify_scheduled(program)
            if name == "place_inits":
                inputs = dict(zip(definition.inputs, arrays, strict=True))
                found = run_program(program, inputs, sizes)
                results.append(found[definition.outputs[0]])
        else:
            verify_lowered(program)
            values = [sizes[size] for size in program.sizes]
            shape = tuple([evaluate(form, sizes) for form in definition.outputs[0].shape])
            results.append(run_lowered(program, arrays, [], values, [shape])[0])
    results.append(tl.compile(tl.schedule(op))(*arrays))
    results.append(op(*arrays))
    return results


@functools.cache
def argsort_of(dtype: str, axis: int, descending: bool) -> Any:
    element: Any = getattr(tl, dtype)

    @tl.compute
    def positions(x: element[M, N]):
        return tl.argsort(x, axis=axis, descending=descending)

    return positions


def in_order(row: list[Any], descending: bool) -> list[int]:
    def rank(place: int) -> tuple[bool, float]:
        number = float(row[place]) if isinstance(row[place], float) else row[place]
        return (True, 0) if number != number else (False, number)

    places = sorted(range(len(row)), key=rank, reverse=False)
    if descending:  # Python's reverse keeps the order of equals
        places = sorted(range(len(row)), key=rank, reverse=True)
    return places


@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from(sorted(NUMPY)),
    st.sampled_from([(0, False), (1, False), (1, True)]),
    st.tuples(st.integers(0, 3), st.integers(0, 6)),
    st.integers(0, 2**32 - 1),
)
def test_argsort_is_stable_and_nan_is_the_greatest(
    dtype: str, how: tuple[int, bool], shape: tuple[int, int], seed: int
) -> None:
    axis, descending = how
    random = np.random.default_rng(seed)
    numbers = random.choice(SPECIAL, shape) if "f" in dtype else random.integers(0, 4, shape)
    if dtype[0] == "i":
        numbers = numbers - 2
    x = numbers.astype(NUMPY[dtype])
    rows = np.moveaxis(x, axis, -1)
    expected = np.zeros(rows.shape, np.int64)
    for place in np.ndindex(*rows.shape[:-1]):
        row = [v.item() if dtype != "bf16" else float(v) for v in rows[place]]
        expected[place] = in_order(row, descending)
    expected = np.moveaxis(expected, -1, axis)
    for result in at_every_level(argsort_of(dtype, axis, descending), x):
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("count", [0, 1, 2, 3, 17, 64, 65, 1000])
@pytest.mark.parametrize("fixed", [False, True])
def test_sort_of_many_sizes(count: int, fixed: bool) -> None:
    x = np.random.default_rng(count).standard_normal((3, count)).astype(np.float32)
    compiled = tl.compile(sorted_rows, N=count) if fixed else sorted_rows
    np.testing.assert_array_equal(compiled(x), np.sort(x, axis=1))
    np.testing.assert_array_equal(compiled(x[:, ::-1]), np.sort(x, axis=1))


@tl.compute
def sorted_rows(x: tl.f32[M, N]):
    return tl.sort(x)


@tl.compute
def best(x: tl.f32[M, N]):
    values, places = tl.topk(x, 3)
    return values, places


@tl.compute
def ranked(x: tl.f32[M, N]):
    """The softmax of the greatest elements: a routine between stages of other kinds."""
    scaled = tl.tensor(x[i, j] * 2 for i in M for j in N)
    values, places = tl.topk(scaled, 2)  # noqa: RUF059  (names the stage)
    e = tl.tensor(tl.exp(values[i, j] - values[i, 0]) for i in M for j in tl.range(2))
    total = tl.tensor(tl.sum(e[i, j] for j in tl.range(2)) for i in M)
    return tl.tensor(e[i, j] / total[i] for i in M for j in tl.range(2))


def test_topk_returns_values_and_positions() -> None:
    x = np.array([[1, 5, 5, 2], [np.nan, 0, 1, 2]], np.float32)
    values, places = best(x)
    np.testing.assert_array_equal(values, [[5, 5, 2], [np.nan, 2, 1]])
    np.testing.assert_array_equal(places, [[1, 2, 3], [0, 3, 2]])
    with pytest.raises(ValueError, match="3"):
        best(x[:, :2])


def test_routines_between_other_stages() -> None:
    x = np.random.default_rng(0).standard_normal((5, 9)).astype(np.float32)
    np.testing.assert_allclose(ranked(x), ranked.reference(x), rtol=1e-6)
    s = tl.schedule(ranked)
    s.compute_at("places.order", s["places"].loops[0])
    s.parallel(s["places"].loops[0])
    assert s.verify().ok
    np.testing.assert_allclose(tl.compile(s)(x), ranked.reference(x), rtol=1e-6)


# --- scatter ---------------------------------------------------------------------------------


@functools.cache
def scatter_of(dtype: str, index: str, combine: str | None) -> Any:
    element: Any = getattr(tl, dtype)
    integer: Any = getattr(tl, index)

    @tl.compute
    def updated(base: element[B, N], rows: integer[K], value: element[K, N]):
        return tl.scatter(base, (((rows[k], j), value[k, j]) for k in K for j in N), combine)

    return updated


@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from(sorted(NUMPY)),
    st.sampled_from(["i8", "i32", "i64", "u8", "u64"]),
    st.sampled_from([None, *COMBINES]),
    st.tuples(st.integers(1, 4), st.integers(0, 3), st.integers(0, 5)),
    st.integers(0, 2**32 - 1),
)
def test_scatter_updates_in_order(
    dtype: str, index: str, combine: str | None, sizes: tuple[int, int, int], seed: int
) -> None:
    if dtype == "bool" and combine in ("add", "mul"):
        return
    extent, width, updates = sizes
    random = np.random.default_rng(seed)
    base = random.integers(0, 3, (extent, width)).astype(NUMPY[dtype])
    rows = random.integers(0, extent, updates).astype(NUMPY[index])
    value = random.integers(0, 3, (updates, width)).astype(NUMPY[dtype])
    expected = base.copy()
    with np.errstate(over="ignore"):
        for k in range(updates):
            for j in range(width):
                at = int(rows[k]), j
                new = value[k, j]
                expected[at] = new if combine is None else COMBINES[combine](expected[at], new)
    for result in at_every_level(scatter_of(dtype, index, combine), base, rows, value):
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize(("index", "bad"), [("i64", -1), ("i8", 3), ("u64", 2**64 - 1)])
def test_a_scatter_out_of_range_is_an_index_error(index: str, bad: int) -> None:
    op = scatter_of("f32", index, "add")
    base, value = np.zeros((3, 2), np.float32), np.ones((2, 2), np.float32)
    rows = np.array([0, bad], NUMPY[index])
    with pytest.raises(IndexError, match="out of range for axis 0 of updated, which has 3"):
        op.reference(base, rows, value)
    with pytest.raises(IndexError, match="leaves axis 0 of updated, which has 3 elements"):
        op(base, rows, value)


def test_scatter_reads_expressions_and_nests() -> None:
    @tl.compute
    def histogram(x: tl.f32[N], zeros: tl.i64[B]):
        counts = tl.scatter(zeros, ((tl.cast(x[i], tl.i64), 1) for i in N), "add")
        return tl.scatter(counts, ((B - 1, tl.sum(counts[b] for b in B)) for _ in tl.range(1)))

    x = np.array([0.5, 1.2, 1.9, 3.0], np.float32)
    np.testing.assert_array_equal(histogram(x, np.zeros(5, np.int64)), [1, 2, 0, 1, 4])


# --- schedules and mistakes ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        (lambda s: s.split("order/j", 4), "its loop j.i is not that of the axis j"),
        (lambda s: s.parallel("order/j"), "its loop j is parallel"),
        (lambda s: s.vectorize("order/j"), "vectorize"),
        (lambda s: s.reorder("order/j", "order/i"), "its loop i is not that of the axis j"),
        (lambda s: s.fuse("order/i", "order/j"), "its loops are not all there"),
        (lambda s: s.compute_inline("sorted_rows.order"), "is a sort, and has no expression"),
        (lambda s: s.peel("order/j"), "peel"),
    ],
)
def test_a_sort_stays_whole(step: Any, reason: str) -> None:
    s = tl.schedule(sorted_rows)
    before = str(s)
    with pytest.raises(tl.ScheduleError, match=reason):
        step(_Named(s))
    assert str(s) == before


class _Named:
    """A schedule whose loops are named by a short word for their stage."""

    def __init__(self, schedule: Any) -> None:
        self.schedule = schedule

    def __getattr__(self, name: str) -> Any:
        def call(*args: Any) -> Any:
            return getattr(self.schedule, name)(
                *[self._of(a) if isinstance(a, str) else a for a in args]
            )

        return call

    def _of(self, text: str) -> Any:
        if not text.startswith("order/"):
            return text
        return self.schedule["sorted_rows.order"].loops["ij".index(text[-1])]


def test_the_refusal_says_what_may_be_scheduled() -> None:
    s = tl.schedule(sorted_rows)
    with pytest.raises(tl.ScheduleError) as caught:
        s.parallel(s["sorted_rows.order"].loops[1])
    text = str(caught.value)
    assert "sorted_rows.order is a sort, computed as a whole over j, and its loop j is" in text
    assert "leave the loops over j as they are" in text


def test_rows_may_be_scheduled() -> None:
    s = tl.schedule(sorted_rows)
    outer, inner = s.split(s["sorted_rows.order"].loops[0], 2)
    s.parallel(outer)
    s.unroll(inner)
    s.cache_read("x", at=outer)
    x = np.random.default_rng(1).standard_normal((7, 5)).astype(np.float32)
    np.testing.assert_array_equal(tl.compile(s)(x), np.sort(x, 1))


def test_a_definition_with_routines_survives_json_and_pickle() -> None:
    x = np.array([[3, 1, 2]], np.float32)
    again = tl.Schedule.from_json(tl.schedule(best).to_json())
    assert str(again.program) == str(tl.schedule(best).program)
    np.testing.assert_array_equal(tl.compile(again)(x)[1], [[0, 2, 1]])
    copy = pickle.loads(pickle.dumps(best))
    np.testing.assert_array_equal(copy(x)[0], [[3, 2, 1]])


def test_routines_print_as_what_they_do() -> None:
    assert "sorted_rows.order[i < M, j < N] = order(x[i, :]) along axis 1" in str(sorted_rows)
    text = str(scatter_of("f32", "i64", "add"))
    assert "scatter(base[e0, e1], (rows" in text or "scatter(base[e0, e1], (updated.index0" in text


def _define(body: Any) -> Any:
    @tl.compute
    def op(x: tl.f32[M, N], ids: tl.i64[N], bits: tl.bool[N]):
        return body(x, ids, bits)

    return op.definition()


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (lambda x, i, b: tl.sort(x, axis=2), "x has 2 axes; tl.sort cannot run along axis 2"),
        (lambda x, i, b: tl.argsort(3), "tl.argsort takes a tensor, not 3"),
        (lambda x, i, b: tl.topk(x, -1), "k of tl.topk is -1; it must not be negative"),
        (lambda x, i, b: tl.topk(x, 0.5), "must be an integer or a size"),
        (
            lambda x, i, b: tl.scatter(i, ((i[j], 1.5) for j in N)),
            "the values of tl.scatter are f64 and the base is i64; cast them",
        ),
        (lambda x, i, b: tl.scatter(x, ((i[j], 1.0) for j in N)), "x has 2 axes, but the update's"),
        (lambda x, i, b: tl.scatter(i, (i[j] for j in N)), "must be a pair of an index and"),
        (lambda x, i, b: tl.scatter(i, ((x[0, j], 1) for j in N)), "index 0 of ids must be an int"),
        (lambda x, i, b: tl.scatter(i, ((i[j], 1) for j in N), "or"), "combine of tl.scatter must"),
        (lambda x, i, b: tl.scatter(b, ((i[j], True) for j in N), "add"), "bools have no add"),
        (lambda x, i, b: tl.tensor(tl.sort(x)[i, j] for i in M for j in N), "inside a compreh"),
    ],
)
def test_mistakes(body: Any, message: str) -> None:
    with pytest.raises(tl.DefinitionError) as caught:
        _define(body)
    assert message in str(caught.value)
    assert "test_routines.py" in str(caught.value)
