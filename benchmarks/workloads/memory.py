"""Operators bound by memory: elementwise chains, rows that are normalised, a sum, a transpose.

Ours are definitions as a user writes them, by their default schedules, with `out=` (but for the
row that says so); f32. The cases are those of `benchmarks/memory_bound.py`, with more peers.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks import memory_bound
from benchmarks.libraries import jax_call, torch_tensors, torch_with
from benchmarks.workload import OURS, Call, Programs, Workload

_CHAIN = 16 << 20
_ROWS = (4096, 1024)
_SUM = 64 << 20
_SQUARE = (4096, 4096)
_GELU = np.float32(memory_bound.G)


def _normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape, dtype=np.float32)


def _programs(case: str, more: Callable[[], Programs], threads: int) -> Programs:
    """Return the programs of a case of memory_bound, and more."""
    programs: Programs = {}
    for name, call in memory_bound.WORKLOADS[case](threads).items():
        if call is not None:
            ours = OURS if name == "ours" else name
            programs[ours] = partial(_given, call)
    return {**programs, **more()}


def _given(call: Call) -> Call:
    return call


def _numexpr(text: str, out: np.ndarray | None, **names: Any) -> Call:
    import numexpr

    return lambda: numexpr.evaluate(text, local_dict=names, out=out)


def _chain_of(library: Any, x: Any) -> Any:
    y = x * np.float32(1.1) + np.float32(0.1)
    return (library.maximum(y, 0) * y + x) * np.float32(0.5) - y


_CHAIN_TEXT = "(where(x * a + b > 0, x * a + b, z) * (x * a + b) + x) * h - (x * a + b)"
_GELU_TEXT = "h * y * (one + tanh(g * (y + q * y * y * y)))".replace("y", "(x * a + b)")


def _scalars() -> dict[str, np.float32]:
    values = {"a": 1.1, "b": 0.1, "z": 0.0, "h": 0.5, "one": 1.0, "q": 0.044715, "g": _GELU}
    return {name: np.float32(value) for name, value in values.items()}


def _more_chain() -> Programs:
    x = _normal(_CHAIN)
    out = np.zeros_like(x)

    def jax() -> Call:
        import jax.numpy

        return jax_call(partial(_chain_of, jax.numpy), x)

    return {
        "numpy": lambda: lambda: _chain_of(np, x),
        "numexpr": lambda: _numexpr(_CHAIN_TEXT, out, x=x, **_scalars()),
        "jax": jax,
    }


def _chain_without_out(threads: int) -> Programs:
    x = _normal(_CHAIN)
    a, b = np.float32(1.1), np.float32(0.1)

    def ours() -> Call:
        import tensorlang as tl

        N = tl.dim("N")

        @tl.compute
        def chain(x: tl.f32[N], a: tl.f32, b: tl.f32):
            y = tl.tensor(x[i] * a + b for i in N)
            return tl.tensor((tl.maximum(y[i], 0) * y[i] + x[i]) * 0.5 - y[i] for i in N)

        return partial(chain, x, a, b)

    def torch(compiled: bool) -> Call:
        library = torch_with(threads)
        (given,) = torch_tensors(x)

        def chain(x: Any) -> Any:
            y = x * 1.1 + 0.1
            return (library.relu(y) * y + x) * 0.5 - y

        return partial(library.compile(chain, dynamic=False) if compiled else chain, given)

    def numba() -> Call:
        import numba as library

        prange = library.prange

        @library.njit(parallel=True, fastmath=True)
        def chain(x, a, b):
            out = np.empty_like(x)
            for i in prange(x.size):
                y = x[i] * a + b
                out[i] = (max(y, np.float32(0)) * y + x[i]) * np.float32(0.5) - y
            return out

        return partial(chain, x, a, b)

    more = {name: build for name, build in _more_chain().items() if name != "numexpr"}
    return {
        OURS: ours,
        "torch": partial(torch, compiled=False),
        "torch.compile": partial(torch, compiled=True),
        "numba": numba,
        "numexpr": lambda: _numexpr(_CHAIN_TEXT, None, x=x, **_scalars()),
        **more,
    }


def _more_gelu() -> Programs:
    x = _normal(_CHAIN)
    out = np.zeros_like(x)

    def jax() -> Call:
        import jax.numpy

        def gelu(x: Any) -> Any:
            y = x * 1.1 + 0.1
            return 0.5 * y * (1 + jax.numpy.tanh(memory_bound.G * (y + 0.044715 * y * y * y)))

        return jax_call(gelu, x)

    return {"numexpr": lambda: _numexpr(_GELU_TEXT, out, x=x, **_scalars()), "jax": jax}


def _more_softmax() -> Programs:
    x = _normal(*_ROWS)
    out = np.zeros_like(x)

    def numpy() -> np.ndarray:
        np.exp(np.subtract(x, x.max(1, keepdims=True), out=out), out=out)
        return np.divide(out, out.sum(1, keepdims=True), out=out)

    def jax() -> Call:
        import jax

        return jax_call(partial(jax.nn.softmax, axis=1), x)

    return {"numpy": lambda: numpy, "jax": jax}


def _more_layernorm() -> Programs:
    x = _normal(*_ROWS)
    g, b = (np.random.default_rng(s).standard_normal(1024, dtype=np.float32) for s in (1, 2))

    def jax() -> Call:
        import jax

        def layernorm(x: Any, g: Any, b: Any) -> Any:
            centred = x - x.mean(1, keepdims=True)
            variance = (centred * centred).mean(1, keepdims=True)
            return centred * jax.lax.rsqrt(variance + 1e-5) * g + b

        return jax_call(layernorm, x, g, b)

    return {"jax": jax}


def _more_sum() -> Programs:
    x = _normal(_SUM)
    return {
        "numexpr": lambda: _numexpr("sum(x)", None, x=x),
        "jax": lambda: jax_call(lambda x: x.sum(), x),
    }


def _more_transpose() -> Programs:
    x = _normal(*_SQUARE)
    out = np.zeros_like(x)

    def numpy() -> np.ndarray:
        np.copyto(out, x.T)
        return out

    return {"numpy": lambda: numpy, "jax": lambda: jax_call(lambda x: x.T, x)}


def _workload(name: str, case: str, more: Callable[[], Programs], traffic: float) -> Workload:
    # f32 sums of 64M elements, in whatever order, agree to few digits
    tolerance = None if case == "sum" else 1e-3
    return Workload(name, partial(_programs, case, more), bytes=traffic, tolerance=tolerance)


_ELEMENTWISE, _ROWWISE = 8.0 * _CHAIN, 8.0 * _ROWS[0] * _ROWS[1]
WORKLOADS = [
    _workload("chain 16M", "chain", _more_chain, _ELEMENTWISE),
    Workload("chain 16M without out=", _chain_without_out, bytes=_ELEMENTWISE),
    _workload("gelu 16M", "gelu", _more_gelu, _ELEMENTWISE),
    _workload("softmax 4096x1024", "softmax", _more_softmax, _ROWWISE),
    _workload("layernorm 4096x1024", "layernorm", _more_layernorm, _ROWWISE),
    _workload("sum 64M", "sum", _more_sum, 4.0 * _SUM),
    _workload("transpose 4096x4096", "transpose", _more_transpose, 8.0 * _SQUARE[0] ** 2),
]
