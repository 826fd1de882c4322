"""Operators: specialization, arguments, hooks, fixed sizes, texts."""

from __future__ import annotations

import pickle
import re
import subprocess
import sys
import threading

import numpy as np
import pytest

import tensorlang as tl
from tensorlang.errors import DefinitionError
from tensorlang.ir.printer import format_definition
from tensorlang.lang import compute as compute_module

M, N, K = tl.dims("M N K")


@tl.compute
def matmul(A: tl.f32[M, K], B: tl.f32[K, N]):
    """Return the product of two matrices."""
    return tl.tensor(tl.sum(A[i, k] * B[k, j] for k in K) for i in M for j in N)


@tl.compute
def linear(x: tl.f32[M, K], w: tl.f32[N, K], bias=None, *, scale: float = 1.0):
    y = tl.tensor(tl.sum(x[i, k] * w[j, k] for k in K) * scale for i in M for j in N)
    if bias is None:
        return y
    return tl.tensor(y[i, j] + bias[j] for i in M for j in N)


@tl.compute
def double(x):
    return tl.tensor(x[i] + x[i] for i in tl.grid(x.shape))


@tl.compute
def ramp(start: tl.i32, *, n: tl.Dim, step: int = 1):
    return tl.tensor(start + i * step for i in n)


def test_docstring_and_signature_are_kept():
    assert matmul.__doc__ == "Return the product of two matrices."
    assert matmul.__name__ == matmul.name == "matmul"
    assert matmul.definition().documentation == matmul.__doc__
    assert matmul.definition().parameters == ("A", "B")
    assert repr(matmul) == "<operator matmul(A, B)>"


def test_print():
    assert str(matmul) == format_definition(matmul.definition())
    assert "print(double.definition(tl.f32[M, N]))" in str(double)


def test_one_definition_per_specialization():
    assert matmul.definition() is matmul.definition()
    assert linear.definition(scale=2.0) is linear.definition(scale=2.0)
    assert linear.definition(scale=1) is not linear.definition(scale=1.0)
    assert linear.definition(scale=True) is not linear.definition(scale=1)
    assert double.definition(tl.f32[M]) is double.definition(np.zeros(3, "f"))
    assert double.definition(tl.f32[M]) is not double.definition(tl.f64[M])
    assert double.definition(tl.f32[M]) is not double.definition(tl.f32[M, N])
    assert matmul.definition(M=3) is matmul.definition(M=3)


def test_optional_tensors():
    x, w = np.ones((2, 3), "f"), np.ones((4, 3), "f")
    assert [tensor.name for tensor in linear.definition().inputs] == ["x", "w"]
    with_bias = linear.definition(bias=tl.f32[N])
    assert [tensor.name for tensor in with_bias.inputs] == ["x", "w", "bias"]
    np.testing.assert_array_equal(linear.reference(x, w, scale=2.0), np.full((2, 4), 6))
    np.testing.assert_array_equal(linear.reference(x, w, np.ones(4, "f")), np.full((2, 4), 4))
    with pytest.raises(ValueError, match=r"bias\[j\] stays inside bias only if N < bias0 \+ 1"):
        linear.reference(x, w, np.ones(3, "f"))


def test_sizes_that_no_array_fixes():
    np.testing.assert_array_equal(ramp.reference(5, n=3, step=2), [5, 7, 9])
    assert ramp.reference(5, n=0).shape == (0,)
    definition = ramp.definition(step=3)
    assert [str(size) for size in definition.sizes] == ["n"]
    assert definition.dims == definition.sizes
    assert definition.attributes == (("step", 3),)
    assert ramp.definition(n=4).dims == ()
    for bad, error, text in [
        ({"n": -1}, ValueError, "ramp: the size n = -1 is negative"),
        ({"n": 1.5}, TypeError, "ramp: the size n must be an integer, not 1.5"),
        ({}, TypeError, "ramp() misses the argument n"),
    ]:
        with pytest.raises(error) as caught:
            ramp.reference(5, **bad)
        assert str(caught.value) == text


