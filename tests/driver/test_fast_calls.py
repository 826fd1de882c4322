"""Calls without Python: whatever is called in whatever order, they answer as slow calls do."""

import gc
import os
import pickle
import subprocess
import sys
import threading
import weakref
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorlang as tl
from tensorlang.runtime.dispatcher import MOST_PLANS, arrays_are_as_expected, dispatcher
from tensorlang.vectorcall import callable_type, close_gate, is_supported, open_gate

ROOT = Path(__file__).parents[2]
M, N = tl.dims("M N")


@tl.compute
def add(x: tl.f32[M, N], y: tl.f32[N]):
    """Add a row."""
    return tl.tensor(x[i, j] + y[j] for i in M for j in N)


@tl.compute
def lookup(table: tl.f32[N], ids: tl.i64[M]):
    return tl.tensor(table[ids[i]] for i in M)


@tl.compute
def scaled(x, *, by: int = 2):
    return tl.tensor(x[i] * by for i in tl.grid(x.shape)), tl.sum(x[i] for i in tl.grid(x.shape))


@tl.compute
def axpy(x: tl.f64[N], *, alpha: tl.f64 = 1.0):
    return tl.tensor(alpha * x[i] for i in N)


@tl.graph
def twice(x: tl.f32[M, N], y: tl.f32[N]):
    h = add(x, y)
    return add(h, y), h


@tl.graph
def once(x: tl.f32[M, N], y: tl.f32[N]):
    return add(x, y)


def numbers(*shape, dtype=np.float32):
    return (np.arange(np.prod(shape, dtype=int)).reshape(shape) % 11 - 5).astype(dtype)


MEMORY = numbers(8, 8)
FROZEN = numbers(4, 6)
FROZEN.flags.writeable = False
MATRICES = [
    numbers(4, 6), numbers(4, 6)[::-1], numbers(8, 12)[::2, ::2], np.asfortranarray(numbers(4, 6)),
    numbers(0, 6), numbers(1, 6), numbers(4, 6, dtype=np.float64), numbers(6), MEMORY[:4, :6],
    np.broadcast_to(numbers(1, 6), (4, 6)), np.frombuffer(bytes(97), np.float32, 24, 1)
    .reshape(4, 6), numbers(4, 6).astype(">f4"), None, "x", 3.0, numbers(5, 5),
]  # fmt: skip
ROWS = [numbers(6), numbers(12)[::2], MEMORY[0, :6], numbers(5), numbers(6).astype(np.int32)]
OUTS = [
    None, numbers(4, 6), numbers(4, 12)[:, ::2], MEMORY[:4, :6], MEMORY[4:, :6], FROZEN,
    MEMORY[1:5, :6], np.lib.stride_tricks.as_strided(numbers(24), (4, 6), (4, 4)), numbers(1, 6),
    "missing",
]  # fmt: skip


def outcome(function, args, keywords):
    """Return what a call gives: values or the error, and whether it is the ``out`` itself."""
    try:
        result = function(*args, **keywords)
    except Exception as error:
        return type(error), str(error)
    parts = result if isinstance(result, tuple) else (result,)
    same = keywords.get("out") is not None and result is keywords["out"]
    return [(p.dtype, p.shape, p.tolist()) for p in parts], same


calls = st.lists(
    st.tuples(
        st.integers(0, len(MATRICES) - 1), st.integers(0, len(ROWS) - 1),
        st.integers(0, len(OUTS) - 1), st.sampled_from(["positional", "named", "mixed"]),
    ),
    min_size=1, max_size=6,
)  # fmt: skip


@settings(max_examples=120, deadline=None)
@given(calls, st.booleans())
def test_fast_and_slow_calls_answer_alike(sequence, compiled):
    function = COMPILED if compiled else add
    for matrix, row, out, style in [*sequence, *sequence, *sequence]:
        x, y = MATRICES[matrix], ROWS[row]
        args, keywords = {
            "positional": ((x, y), {}),
            "named": ((), {"y": y, "x": x}),
            "mixed": ((x,), {"y": y}),
        }[style]
        if not isinstance(OUTS[out], str):
            keywords["out"] = OUTS[out]
        before = MEMORY.copy()
        found = outcome(function, args, keywords)
        MEMORY[...] = before
        close_gate()
        try:
            wanted = outcome(function, args, keywords)
        finally:
            open_gate()
        MEMORY[...] = before
        assert found == wanted


COMPILED = tl.compile(add)


