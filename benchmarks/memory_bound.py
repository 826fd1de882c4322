"""Default schedules of memory-bound operators and attention, beside other libraries.

``python -m benchmarks.memory_bound [WORKLOAD ...] [--threads 2] [--rounds 9]``: all workloads, or
some of them; peers that are not installed are left out. The programs of a workload take turns in
one process, all write into memory that is there (but for torch's compiled ones), and a figure is
the median of the rounds.

Output: a line a workload, such as ``softmax  ours 1.10 | torch 2.31 | numba 3.10 | ratio 2.10``.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from importlib.util import find_spec
from statistics import median
from typing import Any

import numpy as np

prange = range  # numba's own, once it is imported
Programs = dict[str, Callable[[], Any]]
G = 0.7978845608028654


def main() -> None:
    """Measure the workloads that are asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.memory_bound", description=__doc__)
    parser.add_argument("names", nargs="*", default=list(WORKLOADS))
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    for name in ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS", "TENSORLANG_NUM_THREADS"):
        os.environ[name] = str(options.threads)
    for name in options.names:
        programs = WORKLOADS[name](options.threads)
        figures = measure({k: f for k, f in programs.items() if f is not None}, options.rounds)
        best = min(value for program, value in figures.items() if program != "ours")
        text = " | ".join(f"{program} {value:.3f}" for program, value in figures.items())
        print(f"{name:<12} {text} | ratio {best / figures['ours']:.2f}", flush=True)


def measure(programs: Programs, rounds: int) -> dict[str, float]:
    """Return the median milliseconds of each program."""
    counts: dict[str, int] = {}
    for name, program in programs.items():
        program()
        program()
        begin = time.perf_counter()
        program()
        counts[name] = max(1, min(50, int(0.03 / (time.perf_counter() - begin))))
    times: dict[str, list[float]] = {name: [] for name in programs}
    for _ in range(rounds):
        for name, program in programs.items():
            begin = time.perf_counter()
            for _ in range(counts[name]):
                program()
            times[name].append((time.perf_counter() - begin) * 1e3 / counts[name])
    return {name: median(values) for name, values in times.items()}


def _torch(threads: int) -> Any:
    if find_spec("torch") is None:
        return None
    import torch

    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)
    return torch


def _normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


def _jit(function: Callable[..., Any]) -> Callable[..., Any] | None:
    if find_spec("numba") is None:
        return None
    from numba import njit, prange

    function.__globals__["prange"] = prange  # numba looks it up there
    return njit(parallel=True, fastmath=True)(function)


def _bind(function: Callable[..., Any] | None, *args: Any) -> Callable[[], Any] | None:
    return None if function is None else lambda: function(*args)


def chain(threads: int) -> Programs:
    """Six operations on 16M elements."""
    import tensorlang as tl

    N = tl.dim("N")

    @tl.compute
    def poly(x: tl.f32[N], a: tl.f32, b: tl.f32):
        y = tl.tensor(x[i] * a + b for i in N)
        return tl.tensor((tl.maximum(y[i], 0) * y[i] + x[i]) * 0.5 - y[i] for i in N)

    def loop(x, a, b, out):
        for i in prange(x.size):
            y = x[i] * a + b
            z = max(y, np.float32(0)) * y + x[i]
            out[i] = z * np.float32(0.5) - y

    x = _normal(16 << 20)
    out = np.zeros_like(x)
    a, b = np.float32(1.1), np.float32(0.1)
    torch = _torch(threads)
    programs: Programs = {
        "ours": lambda: poly(x, a, b, out=out),
        "numba": _bind(_jit(loop), x, a, b, out.copy()),
    }
    if torch:
        tx, to = torch.from_numpy(x), torch.from_numpy(out.copy())

        def naive(x):
            y = x * 1.1 + 0.1
            return (torch.relu(y) * y + x) * 0.5 - y

        compiled = torch.compile(lambda x, o: o.copy_(naive(x)), dynamic=False)
        programs["torch.compile"] = lambda: compiled(tx, to)
    return programs


