import numpy as np
import pytest
from programs import Matmul, naive_program, program, loops
from hypothesis import given, strategies as st
from tensorlang.dtypes import f32, f64, i32, i64, to_numpy
from tensorlang.interpreter.run import run_program

EXTENTS = st.sampled_from([0, 1, 2, 3, 5, 7])

@given(EXTENTS, EXTENTS, EXTENTS, st.sampled_from([f32, f64, i32, i64]))
def test_naive_matmul(m, n, k, dtype):
    op = Matmul(dtype)
    rng = np.random.default_rng(m * 49 + n * 7 + k)
    a, b = (rng.integers(-9, 9, shape).astype(to_numpy(dtype)) for shape in ((m, k), (k, n)))
    result = run_program(naive_program(op.definition), {op.a: a, op.b: b}, op.sizes(m, n, k))
    np.testing.assert_array_equal(result[op.c], a @ b)
    assert result[op.c].dtype == to_numpy(dtype)
