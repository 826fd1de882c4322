"""The whole way: an operator or a schedule in, results of machine code out."""

import pickle
import re
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorlang as tl
from tensorlang.driver import SpecializingFunction, compile
from tensorlang.runtime.callable import CompiledFunction
from tensorlang.schedule.entry import schedule

M, N, K = tl.dims("M N K")


@tl.compute
def matmul(A: tl.f32[M, K], B: tl.f32[K, N]):
    return tl.tensor(tl.sum(A[i, k] * B[k, j] for k in K) for i in M for j in N)


@tl.compute
def axpy(x: tl.f64[N], y: tl.f64[N], *, alpha: tl.f64 = 2.0):
    return tl.tensor(alpha * x[i] + y[i] for i in N)


@tl.compute
def relu(x):
    return tl.tensor(tl.maximum(x[i], 0) for i in tl.grid(x.shape))


@tl.compute
def spread(x):
    return tl.tensor(x[i] * 2 for i in tl.grid(x.shape)), tl.max(x[i] for i in tl.grid(x.shape))


@tl.compute
def shift(x: tl.f32[N], *, by: int = 1):
    return tl.tensor(tl.where(i >= by, x[i - by], 0) for i in N)


@tl.compute
def iota(*, n: tl.Dim):
    return tl.tensor(tl.cast(i, tl.i64) for i in tl.range(n))


@tl.compute
def lookup(table: tl.f32[M, K], ids: tl.i64[N]):
    return tl.tensor(table[ids[i], j] for i in N for j in K)


@tl.compute
def best(x: tl.f32[M, N]):
    return tl.tensor(tl.argmax(x[i, j] for j in N) for i in M)


@tl.compute
def biased(x: tl.f32[N], bias: tl.f32[N] = None):
    if bias is None:
        return tl.tensor(x[i] * 1 for i in N)
    return tl.tensor(x[i] + bias[i] for i in N)


def numbers(*shape, dtype=np.float32):
    return (np.arange(np.prod(shape, dtype=int)).reshape(shape) % 11 - 5).astype(dtype)


def tiled():
    s = schedule(matmul)
    i, j, k = s.loops
    io, ii = s.split(i, 4)
    jo, ji = s.split(j, 8)
    s.reorder(io, jo, k, ii, ji)
    s.parallel(io)
    s.unroll(ii)
    s.vectorize(ji)
    return s


@pytest.fixture(scope="module")
def tiled_matmul():
    return compile(tiled())


sizes = st.sampled_from([0, 1, 2, 3, 5, 8, 13, 16, 31])


@settings(max_examples=30, deadline=None)
@given(sizes, sizes, sizes)
def test_operator_and_schedule_agree_with_numpy(tiled_matmul, m, n, k):
    a, b = numbers(m, k), numbers(k, n)
    for function in (matmul, tiled_matmul):
        result = function(a, b)
        assert result.shape == (m, n)
        np.testing.assert_array_equal(result, a @ b)


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x[::-1],
        lambda x: x[:, ::-1],
        lambda x: x[::2, 1:],
        lambda x: x[:, ::3],
        lambda x: np.asfortranarray(x),
        lambda x: np.broadcast_to(x[:1], x.shape),
        lambda x: np.broadcast_to(x[:, :1], x.shape),
    ],
)
def test_any_strides(tiled_matmul, view):
    a, b = view(numbers(16, 15)), np.asfortranarray(numbers(15, 31))[:, ::2]
    b = b[: a.shape[1]]
    out = view(numbers(32, 48)) if view(numbers(32, 48)).flags.writeable else numbers(32, 48)
    out = out[: a.shape[0], : b.shape[1]]
    for function in (matmul, tiled_matmul):
        np.testing.assert_array_equal(function(a, b), np.asarray(a) @ b)
        assert function(a, b, out=out) is out
        np.testing.assert_array_equal(out, np.asarray(a) @ b)


def test_fixed_sizes_and_attributes():
    f = compile(matmul, M=64, K=4)
    np.testing.assert_array_equal(f(numbers(64, 4), numbers(4, 7)), numbers(64, 4) @ numbers(4, 7))
    with pytest.raises(ValueError, match=r"matmul: axis 0 of A has size 2, but 64 is expected"):
        f(numbers(2, 4), numbers(4, 7))
    g = compile(shift, by=2)
    assert g(numbers(4)).tolist() == [0, 0, -5, -4]
    assert g(numbers(4), by=2).tolist() == [0, 0, -5, -4]
    assert shift(numbers(4)).tolist() == [0, -5, -4, -3]
    assert shift(numbers(4), by=3).tolist() == [0, 0, 0, -5]
    with pytest.raises(TypeError, match="was compiled with by=2, which 3 cannot replace"):
        g(numbers(4), by=3)