def test_the_third_call_is_fast():
    assert is_supported() == arrays_are_as_expected() == (dispatcher() is not None)
    f = tl.compile(add)
    x, y = numbers(3, 5), numbers(5)
    out = np.zeros_like(x)
    assert f._fast.plans == 0
    for _ in range(3):
        np.testing.assert_array_equal(f(x, y), x + y)
        assert f(x, y, out=out) is out
        assert f(x, y, out=None) is not out
    assert f._fast.plans == 3
    assert type(f) is not type(f).__mro__[1]
    references = sys.getrefcount(x), sys.getrefcount(out), sys.getrefcount(x.dtype)
    for _ in range(100):
        f(x, y)
        f(x, y, out=out)
    assert (sys.getrefcount(x), sys.getrefcount(out), sys.getrefcount(x.dtype)) == references


def test_one_array_for_two_parameters_does_not_bind_them_together():
    @tl.compute
    def minus(x: tl.f32[N], y: tl.f32[N]):
        return tl.tensor(x[i] - y[i] for i in N)

    x, y = numbers(4), np.ones(4, np.float32)
    for _ in range(3):
        assert not minus(x, x).any()
        assert not minus(y=x, x=x).any()
    for _ in range(4):
        np.testing.assert_array_equal(minus(x, y), x - y)
        np.testing.assert_array_equal(minus(x=x, y=y), x - y)
    np.testing.assert_array_equal(minus(y=x, x=y), y - x)
    for wrong in ({"x": x, "z": y}, {"x": x, "out": y}):
        with pytest.raises(TypeError, match=r"has no parameter z|misses the argument y"):
            minus(**wrong)


def test_what_shapes_and_strides_do_not_tell_is_looked_at_each_time():
    f = tl.compile(add)
    memory, y = numbers(9, 8), numbers(6)
    left, apart, across = memory[:4, :6], memory[5:, :6], memory[1:5, :6]
    frozen = apart.copy()
    frozen.flags.writeable = False
    for _ in range(4):
        expected = left + y
        assert f(left, y, out=apart) is apart
        np.testing.assert_array_equal(apart, expected)
        f(frozen, y, out=np.zeros_like(frozen))
    assert f._fast.plans == 2
    with pytest.raises(ValueError, match="shares memory with x"):
        f(left, y, out=across)
    with pytest.raises(ValueError, match="shares memory with x"):
        f(across, y, out=left)
    with pytest.raises(ValueError, match="is read-only"):
        f(frozen.copy(), y, out=frozen)
    with pytest.raises(ValueError, match="shares memory with y"):
        f(np.zeros((1, 6), np.float32), y, out=y.reshape(1, 6))


def test_equal_dtypes_need_not_be_one_object():
    f, x, y = tl.compile(add), numbers(3, 5), numbers(5)
    copies = [pickle.loads(pickle.dumps((x, y))) for _ in range(4)]
    assert copies[0][0].dtype is not x.dtype
    for a, b in [*copies, (x, y)]:
        np.testing.assert_array_equal(f(a, b), x + y)
    assert f._fast.plans == 1
    with pytest.raises(TypeError, match="foreign byte order"):
        f(x.astype(">f4"), y)


def test_plans_are_bounded():
    f = tl.compile(add)
    for columns in range(3 * MOST_PLANS):
        for _ in range(3):
            x, y = numbers(2, columns), numbers(columns)
            np.testing.assert_array_equal(f(x, y), x + y)
    assert 1 <= f._fast.plans <= MOST_PLANS


def test_failures_are_explained_by_the_slow_way():
    f, table = tl.compile(lookup), numbers(5)
    good, bad = np.array([0, 4]), np.array([0, 5])
    for _ in range(4):
        assert f(table, good).tolist() == [-5, -1]
        with pytest.raises(IndexError, match="index 5 leaves axis 0 of table"):
            f(table, bad)
        out = np.zeros(2, np.float32)
        with pytest.raises(IndexError, match="index 5 leaves axis 0 of table"):
            f(table, bad, out=out)
    assert f._fast.plans == 1


def test_several_outputs_and_attributes():
    x, z = numbers(3, 4), numbers(3, 4, dtype=np.float64)
    for _ in range(4):
        for array in (x, z):
            for by in (2, 3):
                product, total = scaled(array, by=by)
                np.testing.assert_array_equal(product, array * by)
                assert (total, product.dtype) == (array.sum(), array.dtype)
    g = tl.compile(axpy)
    v = numbers(5, dtype=np.float64)
    for _ in range(4):
        for alpha in (1.0, 1, True, 2.5, -0.0, 0.0):
            try:
                result = g(v, alpha=alpha)
            except TypeError:
                assert alpha is True
            else:
                np.testing.assert_array_equal(result, alpha * v)
                assert np.signbit(result[5 - 1]) == np.signbit(alpha * v[4])