def test_scalars_are_checked():
    assert ramp.reference(np.int64(3), n=1)[0] == 3
    for bad, error, text in [
        (1.5, TypeError, "ramp: the scalar start is i32, but 1.5 (float) is given"),
        (True, TypeError, "ramp: the scalar start is i32, but True (bool) is given"),
        (2**31, ValueError, "ramp: start = 2147483648 is out of the range of i32"),
    ]:
        with pytest.raises(error) as caught:
            ramp.reference(bad, n=1)
        assert str(caught.value) == text


def test_arguments_are_checked():
    a, b = np.ones((2, 3), "f"), np.ones((3, 4), "f")
    for args, kwargs, error, text in [
        ((a,), {}, TypeError, "matmul() misses the argument B"),
        ((a, b, a), {}, TypeError, "matmul() takes 2 positional arguments, but 3 were given"),
        ((a, b), {"C": a}, TypeError, "matmul() has no parameter C"),
        ((a, b), {"A": a}, TypeError, "matmul() got A twice"),
        ((a.astype(float), b), {}, TypeError,
         "matmul: A is declared f32, but an array of f64 is given; convert it: "
         "A.astype(np.float32)"),
        ((a.astype(">f4"), b), {}, TypeError,
         "matmul: A: an array of dtype >f4 has the other byte order; convert it with "
         ".astype(np.float32)"),
        ((a.astype("c8"), b), {}, TypeError,
         "matmul: A: arrays of dtype complex64 are not supported; convert it, for example "
         "with .astype(np.float32)"),
        (([[1.0]], b), {}, TypeError,
         "matmul: A must be an array, not list; convert it, for example with np.asarray"),
        ((a[0], b), {}, ValueError, "matmul: A has 1 axis, but [M, K] is declared"),
        ((a, b[:2]), {}, ValueError,
         "matmul: axis 0 of B has size 2, but K = 3 is expected (K = 3 by axis 1 of A)"),
        ((a, b), {"out": a}, TypeError, "matmul.reference has no out="),
    ]:  # fmt: skip
        with pytest.raises(error) as caught:
            matmul.reference(*args, **kwargs)
        assert str(caught.value) == text


def test_bind_arguments():
    x, w = np.ones((2, 3), "f"), np.ones((4, 3), "f")
    call = linear.bind_arguments((x,), {"w": w, "scale": 2.0, "out": "here"})
    assert call.definition is linear.definition(scale=2.0)
    assert call.tensors[0] is x
    assert call.tensors[1] is w
    assert call.out == "here"
    call = ramp.bind_arguments((5,), {"n": 3})
    assert (call.tensors, call.scalars, call.dims) == ((), (5,), {"n": 3})


def test_calls_go_through_the_hook(monkeypatch):
    calls = []

    def hook(operator, args, kwargs):
        calls.append((operator, args, kwargs))
        return "done"

    monkeypatch.setattr(compute_module, "_call_hook", None)
    tl.compute.__globals__["set_call_hook"](hook)
    assert matmul(1, B=2) == "done"
    assert calls == [(matmul, (1,), {"B": 2})]


def test_arguments_may_take_over_the_call():
    class Node:
        def __tensorlang_call__(self, operator, args, kwargs):
            return operator, args, kwargs

    node = Node()
    assert double(node) == (double, (node,), {})


def test_symbolic_arguments_outside_of_operators():
    with pytest.raises(
        DefinitionError, match=r"called with the symbolic N outside of @tl\.compute"
    ):
        double(N)


def test_fixed_sizes():
    definition = matmul.definition(M=2, K=3)
    assert format_definition(definition) == (
        "def matmul(A: f32[2, 3], B: f32[3, N]) -> f32[2, N]:\n"
        "    matmul[i < 2, j < N] = sum(A[i, k] * B[k, j] for k < 3)"
    )
    assert [str(size) for size in definition.sizes] == ["N"]
    assert matmul.definition().sizes[2] is definition.sizes[0]
    with pytest.raises(ValueError, match="matmul has no size Q; its sizes are: M, K, N"):
        matmul.definition(Q=3)
    with pytest.raises(ValueError, match="the size M = -1 is negative"):
        matmul.definition(M=-1)
    generic = double.definition(tl.f32[1, N])
    assert str(generic.inputs[0].shape[0]) == "1"
    assert str(generic.inputs[0].shape[1]) == "x1"


