import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorlang.testing import assert_close

INF, NAN = np.inf, np.nan


def message(*args, **keywords):
    with pytest.raises(AssertionError) as error:
        assert_close(*args, **keywords)
    return str(error.value)


@given(st.lists(st.floats(width=32)), st.sampled_from([np.float16, np.float32, np.float64]))
def test_an_array_agrees_with_itself(values, dtype):
    with np.errstate(all="ignore"):
        array = np.array(values).astype(dtype)
    assert_close(array, array.copy(), rtol=0, atol=0)
    assert_close(array, array.copy())


@given(st.floats(1e-30, 1e30), st.sampled_from([np.float32, np.float64]), st.integers(0, 40))
def test_a_few_roundings_are_allowed_and_not_many(value, dtype, steps):
    value = dtype(value)
    moved = value
    for _ in range(steps):
        moved = np.nextafter(moved, dtype(INF))
    if steps <= 14:
        assert_close(moved, value, atol=0)
    elif steps > 33:
        assert "1 of 1 elements is not close" in message(moved, value, atol=0)


def test_the_worst_element_is_shown():
    actual, expected = np.ones((3, 4), np.float32), np.ones((3, 4))
    actual[1, 2], actual[2, 0] = 1.5, 0.75
    assert message(actual, expected) == (
        "2 of 12 elements are not close (f32: rtol=1.9e-06, atol=1.9e-06)\n"
        "worst at [1, 2]: 1.5, expected 1.0; off by 0.5, allowed 3.8e-06"
    )


@pytest.mark.parametrize(
    ("actual", "expected"),
    [(NAN, 1.0), (1.0, NAN), (INF, 1.0), (1.0, INF), (INF, -INF), (INF, NAN)],
)
def test_special_values_agree_only_with_themselves(actual, expected):
    text = message(np.float32([5, actual]), np.float32([6, expected]), rtol=1e9)
    assert f"worst at [1]: {actual}, expected {expected}" in text


def test_integers_and_bool_must_be_equal():
    assert_close(np.int32([1, 2]), np.int64([1, 2]))
    assert message(np.int32([1, 2, 4]), np.int64([1, 3, 3])) == (
        "2 of 3 elements are not equal\nfirst at [1]: 2, expected 3"
    )
    assert (
        message(True, False) == "1 of 1 elements is not equal\nfirst at [()]: True, expected False"
    )
    big = np.array([2**63 - 1])
    assert "not equal" in message(big, big - 1)


def test_shapes_and_counts_must_agree():
    assert message(np.zeros((2, 3)), np.zeros((3, 2))) == "shape (2, 3), expected (3, 2)"
    assert message((np.zeros(2), np.zeros(1)), np.zeros(2)) == "2 results, expected 1"
    assert message((1.0, 2.0), (1.0, 3.0)).startswith("result 1: 1 of 1 elements is not close")
    assert_close(np.zeros((0, 3), np.float32), np.zeros((0, 3)))
    assert_close((1.0, np.int32(2)), (1.0, 2))


def test_the_less_precise_dtype_sets_the_tolerance():
    assert_close(np.float16(1.002), np.float32(1.0))
    assert "f16" in message(np.float16(1.02), np.float64(1.0))
    assert_close(np.float64(1.0 + 1e-6), np.float32(1.0))
    assert "f64: rtol=3.6e-15" in message(np.float64(1.0 + 1e-6), np.float64(1.0))
    ml_dtypes = pytest.importorskip("ml_dtypes")
    assert_close(np.array(1.01, ml_dtypes.bfloat16), 1.0)
    assert "bf16" in message(np.array(1.1, ml_dtypes.bfloat16), 1.0)


def test_terms_allow_for_cancellation_in_long_sums():
    expected = np.array([1e4, 1e-3])
    actual = expected.astype(np.float32) + np.float32(3e-3)
    assert "worst at [1]" in message(actual, expected)
    assert_close(actual, expected, terms=100)
    assert "not close" in message(actual + np.float32(1), expected, terms=100)


def test_given_tolerances_replace_the_defaults():
    assert_close(np.float32(1.1), 1.0, rtol=0.2)
    assert "rtol=0, atol=0.01" in message(np.float32(1.1), 1.0, rtol=0, atol=0.01)


def test_other_kinds_of_arrays():
    assert_close([1.0, 2.0], np.array([1.0, 2.0]))

    class OnlyDlpack:
        def __init__(self, array):
            self.array = array

        def __dlpack__(self, **keywords):
            return self.array.__dlpack__(**keywords)

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

    assert_close(OnlyDlpack(np.ones(3)), np.ones(3))
