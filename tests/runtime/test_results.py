import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorlang.runtime.recycling import allocate
from tensorlang.runtime.results import overlaps, overlaps_itself


@pytest.mark.parametrize("shape", [(), (0, 3), (1,), (7, 5), (1000, 1000)])
@pytest.mark.parametrize("dtype", [np.bool_, np.float32, np.int64])
def test_allocations_are_aligned_and_writable(shape, dtype):
    arrays = [allocate(shape, np.dtype(dtype)) for _ in range(5)]
    for array in arrays:
        assert array.ctypes.data % 64 == 0
        assert array.flags.c_contiguous
        assert array.shape == shape
        array[...] = 1
        assert array.all()
    if arrays[0].size:
        assert not any(overlaps(arrays[0], other) for other in arrays[1:])


def positions(array):
    """Return the address of every byte that the array's elements hold, element by element."""
    result = []
    for index in np.ndindex(array.shape):
        offset = sum(i * s for i, s in zip(index, array.strides, strict=True))
        result.append([array.ctypes.data + offset + byte for byte in range(array.itemsize)])
    return result


views = st.tuples(
    st.lists(st.tuples(st.integers(0, 4), st.integers(-6, 6)), max_size=3),
    st.integers(54, 74),
)


def make_view(memory, axes, offset):
    shape, strides = [n for n, _ in axes], [s for _, s in axes]
    return np.ndarray(shape, np.int16, memory, offset, strides)


@given(views, views)
def test_overlap_is_decided_exactly(left, right):
    memory = np.zeros(140, np.uint8)
    arrays = [make_view(memory, *view) for view in (left, right)]
    places = [positions(array) for array in arrays]
    for array, elements in zip(arrays, places, strict=True):
        together = [byte for element in elements for byte in element]
        assert overlaps_itself(array) == (len(set(together)) != len(together))
    left_bytes, right_bytes = ({byte for element in p for byte in element} for p in places)
    shared = left_bytes & right_bytes
    assert overlaps(*arrays) == bool(shared)


def test_in_doubt_overlap_is_assumed():
    memory = np.zeros(16, np.int8)
    wide = np.lib.stride_tricks.as_strided(memory, (2000, 2000), (3, 2))
    assert overlaps_itself(wide)
