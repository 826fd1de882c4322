"""Indices and comparisons near the ends of i64, and integers that i64 does not hold."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorlang as tl
from tests.fuzz.case import interpret

N, T = tl.dims("N T")


@pytest.mark.parametrize("limit", [2**63 - 1, -(2**63), 2**61, -(2**61), 2**62, 2**40, 0])
def test_axes_compare_with_every_i64(limit: int) -> None:
    @tl.compute
    def compared(x: tl.i64[N]):
        return tl.tensor(tl.where(i < limit, x[i], 0) + tl.where(i > limit, 2 * x[i], 0) for i in N)

    x = np.ones(4, np.int64)
    places = range(4)
    expected = [int(i < limit) + 2 * int(i > limit) for i in places]
    s = tl.schedule(compared)
    for result in (compared(x), compared.reference(x), interpret(s.program, [x]), tl.compile(s)(x)):
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize(
    ("make", "number"),
    [(lambda i: i + (2**63 - 1), 2**63 - 1), (lambda i: i * 2**40, 2**40)],
)
def test_an_index_form_that_could_leave_i64_is_refused(make: Any, number: int) -> None:
    @tl.compute
    def far(x: tl.i64[N]):
        return tl.tensor(tl.where(make(i) > 0, x[i], 0) for i in N)

    with pytest.raises(tl.DefinitionError, match=f"an index expression holds {number}"):
        far.definition()


def test_values_wrap_where_indices_do_not() -> None:
    @tl.compute
    def wrapped(x: tl.i64[N]):
        return tl.tensor(tl.cast(i, tl.i64) * x[i] + (2**63 - 1) for i in N)

    x = np.ones(3, np.int64)
    with np.errstate(over="ignore"):
        expected = np.arange(3, dtype=np.int64) + np.int64(2**63 - 1)
    np.testing.assert_array_equal(wrapped(x), expected)
    np.testing.assert_array_equal(wrapped.reference(x), expected)


@pytest.mark.parametrize("bad", [2**64 - 1, 2**63, 2**63 + 1, 5])
def test_a_gather_at_a_great_u64_is_out_of_range_and_not_negative(bad: int) -> None:
    @tl.compute
    def take(table: tl.f32[T], at: tl.u64[N]):
        return tl.tensor(table[at[i]] for i in N)

    table, at = np.arange(5, dtype=np.float32), np.array([4, bad], np.uint64)
    shown = min(bad, 2**63 - 1)
    np.testing.assert_array_equal(take(table, at[:1]), [4])
    with pytest.raises(IndexError, match=f"index {shown} leaves axis 0 of table"):
        take(table, at)
    with pytest.raises(IndexError, match=f"index {shown} is out of range for axis 0"):
        take.reference(table, at)


def test_a_search_of_many_steps_is_traced_and_compiled_in_proportion() -> None:
    steps = 14

    @tl.compute
    def search(table: tl.f32[T], x: tl.f32[N]):
        def place(i: Any) -> Any:
            low = tl.where(table[2 ** (steps - 1) - 1] < x[i], 2 ** (steps - 1), 0)
            for step in reversed(range(steps - 1)):
                low = tl.where(table[low + 2**step - 1] < x[i], low + 2**step, low)
            return low

        return tl.tensor(place(i) for i in N)

    random = np.random.default_rng(0)
    table = np.sort(random.random(2**steps)).astype(np.float32)
    x = random.random(50).astype(np.float32)
    expected = np.searchsorted(table[:-1], x)
    np.testing.assert_array_equal(search.reference(table, x), expected)
    s = tl.schedule(search)
    _, inner = s.split(s.loops[0], 4)
    s.unroll(inner)
    np.testing.assert_array_equal(tl.compile(s)(table, x), expected)  # 2**14 times the work: hours