def test_scalars_and_sizes_by_keyword():
    x, y = numbers(9, dtype=np.float64), numbers(9, dtype=np.float64)
    f = compile(axpy)
    for function in (axpy, f):
        np.testing.assert_array_equal(function(x, y), 3 * x)
        np.testing.assert_array_equal(function(x, y, alpha=3), 4 * x)
    assert iota(n=4).tolist() == [0, 1, 2, 3]
    assert compile(iota)(n=np.int32(3)).tolist() == [0, 1, 2]
    assert compile(iota, n=2)().tolist() == [0, 1]
    assert iota(n=0).shape == (0,)


def test_optional_tensors():
    x = numbers(5)
    assert biased(x).tolist() == x.tolist()
    assert biased(x, x).tolist() == (2 * x).tolist()
    f = compile(biased)
    assert f(x).tolist() == f(x, None).tolist() == x.tolist()
    with pytest.raises(TypeError, match="biased was compiled without bias, which must be None"):
        f(x, x)
    assert compile(biased, bias=tl.f32[N])(x, x).tolist() == (2 * x).tolist()


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "i8"])
@pytest.mark.parametrize("shape", [(), (0,), (7,), (3, 0), (3, 5), (2, 3, 5)])
def test_generic_operators_follow_their_arguments(dtype, shape):
    x = numbers(*shape, dtype=dtype)
    result = relu(x)
    assert isinstance(result, np.ndarray)
    assert (result.dtype, result.shape) == (x.dtype, x.shape)
    np.testing.assert_array_equal(result, np.maximum(x, 0))
    doubled, top = spread(x)
    np.testing.assert_array_equal(doubled, 2 * x)
    assert top.shape == ()
    if x.size:
        assert top == x.max()


def test_compile_of_a_generic_operator():
    f = compile(relu)
    assert isinstance(f, SpecializingFunction)
    assert f(numbers(5)).tolist() == [0, 0, 0, 0, 0]
    assert f.function_for(numbers(5)) is f.function_for(numbers(9))
    assert f.function_for(numbers(5)) is not f.function_for(numbers(5, dtype="f8"))
    assert f.time(numbers(5), seconds=0.0).samples >= 5
    with pytest.raises(TypeError, match="relu has no attribute 'axis' that can be fixed"):
        compile(relu, axis=1)


def test_threads_share_one_compilation(monkeypatch):
    @tl.compute
    def triple(x: tl.f32[N]):
        return tl.tensor(x[i] * 3 for i in N)

    import tensorlang.driver.pipeline as pipeline

    built, original = [], pipeline.build_kernel
    monkeypatch.setattr(
        pipeline, "build_kernel", lambda *args: (built.append(1), original(*args))[1]
    )
    results = []
    threads = [
        threading.Thread(target=lambda: results.append(triple(numbers(5)).tolist()))
        for _ in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [(3 * numbers(5)).tolist()] * 6
    assert len(built) == 1


def test_proof_of_what_was_written_by_hand(monkeypatch, tiled_matmul):
    assert "proved" in str(tiled_matmul.report)
    assert "not needed: every step was taken by a rule" in str(compile(shift).report)
    s = tiled()

    def refuse():
        raise tl.ScheduleError("C[0, 0] is read before it is written")

    monkeypatch.setattr(s, "verify", refuse)
    monkeypatch.setattr("tensorlang.driver.kept.the_store", lambda: None)  # which has the proof
    with pytest.raises(tl.ScheduleError, match="is read before it is written"):
        compile(s)
    assert "skipped: verify=False" in str(compile(s, verify=False).report)


def test_naive_loops_stay_as_they_are_shown():
    f = compile(schedule(matmul))
    assert f.source("schedule") == str(schedule(matmul))
    np.testing.assert_array_equal(f(numbers(3, 4), numbers(4, 5)), numbers(3, 4) @ numbers(4, 5))


def test_sources(tiled_matmul):
    assert "parallel for i.o" in tiled_matmul.source("schedule")
    assert "vectorized for j.i in 8" in tiled_matmul.source("loops")
    assert "<8 x float>" in tiled_matmul.source("llvm")
    assert ".text" in tiled_matmul.source("asm")


@pytest.mark.parametrize("make", [lambda: lookup, lambda: compile(lookup)])
def test_indices_from_data_are_checked(make):
    function, table = make(), numbers(4, 3)
    ids = np.array([3, 0, 1])
    np.testing.assert_array_equal(function(table, ids), table[ids])
    for bad in (4, -1, 2**40):
        with pytest.raises(IndexError) as caught:
            function(table, np.array([0, bad]))
        lines = str(caught.value).splitlines()
        assert lines[0] == f"lookup: index {bad} leaves axis 0 of table, which has 4 elements"
        assert "return tl.tensor(table[ids[i], j] for i in N for j in K)" in lines[1]
    assert function(numbers(0, 3), np.array([], np.int64)).shape == (0, 3)


def test_bounds_checks_can_be_left_out():
    f = compile(lookup, check_bounds=False)
    table = numbers(4, 3)
    np.testing.assert_array_equal(f(table[1:3], np.array([1, 0])), table[[2, 1]])
    np.testing.assert_array_equal(f(table[1:3], np.array([-1])), table[:1])


def test_argmax_of_nothing():
    assert best(numbers(2, 7)).tolist() == numbers(2, 7).argmax(1).tolist()
    assert best(np.zeros((0, 0), np.float32)).shape == (0,)
    with pytest.raises(ValueError, match="best: argmax needs at least one element: N must"):
        best(np.zeros((2, 0), np.float32))


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: compile(3), TypeError,
         "tl.compile takes an operator (@tl.compute), a schedule or a graph, found int"),
        (lambda: compile(schedule(matmul), M=3), TypeError,
         "a schedule has its sizes and attributes already: give M= to tl.schedule"),
        (lambda: compile(matmul, M="a"), TypeError,
         "matmul: the size M must be an integer, not 'a'"),
        (lambda: compile(matmul, M=5.7), TypeError,
         "matmul: the size M must be an integer, not 5.7"),
        (lambda: compile(matmul, opt_level=7), ValueError,
         "opt_level must be 0, 1, 2 or 3, found 7"),
    ],
)  # fmt: skip
def test_mistakes(call, error, text):
    with pytest.raises(error, match=f"^{re.escape(text)}$"):
        call()