def test_generic_operators_must_be_described():
    with pytest.raises(TypeError, match="double is generic: describe x by an array or an annot"):
        double.definition()
    with pytest.raises(TypeError, match="double: x must be an array, not str"):
        double.reference("x")


def test_generic_operators_take_python_numbers():
    assert double.reference(2.0) == 4.0
    assert double.reference(2).dtype == np.int64


def test_derived_parameter_sizes():
    @tl.compute
    def pairs(x: tl.f32[2 * N + 1], y: tl.f32[M], z: tl.f32[M + N]):
        return tl.tensor(x[2 * i] + x[2 * i + 1] + z[i] for i in N)

    def call(x, y, z):
        return pairs.reference(*[np.ones(size, "f") for size in (x, y, z)])

    assert call(5, 2, 4).shape == (2,)
    assert call(1, 0, 0).shape == (0,)
    for sizes, text in [
        ((4, 0, 0), "pairs: axis 0 of x has size 4, but must be 2 * N + 1 for some N >= 0"),
        ((5, 2, 5), "pairs: axis 0 of z has size 5, but M + N = 4 is expected "
                    "(M = 2 by axis 0 of y; N = 2 by axis 0 of x)"),
    ]:  # fmt: skip
        with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
            call(*sizes)


def test_negative_extents_are_named():
    @tl.compute
    def inner(x: tl.f32[N]):
        return tl.tensor(x[i + 1] for i in N - 2)

    assert inner.reference(np.ones(2, "f")).shape == (0,)
    with pytest.raises(ValueError, match=r"^inner: the extent N - 2 is negative \(-1\) for N = 1$"):
        inner.reference(np.ones(1, "f"))
    with pytest.raises(ValueError, match=r"^inner: the extent N - 2 is negative \(-1\)$"):
        inner.definition(N=1)


def test_annotations_as_strings_see_the_definers_locals():
    size = tl.dim("size")

    def square(x: tl.f32[size]):
        return tl.tensor(x[i] * x[i] for i in size)

    assert str(tl.compute(square).definition().inputs[0].shape[0]) == "size"

    def unknown(x):
        return x

    unknown.__annotations__ = {"x": "tl.f32[nowhere]"}
    with pytest.raises(DefinitionError, match=r"'tl\.f32\[nowhere\]' cannot be evaluated"):
        tl.compute(unknown)


def test_callee_sizes_become_the_callers():
    @tl.compute
    def fixed(x: tl.f32[4]):
        return tl.tensor(x[i] for i in tl.range(4))

    @tl.compute
    def odd(x: tl.f32[2 * N + 1]):
        return tl.tensor(x[2 * i] for i in N)

    @tl.compute
    def caller(x: tl.f32[M], y: tl.f32[2 * K + 3]):
        return fixed(x), odd(y), ramp(1, n=M + 1)

    definition = caller.definition()
    assert [str(output.shape[0]) for output in definition.outputs] == ["4", "K + 1", "M + 1"]
    x, y = np.arange(4, dtype="f"), np.arange(7, dtype="f")
    first, second, third = caller.reference(x, y)
    np.testing.assert_array_equal(first, x)
    np.testing.assert_array_equal(second, [0, 2, 4])
    np.testing.assert_array_equal(third, [1, 2, 3, 4, 5])
    with pytest.raises(ValueError, match="fixed: axis 0 of x is M, but 4 is expected"):
        caller.reference(x[:3], y)


