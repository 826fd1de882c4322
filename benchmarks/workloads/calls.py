"""What a call costs: the sum of two arrays of 16 floats.

Programs write into `out` where they can; `new result` makes an array. JAX is waited for.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from benchmarks.libraries import (
    jax_call,
    onnx_model,
    onnxruntime_call,
    openvino_call,
    torch_tensors,
    torch_with,
)
from benchmarks.workload import Call, Programs, Workload

_COUNT = 16


def _programs(threads: int) -> Programs:
    a, b = np.arange(_COUNT, dtype=np.float32), np.ones(_COUNT, np.float32)
    inputs = {"A": a, "B": b}

    def new() -> np.ndarray:
        return np.zeros(_COUNT, np.float32)

    def ours(out: bool) -> Call:
        import tensorlang as tl

        N = tl.dim("N")

        @tl.compute
        def add(a: tl.f32[N], b: tl.f32[N]):
            return tl.tensor(a[i] + b[i] for i in N)

        compiled, result = tl.compile(add), new()
        return (lambda: compiled(a, b, out=result)) if out else (lambda: compiled(a, b))

    def torch(how: str) -> Call:
        library = torch_with(threads)
        x, y, result = torch_tensors(a, b, new())
        if how == "out":
            return lambda: library.add(x, y, out=result)
        add = library.compile(lambda x, y: x + y) if how == "compile" else library.add
        return lambda: add(x, y)

    def numba() -> Call:
        import numba as library

        @library.njit
        def add(a, b, out):
            for i in range(out.size):
                out[i] = a[i] + b[i]
            return out

        result = new()
        return lambda: add(a, b, result)

    def numexpr() -> Call:
        import numexpr as library

        names, result = {"a": a, "b": b}, new()
        return lambda: library.evaluate("a + b", local_dict=names, out=result)

    def model() -> bytes:
        return onnx_model("Add", {"A": a.shape, "B": b.shape}, a.shape)

    result = new()
    return {
        "numpy": lambda: lambda: np.add(a, b, out=result),
        "tensorlang": partial(ours, out=True),
        "tensorlang, new result": partial(ours, out=False),
        "numba": numba,
        "torch": partial(torch, "out"),
        "torch, new result": partial(torch, "new"),
        "torch.compile": partial(torch, "compile"),
        "jax": lambda: jax_call(lambda x, y: x + y, a, b),
        "numexpr": numexpr,
        "onnxruntime": lambda: onnxruntime_call(model(), inputs, new(), threads),
        "openvino": lambda: openvino_call(model(), inputs, threads),
        "halide": lambda: _halide(a, b, new()),
        "apache-tvm": lambda: _tvm(a, b, new()),
    }


def _halide(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> Call:
    import halide as hl

    left, right = (hl.ImageParam(hl.Float(32), 1, name) for name in ("left", "right"))
    x, result = hl.Var("x"), hl.Func("result")
    result[x] = left[x] + right[x]
    compiled = result.compile_to_callable([left, right], hl.get_host_target())
    buffers = [hl.Buffer(array) for array in (a, b, out)]

    def call() -> np.ndarray:
        compiled(*buffers)
        return out

    return call


def _tvm(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> Call:
    import tvm
    from tvm import te

    left, right = (te.placeholder(a.shape, "float32", name) for name in ("left", "right"))
    total = te.compute(a.shape, lambda i: left[i] + right[i], "total")
    function = te.create_prim_func([left, right, total]).with_attr("global_symbol", "main")
    compiled: Any = tvm.compile(tvm.IRModule({"main": function}), target="llvm")["main"]
    x, y, result = (tvm.runtime.tensor(array) for array in (a, b, out))

    def call() -> np.ndarray:
        compiled(x, y, result)
        return result.numpy()

    if not np.array_equal(call(), a + b):
        raise AssertionError("the result is wrong")
    return lambda: compiled(x, y, result)


WORKLOADS = [Workload("add 16 floats", _programs)]