def test_compiled_functions_pickle():
    s = schedule(axpy)
    s.vectorize(s.split("i", 4)[1])
    for function in (compile(s), compile(axpy, N=5), compile(relu)):
        again = pickle.loads(pickle.dumps(function))
        x, y = np.arange(5.0), np.ones(5)
        arguments = (x,) if function.__name__ == "relu" else (x, y)
        np.testing.assert_array_equal(again(*arguments), function(*arguments))
    assert "proved" in str(pickle.loads(pickle.dumps(compile(s))).report)


@pytest.mark.parametrize(
    "options",
    [
        {"target": "cpu -mcpu=x86-64-v2", "opt_level": 1},
        {"fast_math": True, "N": 5},
        {"check_bounds": False, "verify": False},
    ],
)
def test_pickles_keep_options_targets_and_sizes(options):
    first = compile(axpy, **options)
    again = pickle.loads(pickle.dumps(first))
    for kind in ("schedule", "loops", "llvm", "asm"):
        assert again.source(kind) == first.source(kind)
    assert again.report.target == first.report.target == options.get("target", "cpu")
    arguments = np.arange(5.0), np.ones(5)
    np.testing.assert_array_equal(again(*arguments), first(*arguments))


@pytest.mark.parametrize("target", ["gpu", "cpu -march=x", "cpu -mcpu=nonsense", ""])
def test_unknown_targets(target):
    with pytest.raises(tl.CompileError, match=re.escape(f'target "{target}"')):
        compile(matmul, target)


@pytest.mark.parametrize("wrong", [{"P": 3}, {"opt_levle": 3}])
def test_names_that_the_operator_does_not_have(wrong):
    with pytest.raises((TypeError, ValueError), match=next(iter(wrong))):
        compile(matmul, **wrong)


def test_first_and_later_calls_refuse_alike():
    @tl.compute
    def double(x: tl.f32[N]):
        return tl.tensor(x[i] * 2 for i in N)

    messages = []
    for _ in range(2):
        for wrong in (numbers(3, dtype="f8"), numbers(3, 3), [1.0]):
            with pytest.raises((TypeError, ValueError)) as caught:
                double(wrong)
            messages.append(str(caught.value))
        double(numbers(3))
        double(numbers(3))
    assert messages[:3] == messages[3:]


def test_options_reach_the_backend():
    assert isinstance(compile(matmul, "cpu -mcpu=x86-64"), CompiledFunction)
    assert "ymm" not in compile(axpy, "cpu -mcpu=x86-64").source("asm")
    quick = compile(axpy, opt_level=0)
    assert quick(numbers(3, dtype="f8"), numbers(3, dtype="f8")).tolist() == [-15, -12, -9]
