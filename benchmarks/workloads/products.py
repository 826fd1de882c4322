"""Products of matrices in f32: the shapes of networks, squares, and sizes beside them.

Ours: one definition by its default schedule, compiled for any sizes, for the sizes at hand, and in
a graph that knows B. The peers' row `B constant` has libraries that may prepare B in advance.
"""

from __future__ import annotations

from functools import partial

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

CONSTANT = " (B constant)"
SHAPES = (
    (256, 256, 256), (512, 512, 512), (1024, 1024, 1024), (2048, 2048, 2048),
    (128, 768, 768), (128, 3072, 768), (32, 1000, 2048), (1, 4096, 4096),
    (255, 255, 255), (257, 257, 257), (509, 509, 509), (1000, 1000, 1000), (1009, 1009, 1009),
    (127, 769, 761), (31, 1009, 2039),
)  # fmt: skip
"""Rows, columns and length of the sums; the second half is beside the first, with primes."""

_LARGEST_FOR_LOOPS = 1024**3


def _programs(M: int, N: int, K: int, threads: int) -> Programs:
    generator = np.random.default_rng(0)
    a = generator.standard_normal((M, K), dtype=np.float32)
    b = generator.standard_normal((K, N), dtype=np.float32)

    def new() -> np.ndarray:
        return np.zeros((M, N), np.float32)

    def numpy() -> Call:
        return partial(np.matmul, a, b, out=new())

    def any_sizes() -> Call:
        import tensorlang as tl
        from benchmarks.schedules import matmul

        return partial(tl.compile(matmul), a, b, out=new())

    def fixed_sizes() -> Call:
        import tensorlang as tl
        from benchmarks.schedules import matmul

        return partial(tl.compile(matmul, M=M, N=N, K=K), a, b, out=new())

    def graph() -> Call:
        import tensorlang as tl

        g = tl.Graph("product")
        x = g.input("x", tl.f32[M, K])
        g.output(tl.nn.matmul(x, g.constant(b)))
        return partial(tl.compile(g), a)

    def torch() -> Call:
        library = torch_with(threads)
        return partial(library.mm, *torch_tensors(a, b), out=library.zeros(M, N))

    def torch_linear() -> Call:
        library = torch_with(threads)
        x, w = torch_tensors(a, np.ascontiguousarray(b.T))
        return lambda: library.nn.functional.linear(x, w)

    def onnxruntime() -> Call:
        model = onnx_model("MatMul", {"A": a.shape, "B": b.shape}, (M, N))
        return onnxruntime_call(model, {"A": a, "B": b}, new(), threads)

    def onnxruntime_constant() -> Call:
        model = onnx_model("MatMul", {"A": a.shape}, (M, N), {"B": b})
        return onnxruntime_call(model, {"A": a}, new(), threads)

    def openvino_constant() -> Call:
        model = onnx_model("MatMul", {"A": a.shape}, (M, N), {"B": b})
        return openvino_call(model, {"A": a}, threads)

    programs: Programs = {
        "numpy": numpy,
        "tensorlang, any sizes": any_sizes,
        "tensorlang, fixed sizes": fixed_sizes,
        f"tensorlang graph{CONSTANT}": graph,
        "torch": torch,
        "onnxruntime": onnxruntime,
        "jax": lambda: jax_call(lambda x, y: x @ y, a, b),
        f"torch linear{CONSTANT}": torch_linear,
        f"onnxruntime{CONSTANT}": onnxruntime_constant,
        f"openvino{CONSTANT}": openvino_constant,
    }
    if M * N * K <= _LARGEST_FOR_LOOPS:
        programs["numba"] = lambda: _numba(a, b, new())
    if M >= 32:
        programs["halide"] = lambda: halide_product(a, b, new())
    return programs


def _numba(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> Call:
    """Three loops in the order whose innermost one has vectors."""
    import numba

    prange = numba.prange

    @numba.njit(parallel=True, fastmath=True)
    def product(a, b, out):
        for i in prange(out.shape[0]):
            out[i, :] = 0
            for k in range(a.shape[1]):
                scale = a[i, k]
                for j in range(out.shape[1]):
                    out[i, j] += scale * b[k, j]
        return out

    return partial(product, a, b, out)


def halide_product(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> Call:
    """A schedule by hand: tiles of 6 rows in registers, strips of rows in parallel."""
    import halide as hl

    x, y, inner_x, inner_y, strip = (hl.Var(name) for name in ("x", "y", "xi", "yi", "strip"))
    left, right = (hl.ImageParam(hl.Float(32), 2, name) for name in ("left", "right"))
    k = hl.RDom([(0, a.shape[1])], "k")
    total, result = hl.Func("total"), hl.Func("result")
    total[x, y] = hl.f32(0)
    total[x, y] += left[k.x, y] * right[x, k.x]
    result[x, y] = total[x, y]
    target = hl.get_host_target()
    lanes = target.natural_vector_size(hl.Float(32))
    result.tile(x, y, inner_x, inner_y, 2 * lanes, 6).split(y, strip, y, 4).parallel(strip)
    result.vectorize(inner_x, lanes).unroll(inner_x).unroll(inner_y)
    total.compute_at(result, x).vectorize(x, lanes).unroll(x).unroll(y)
    total.update(0).reorder(x, y, k.x).vectorize(x, lanes).unroll(x).unroll(y).unroll(k.x, 2)
    compiled = result.compile_to_callable([left, right], target)
    buffers = [hl.Buffer(array) for array in (a, b, out)]

    def call() -> np.ndarray:
        compiled(*buffers)
        return out

    return call


def _workload(M: int, N: int, K: int) -> Workload:
    traffic = 4.0 * (M * K + K * N + M * N)
    return Workload(
        f"{M}x{N}x{K}", partial(_programs, M, N, K), operations=2.0 * M * N * K, bytes=traffic
    )


WORKLOADS = [_workload(*shape) for shape in SHAPES]