def gelu(threads: int) -> Programs:
    """The tanh form of gelu on 16M elements."""
    import tensorlang as tl

    N = tl.dim("N")

    @tl.compute
    def gelu_tanh(x: tl.f32[N], a: tl.f32, b: tl.f32):
        y = tl.tensor(x[i] * a + b for i in N)
        return tl.tensor(
            0.5 * y[i] * (1 + tl.tanh(G * (y[i] + 0.044715 * y[i] * y[i] * y[i]))) for i in N
        )

    x = _normal(16 << 20)
    out = np.zeros_like(x)
    a, b = np.float32(1.1), np.float32(0.1)
    programs: Programs = {"ours": lambda: gelu_tanh(x, a, b, out=out)}
    torch = _torch(threads)
    if torch:
        tx, to = torch.from_numpy(x), torch.from_numpy(out.copy())

        def naive(x):
            y = x * 1.1 + 0.1
            return 0.5 * y * (1 + torch.tanh(G * (y + 0.044715 * y * y * y)))

        compiled = torch.compile(lambda x, o: o.copy_(naive(x)), dynamic=False)
        programs["torch"] = lambda: naive(tx)
        programs["torch.compile"] = lambda: compiled(tx, to)
    return programs


def softmax(threads: int) -> Programs:
    """Softmax of 4096 rows of 1024."""
    import tensorlang as tl

    M, N = tl.dims("M N")

    @tl.compute
    def softmax(X: tl.f32[M, N]):
        top = tl.tensor(tl.max(X[i, j] for j in N) for i in M)
        e = tl.tensor(tl.exp(X[i, j] - top[i]) for i in M for j in N)
        total = tl.tensor(tl.sum(e[i, j] for j in N) for i in M)
        return tl.tensor(e[i, j] / total[i] for i in M for j in N)

    x = _normal(4096, 1024)
    out = np.zeros_like(x)
    programs: Programs = {"ours": lambda: softmax(x, out=out)}
    torch = _torch(threads)
    if torch:
        tx, to = torch.from_numpy(x), torch.from_numpy(out.copy())
        compiled = torch.compile(lambda x, o: o.copy_(torch.softmax(x, 1)), dynamic=False)
        programs["torch"] = lambda: torch.softmax(tx, 1, out=to)
        programs["torch.compile"] = lambda: compiled(tx, to)
    return programs


def layernorm(threads: int) -> Programs:
    """Layer normalisation of 4096 rows of 1024."""
    import tensorlang as tl

    M, N = tl.dims("M N")

    @tl.compute
    def layernorm(X: tl.f32[M, N], g: tl.f32[N], b: tl.f32[N]):
        mean = tl.tensor(tl.sum(X[i, j] for j in N) / N for i in M)
        variance = tl.tensor(
            tl.sum((X[i, j] - mean[i]) * (X[i, j] - mean[i]) for j in N) / N for i in M
        )
        return tl.tensor(
            (X[i, j] - mean[i]) * tl.rsqrt(variance[i] + 1e-5) * g[j] + b[j] for i in M for j in N
        )

    x, g, b = _normal(4096, 1024), _normal(1024, seed=1), _normal(1024, seed=2)
    out = np.zeros_like(x)

    def loop(x, g, b, out):
        n = x.shape[1]
        for i in prange(x.shape[0]):
            s = np.float32(0)
            for j in range(n):
                s += x[i, j]
            m = s / np.float32(n)
            v = np.float32(0)
            for j in range(n):
                d = x[i, j] - m
                v += d * d
            r = np.float32(1) / np.sqrt(v / np.float32(n) + np.float32(1e-5))
            for j in range(n):
                out[i, j] = (x[i, j] - m) * r * g[j] + b[j]

    programs: Programs = {
        "ours": lambda: layernorm(x, g, b, out=out),
        "numba": _bind(_jit(loop), x, g, b, out.copy()),
    }
    torch = _torch(threads)
    if torch:
        tx, tg, tb = map(torch.from_numpy, (x, g, b))
        to = torch.from_numpy(out.copy())
        native = torch.nn.functional.layer_norm
        compiled = torch.compile(
            lambda x, g, b, o: o.copy_(native(x, (1024,), g, b)), dynamic=False
        )
        programs["torch"] = lambda: native(tx, (1024,), tg, tb)
        programs["torch.compile"] = lambda: compiled(tx, tg, tb, to)
    return programs


