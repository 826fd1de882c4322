"""Indices beyond 2^31 and 2^32, in memory that exists where it is touched."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import tensorlang as tl

N, C = tl.dims("N C")
FAR = 2**32 + 2**16


@pytest.fixture(scope="module")
def memory():
    """4 GiB of zeros that take no space until they are written."""
    try:
        return np.zeros(FAR, np.uint8)
    except MemoryError:
        pytest.skip("no address space for 4 GiB")


@tl.compute
def window(x: tl.u8[N], *, start: int):
    """Elements from a constant index on."""
    return tl.tensor(x[i + start] for i in tl.range(40))


@tl.compute
def column(x: tl.u8[N, C]):
    """The last column: indices are multiples of a size."""
    return tl.tensor(x[i, C - 1] for i in N)


@settings(max_examples=8)
@given(st.integers(0, FAR - 40))
@example(2**31 - 3)
@example(2**32 - 3)
@example(2**32 + 7)
def test_a_constant_index(memory, start):
    memory[start : start + 40] = values = np.arange(1, 41, dtype=np.uint8)
    s = tl.schedule(window, start=start)
    s.vectorize(s.split(s.loops[0], 8)[1])
    for function in (tl.compile(s), tl.compile(window, start=start)):
        np.testing.assert_array_equal(function(memory), values)


@settings(max_examples=8)
@given(st.integers(2, 5), st.integers(2**28, 2**30))
@example(3, 2**30 + 1)
def test_products_of_sizes(memory, rows, columns):
    rows = min(rows, memory.size // columns)
    matrix = memory[: rows * columns].reshape(rows, columns)
    matrix[:, -1] = np.arange(1, rows + 1)
    np.testing.assert_array_equal(column(matrix), np.arange(1, rows + 1))
