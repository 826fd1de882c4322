"""Arrays of other libraries and of odd layouts, as arguments, as ``out``, and as results."""

import array
import ctypes
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import tensorlang as tl

M, N = tl.dims("M N")


@tl.compute
def add(x: tl.f32[M, N], y: tl.f32[N]):
    return tl.tensor(x[i, j] + y[j] for i in M for j in N)


@tl.compute
def double(x):
    return tl.tensor(x[i] * 2 for i in tl.grid(x.shape))


COMPILED = tl.compile(add)
X, Y = np.arange(6, dtype=np.float32).reshape(2, 3), np.ones(3, np.float32)


class Exporter:
    """An array that can be read through DLPack alone, from whatever device it claims."""

    def __init__(self, array, device=(1, 0), namespace=None):
        self.array, self.device = array, device
        if namespace is not None:
            self.__array_namespace__ = lambda: namespace

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.device


class Namespace:
    """What ``__array_namespace__`` gives; it wraps what it imports."""

    @staticmethod
    def from_dlpack(array):
        return Exporter(np.from_dlpack(array), namespace=Namespace)


@pytest.mark.parametrize("function", [add, COMPILED])
@pytest.mark.parametrize(
    "row",
    [
        Exporter(Y),
        array.array("f", Y),
        memoryview(Y),
        memoryview(np.ones(6, np.float32))[::-2],
        (ctypes.c_float * 3)(1, 1, 1),
        type("Own", (), {"__array__": lambda self, *a, **k: Y})(),
    ],
)
def test_what_is_no_ndarray_is_read_in_place(function, row):
    if function is add and type(row).__name__ == "Own":
        return  # an operator must see rank and dtype without a conversion
    for _ in range(3):
        result = function(X, row)
        assert type(result) is np.ndarray
        np.testing.assert_array_equal(result, X + 1)


def test_results_are_of_the_first_foreign_kind():
    for _ in range(3):
        result = add(X, Exporter(Y, namespace=Namespace))
        assert isinstance(result, Exporter)
        np.testing.assert_array_equal(result.array, X + 1)


@pytest.mark.parametrize(
    ("device", "words"),
    [((2, 1), "a CUDA device (number 1)"), ((10, 0), "a ROCm device (number 0)"),
     ((99, 0), "a device of DLPack's kind 99 (number 0)")],
)  # fmt: skip
def test_memory_of_a_device_is_refused(device, words):
    text = (
        "add: y must be an array, f32[N]; found an Exporter: it lies in the memory of"
        f" {words}: copy it to the host first"
    )
    with pytest.raises(TypeError, match=f"^{re.escape(text)}$"):
        COMPILED(X, Exporter(Y, device))
    with pytest.raises(TypeError, match="copy it to the host first"):
        add(X, Exporter(Y, device))
    with pytest.raises(TypeError, match=r"^add: out \(add\) must be an array, found Exporter: it"):
        add(X, Y, out=Exporter(np.zeros_like(X), device))


def test_out_of_other_kinds():
    buffer = array.array("f", [0, 0, 0])
    assert double(Y, out=buffer) is buffer
    assert buffer.tolist() == [2, 2, 2]
    target = np.zeros((2, 3), np.float32)
    exported = Exporter(target)
    for _ in range(3):
        assert add(X, Y, out=exported) is exported
    np.testing.assert_array_equal(target, X + 1)
    with pytest.raises(ValueError, match="is read-only"):
        double(Y, out=memoryview(bytes(12)).cast("f"))
    with pytest.raises(ValueError, match="shares memory with x"):
        double(memoryview(Y), out=Exporter(Y))
    with pytest.raises(TypeError, match=r"out \(double\) must be an array, found str"):
        double(Y, out="xyz")


def test_unaligned_arrays_are_copied():
    memory = np.zeros(13, np.uint8)
    x = np.ndarray(3, np.float32, memory, 1)
    x[:] = [1, 2, 3]
    assert not x.flags.aligned
    for _ in range(4):
        assert double(x).tolist() == [2, 4, 6]
        out = np.ndarray(3, np.float32, np.zeros(14, np.uint8), 2)
        assert double(x, out=out) is out
        assert out.tolist() == [2, 4, 6]
    record = np.zeros(4, [("flag", "i1"), ("value", "f4")])["value"]  # strides of 5 bytes
    record[:] = 7
    assert double(record).tolist() == [14] * 4


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_any_view(data):
    shape = data.draw(hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=5))
    dtype = data.draw(st.sampled_from(["f4", "f8", "i8", "i4", "u1", "i2"]))
    base = np.arange(max(1, int(np.prod(shape))) * 16, dtype="i8").astype(dtype)
    base = np.lib.stride_tricks.as_strided(
        base[base.size // 2 :],
        shape,
        [data.draw(st.integers(-2, 2)) * base.itemsize for _ in shape],
    )
    for _ in range(3):
        np.testing.assert_array_equal(double(base), base * base.dtype.type(2))


# --- PyTorch ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def torch():
    return pytest.importorskip("torch")


def test_a_torch_dtype_is_converted_as_torch_does(torch):
    with pytest.raises(TypeError) as caught:
        add(torch.ones((2, 3), dtype=torch.float64), torch.ones(3))
    assert str(caught.value) == (
        "add: x is declared f32, but an array of f64 is given; convert it: x.to(torch.float32)"
    )


@pytest.mark.parametrize("function", [add, COMPILED])
def test_torch_in_torch_out(torch, function):
    x, y = torch.arange(6.0).reshape(2, 3), torch.ones(3)
    for view in (x, x.T.contiguous().T, torch.zeros(4, 3)[::2], x.expand(2, 3)):
        result = function(view, y)
        assert isinstance(result, torch.Tensor)
        assert torch.equal(result, view + y)
    assert isinstance(function(x.numpy(), y), torch.Tensor)
    out = torch.zeros(2, 6)[:, ::2]
    assert function(x, y, out=out) is out
    assert torch.equal(out, x + y)
    with pytest.raises(ValueError, match="shares memory with x"):
        function(x, y, out=x)


@pytest.mark.parametrize("name", ["bfloat16", "float16", "float64", "int8", "uint8", "int64"])
def test_torch_dtypes(torch, name):
    x = torch.tensor([[1, -2, 3], [4, 5, 6]]).to(getattr(torch, name))
    for view in (x, x[:, ::2], x.T):
        result = double(view)
        assert result.dtype is x.dtype
        assert torch.equal(result, view * 2)


def test_torch_refusals(torch):
    with pytest.raises(TypeError, match=r"it requires a gradient, .*: pass x\.detach\(\)$"):
        double(torch.ones(3, requires_grad=True))
    with torch.no_grad(), pytest.raises(TypeError, match="requires a gradient"):
        double(torch.ones(3, requires_grad=True))
    assert double(torch.ones(3, requires_grad=True).detach()).tolist() == [2, 2, 2]
    with pytest.raises(TypeError, match="double: x must be an array"):
        double(torch.ones(3, device="meta"))
    with pytest.raises(TypeError, match="complex64"):
        double(torch.ones(3, dtype=torch.complex64))


def test_jax_in_jax_out():
    jax = pytest.importorskip("jax")
    for dtype in ("float32", "bfloat16"):
        result = double(jax.numpy.ones(3, dtype))
        assert result.dtype == dtype
        assert [float(value) for value in result] == [2, 2, 2]