def total(threads: int) -> Programs:
    """The sum of 64M elements."""
    import tensorlang as tl

    N = tl.dim("N")

    @tl.compute
    def total(x: tl.f32[N]):
        return tl.sum(x[i] for i in N)

    def loop(x):
        s = np.float32(0)
        for i in prange(x.size):
            s += x[i]
        return s

    x = _normal(64 << 20)
    programs: Programs = {
        "ours": lambda: total(x),
        "numba": _bind(_jit(loop), x),
        "numpy": lambda: x.sum(),
    }
    torch = _torch(threads)
    if torch:
        tx = torch.from_numpy(x)
        programs["torch"] = lambda: tx.sum()
    return programs


def transpose(threads: int) -> Programs:
    """The transpose of a 4096 x 4096 matrix."""
    import tensorlang as tl

    M, N = tl.dims("M N")

    @tl.compute
    def transpose(x: tl.f32[M, N]):
        return tl.tensor(x[i, j] for j in N for i in M)

    x = _normal(4096, 4096)
    out = np.zeros_like(x)

    def loop(x, out):
        size = 32
        for bi in prange(x.shape[0] // size):
            for bj in range(x.shape[1] // size):
                for i in range(bi * size, bi * size + size):
                    for j in range(bj * size, bj * size + size):
                        out[j, i] = x[i, j]

    programs: Programs = {
        "ours": lambda: transpose(x, out=out),
        "numba": _bind(_jit(loop), x, out.copy()),
    }
    torch = _torch(threads)
    if torch:
        tx, to = torch.from_numpy(x), torch.from_numpy(out.copy())
        programs["torch"] = lambda: to.copy_(tx.t())
    return programs


def _naive_attention() -> Any:
    import tensorlang as tl

    B, H, S, T, D = tl.dims("B H S T D")

    @tl.compute
    def attention(
        q: tl.f32[B, H, S, D], k: tl.f32[B, H, T, D], v: tl.f32[B, H, T, D], *, causal: bool
    ):
        def each(value: Any) -> Any:
            return tl.tensor(value(b, h, i, j) for b in B for h in H for i in S for j in T)

        s = each(lambda b, h, i, j: tl.sum(q[b, h, i, c] * k[b, h, j, c] for c in D) * 0.125)
        if causal:
            s = each(lambda b, h, i, j: tl.where(j <= i, s[b, h, i, j], -tl.inf))
        top = tl.tensor(tl.max(s[b, h, i, j] for j in T) for b in B for h in H for i in S)
        e = each(lambda b, h, i, j: tl.exp(s[b, h, i, j] - top[b, h, i]))
        total = tl.tensor(tl.sum(e[b, h, i, j] for j in T) for b in B for h in H for i in S)
        p = each(lambda b, h, i, j: e[b, h, i, j] / total[b, h, i])
        return tl.tensor(
            tl.sum(p[b, h, i, j] * v[b, h, j, d] for j in T)
            for b in B
            for h in H
            for i in S
            for d in D
        )

    return attention


def _attention(length: int, *, causal: bool = False) -> Callable[[int], Programs]:
    def attention_of(threads: int) -> Programs:
        attention = _naive_attention()
        q, k, v = (_normal(1, 12, length, 64, seed=seed) for seed in range(3))
        out = np.zeros_like(q)
        programs: Programs = {"ours": lambda: attention(q, k, v, causal=causal, out=out)}
        torch = _torch(threads)
        if torch:
            tq, tk, tv = map(torch.from_numpy, (q, k, v))
            native = torch.nn.functional.scaled_dot_product_attention
            programs["torch"] = lambda: native(tq, tk, tv, is_causal=causal)
        return programs

    return attention_of


WORKLOADS: dict[str, Callable[[int], Programs]] = {
    "chain": chain,
    "gelu": gelu,
    "softmax": softmax,
    "layernorm": layernorm,
    "sum": total,
    "transpose": transpose,
    "attn128": _attention(128),
    "attn512": _attention(512),
    "causal128": _attention(128, causal=True),
    "causal512": _attention(512, causal=True),
}

if __name__ == "__main__":
    main()