def test_graphs_reuse_their_memory_but_not_their_results():
    compiled = tl.compile(twice)
    x, y = numbers(3, 5), numbers(5)
    for function in (compiled, twice):
        kept = [function(x, y) for _ in range(5)]
        for last, first in kept:
            np.testing.assert_array_equal(first, x + y)
            np.testing.assert_array_equal(last, x + y + y)
        assert len({last.ctypes.data for last, _ in kept}) == 5
    assert compiled._fast.plans == 1


def test_what_was_called_fast_pickles():
    x, y = numbers(3, 5), numbers(5)
    for function in (tl.compile(add), tl.compile(twice), add, tl.compile(scaled)):
        args = (x,) if function.__name__ == "scaled" else (x, y)
        for _ in range(3):
            expected = function(*args)
        again = pickle.loads(pickle.dumps(function))
        for _ in range(4):
            found = again(*args)
            if not isinstance(found, tuple):
                found, wanted = (found,), (expected,)
            else:
                wanted = expected
            for left, right in zip(found, wanted, strict=True):
                np.testing.assert_array_equal(left, right)


def test_times_are_those_of_fast_calls():
    for function in (tl.compile(add), tl.compile(once)):
        function.time(numbers(2, 3), numbers(3), seconds=0.001)
        assert function._fast.plans == 1


def test_operators_are_inlined_while_tracing_whatever_they_know():
    x, y = numbers(3, 5), numbers(5)
    for _ in range(3):
        add(x, y)

    @tl.compute
    def outer(a: tl.f32[M, N], b: tl.f32[N]):
        try:
            add(x, y)
        except Exception as error:
            seen.append(type(error))
        return add(a, b)

    seen = []
    np.testing.assert_array_equal(outer(x, y), x + y)
    assert seen == [tl.DefinitionError]


def test_the_number_of_threads_is_not_remembered():
    f = tl.compile(add)
    x, y = numbers(300, 700), numbers(700)
    before = tl.get_num_threads()
    for threads in (1, 2, 1):
        tl.set_num_threads(threads)
        assert f._fast.plans == 0
        for _ in range(3):
            np.testing.assert_array_equal(f(x, y), x + y)
        assert f._fast.plans == 1
    tl.set_num_threads(before)


def test_several_threads_use_one_plan():
    f = tl.compile(twice)
    wrong = []

    def work(seed):
        x = numbers(200, 300) + seed
        y = numbers(300)
        for _ in range(40):
            last, first = f(x, y)
            if not ((first == x + y).all() and (last == x + y + y).all()):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_callables_are_collected():
    def make():
        function = tl.compile(add)
        function.myself = function
        for _ in range(3):
            function(numbers(2, 3), numbers(3))
        assert function._fast.plans == 1
        return weakref.ref(function)

    reference = make()
    gc.collect()
    assert reference() is None


def test_the_type_is_that_of_its_class():
    f = tl.compile(add)
    assert callable_type(type(f)) is type(f)
    assert f.__doc__ == "Add a row."
    assert "add" in repr(f)
    assert type(f).__name__ == "CompiledFunction"
    assert callable(f.time)


FORKED = """
import os, sys
import numpy as np, tensorlang as tl
N = tl.dim("N")

@tl.compute
def double(x: tl.f32[N]):
    return tl.tensor(x[i] * 2 for i in N)

s = tl.schedule(double)
s.parallel(s.split("i", 1000)[0])
f = tl.compile(s)
x = np.ones(1_000_000, np.float32)
for _ in range(4):
    assert (f(x) == 2).all()
assert f._fast.plans == 1
child = os.fork()
if child:
    print("done" if os.waitpid(child, 0)[1] == 0 else "failed")
else:
    status = 1
    try:
        for _ in range(4):
            assert (f(x) == 2).all()
        status = 0
    finally:
        os._exit(status)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_forked_children_make_plans_of_their_own():
    done = subprocess.run(
        [sys.executable, "-c", FORKED],
        env={**os.environ, "TENSORLANG_NUM_THREADS": "2", "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout.strip()) == (0, "done"), done.stderr
