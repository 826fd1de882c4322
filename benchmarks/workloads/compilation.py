"""What compiling costs: a matrix product of 512 x 512 x 512, and a gelu, to the first result.

The first compilation of a fresh process and its first call, imports excluded, nothing kept on disk;
medians of three processes. What a library compiles differs: one has its products ready, another
makes naive loops; the products above tell what the code is worth.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks.workload import Workload

_SIZE = 512
_RUNS = 3
_LIMIT = 60.0
_LONG = 5_000.0  # milliseconds that need no second process


def _ours_product(a: np.ndarray) -> Callable[[], Any]:
    import tensorlang as tl
    from benchmarks.figures import import_everything
    from benchmarks.schedules import matmul

    import_everything()
    return lambda: tl.compile(matmul)(a, a)


def _ours_gelu(x: np.ndarray) -> Callable[[], Any]:
    import tensorlang as tl
    from benchmarks.figures import import_everything

    import_everything()
    N = tl.dim("N")

    def compile_and_run() -> Any:
        @tl.compute
        def gelu(x: tl.f32[N]):
            return tl.tensor(
                0.5 * x[i] * (1 + tl.tanh(0.79788 * (x[i] + 0.044715 * x[i] * x[i] * x[i])))
                for i in N
            )

        return tl.compile(gelu)(x)

    return compile_and_run


def _numba_product(a: np.ndarray) -> Callable[[], Any]:
    import numba

    prange = numba.prange

    def product(a, b):
        out = np.zeros((a.shape[0], b.shape[1]), np.float32)
        for i in prange(a.shape[0]):
            for k in range(a.shape[1]):
                for j in range(b.shape[1]):
                    out[i, j] += a[i, k] * b[k, j]
        return out

    return lambda: numba.njit(parallel=True, fastmath=True)(product)(a, a)


def _jax_product(a: np.ndarray) -> Callable[[], Any]:
    import jax

    x = jax.numpy.asarray(a)
    return lambda: jax.jit(lambda p, q: p @ q)(x, x).block_until_ready()


def _jax_gelu(x: np.ndarray) -> Callable[[], Any]:
    import jax

    given = jax.numpy.asarray(x)
    return lambda: jax.jit(jax.nn.gelu)(given).block_until_ready()


def _torch_gelu(x: np.ndarray) -> Callable[[], Any]:
    import torch

    given = torch.from_numpy(x)

    def gelu(x: Any) -> Any:
        return 0.5 * x * (1 + torch.tanh(0.79788 * (x + 0.044715 * x * x * x)))

    return lambda: torch.compile(gelu, dynamic=False)(given)


def _halide_product(a: np.ndarray) -> Callable[[], Any]:
    from benchmarks.workloads.products import halide_product

    return lambda: halide_product(a, a, np.zeros_like(a))()


def _tvm_product(a: np.ndarray) -> Callable[[], Any]:
    import tvm
    from tvm import te

    def compile_and_run() -> Any:
        left, right = (te.placeholder(a.shape, "float32", name) for name in ("left", "right"))
        k = te.reduce_axis((0, a.shape[1]), "k")
        total = te.compute(a.shape, lambda i, j: te.sum(left[i, k] * right[k, j], axis=k))
        function = te.create_prim_func([left, right, total]).with_attr("global_symbol", "main")
        compiled = tvm.compile(tvm.IRModule({"main": function}), target="llvm")["main"]
        return compiled(*(tvm.runtime.tensor(array) for array in (a, a, np.zeros_like(a))))

    return compile_and_run


_MAKERS: dict[str, dict[str, tuple[str, Callable[[np.ndarray], Callable[[], Any]]]]] = {
    "compile a product": {
        "tensorlang": ("tensorlang", _ours_product),
        "numba": ("numba", _numba_product),
        "jax": ("jax", _jax_product),
        "halide": ("halide", _halide_product),
        "apache-tvm": ("tvm", _tvm_product),
    },
    "compile a gelu": {
        "tensorlang": ("tensorlang", _ours_gelu),
        "jax": ("jax", _jax_gelu),
        "torch.compile": ("torch", _torch_gelu),
    },
}


def _measure(work: str, threads: int) -> dict[str, float]:
    """Return the milliseconds of each library's first compilation, those that fail left out."""
    medians: dict[str, float] = {}
    for program, (package, _) in _MAKERS[work].items():
        times = [] if find_spec(package) is None else _times(work, program)
        if times:
            medians[program] = median(times)
    return medians


def _times(work: str, program: str) -> list[float]:
    times: list[float] = []
    command = [sys.executable, "-m", __name__, work, program]
    for _ in range(_RUNS):
        with TemporaryDirectory() as folder:
            environment = {
                **os.environ,
                "TENSORLANG_CACHE": "off",
                "TORCHINDUCTOR_CACHE_DIR": folder,
                "JAX_ENABLE_COMPILATION_CACHE": "0",
            }
            try:
                output = subprocess.check_output(
                    command,
                    env=environment,
                    text=True,
                    stderr=subprocess.DEVNULL,
                    timeout=_LIMIT,
                )
                times.append(json.loads(output.splitlines()[-1]))
            except (subprocess.SubprocessError, ValueError):
                break
        if times[-1] > _LONG:
            break
    return times


def main() -> None:
    """Print the milliseconds of the compilation that the command line names."""
    _, make = _MAKERS[sys.argv[1]][sys.argv[2]]
    shape = (_SIZE, _SIZE) if sys.argv[1] == "compile a product" else (_SIZE,)
    compile_and_run = make(np.ones(shape, np.float32))
    start = time.perf_counter()
    compile_and_run()
    print(json.dumps(1e3 * (time.perf_counter() - start)), flush=True)
    os._exit(0)


WORKLOADS = [Workload(name, measure=partial(_measure, name)) for name in _MAKERS]

if __name__ == "__main__":
    main()