def test_callees_are_checked_at_the_callers_line():
    @tl.compute
    def alpha(x: tl.f32[N], factor: tl.f32):
        return tl.tensor(x[i] * factor for i in N)

    def wrong_dtype(x: tl.f64[N]):
        return alpha(x, 1.0)

    def wrong_scalar(x: tl.f32[N]):
        return alpha(x, tl.cast(1, tl.f64))

    def missing(x: tl.f32[N]):
        return alpha(x)

    def array(x: tl.f32[N]):
        return alpha(np.ones(3, "f"), 1)

    def too_small(x: tl.f32[3], y: tl.f32[2]):
        return matmul(reshaped(x), reshaped(y))

    @tl.compute
    def reshaped(x: tl.f32[N]):
        return tl.tensor(x[j] for i in N for j in N)

    for function, text in [
        (wrong_dtype, "alpha: x is f32[N], but x, f64[N], is given"),
        (wrong_scalar, "alpha: the scalar factor is f32; cast the argument: tl.cast(x, tl.f32)"),
        (missing, "alpha() misses the argument factor"),
        (array, "alpha: x must be a tensor of the operator being defined, not ndarray"),
        (too_small, "matmul: axis 0 of B is 2, but 3 is expected"),
    ]:
        with pytest.raises(DefinitionError) as caught:
            tl.compute(function).definition()
        assert str(caught.value).startswith(text)
        assert f"  at {__file__}" in str(caught.value)


def test_scalar_results_and_numbers_as_tensors():
    @tl.compute
    def total(x: tl.f32[N]):
        return tl.sum(x[i] for i in N)

    @tl.compute
    def shares(x: tl.f32[N]):
        all_of_it = total(x)
        return tl.tensor(x[i] / all_of_it for i in N), double(tl.sum(x[i] for i in N))

    x = np.array([1, 3], np.float32)
    share, twice = shares.reference(x)
    np.testing.assert_array_equal(share, [0.25, 0.75])
    assert twice == 8


def test_operators_may_be_used_from_several_threads():
    @tl.compute
    def slow(x):
        return tl.tensor(tl.exp(x[i]) for i in tl.grid(x.shape))

    found = []
    threads = [
        threading.Thread(target=lambda: found.append(slow.definition(tl.f32[M, N])))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(map(id, found))) == 1


def test_a_failed_trace_leaves_nothing_behind():
    @tl.compute
    def wrong(x: tl.f32[N]):
        return tl.tensor(x[i, i] for i in N)

    for _ in range(2):
        with pytest.raises(DefinitionError, match="2 indices are given"):
            wrong.definition()
    with pytest.raises(DefinitionError, match="only has a meaning inside"):
        tl.tensor(i for i in N)


def test_definitions_pickle():
    definition = pickle.loads(pickle.dumps(matmul.definition()))
    assert format_definition(definition) == format_definition(matmul.definition())
    assert definition.stages[0].axes[0].extent == definition.inputs[0].shape[0]


def test_operators_pickle_by_name():
    assert pickle.loads(pickle.dumps(matmul)) is matmul


def test_operators_made_inside_functions_pickle_by_value():
    @tl.compute
    def inner(x: tl.f32[N], y, *, by: int = 2):
        """Scale."""
        return tl.tensor(x[i] * by + y[i] for i in N)

    x, y = np.ones(3, "f"), np.ones(3, np.int32)
    expected = inner.reference(x, y)
    copy = pickle.loads(pickle.dumps(inner))
    np.testing.assert_array_equal(copy.reference(x, y), expected)
    assert copy.__doc__ == "Scale."
    assert str(copy.definition(y=y).location) == str(inner.location)
    with pytest.raises(DefinitionError, match="inner was pickled by its definitions, and is asked"):
        copy.reference(x, y, by=3)


def test_importing_is_light():
    code = (
        "import sys, tensorlang; heavy = {'islpy', 'llvmlite', 'numba', 'rich', 'typer', 'scipy'};"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_public_names():
    for name in tl.__all__:
        assert hasattr(tl, name), name
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        tl.nonsense


def test_what_prints_as_text():
    @tl.compute
    def clipped(x, *, top: float):
        return tl.tensor(tl.minimum(x[i], top) for i in tl.grid(x.shape))

    assert str(clipped) == (
        "<operator clipped(x, top)>: traced for each rank, dtype and attribute; "
        "print(clipped.definition(tl.f32[M, N], top=...))"
    )
    definition = clipped.definition(tl.f32[M], top=2.0)
    assert str(definition) == (
        "def clipped(x: f32[x0], top=2.0) -> f32[x0]:\n    clipped[i0 < x0] = minimum(x[i0], 2)"
    )
    s = tl.schedule(clipped, tl.f32[M], top=2.0)
    assert str(s.program) == str(s)
