"""Elementary functions, one element: ours, NumPy's and numba's, on one thread.

``python -m benchmarks.functions`` prints a table of nanoseconds an element, f32 and f64. The
programs take turns, and the figure is the median of the rounds; the array fits the second cache.
"""

from __future__ import annotations

import os

os.environ["TENSORLANG_NUM_THREADS"] = "1"
os.environ.setdefault("NUMBA_NUM_THREADS", "1")

import argparse
import math
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np

import tensorlang as tl

COUNT = 1 << 17
NAMES = (
    "exp", "exp2", "expm1", "log", "log2", "log1p", "sigmoid", "sin", "cos", "tan", "sinh",
    "cosh", "tanh", "asin", "acos", "atan", "erf", "sqrt", "rsqrt", "pow", "atan2",
)  # fmt: skip
IN_NUMPY = {
    "asin": "arcsin",
    "acos": "arccos",
    "atan": "arctan",
    "pow": "power",
    "atan2": "arctan2",
}


def main() -> None:
    """Measure the functions that are asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.functions", description=__doc__)
    parser.add_argument("names", nargs="*", default=NAMES)
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    print("| function | f32 | NumPy | numba | f64 | NumPy | numba |\n|---|---|---|---|---|---|---|")
    for name in options.names:
        figures = [
            figure
            for kind in (np.float32, np.float64)
            for figure in measure(programs(name, kind), arguments(name, kind), options.rounds)
        ]
        cells = ["" if figure is None else f"{figure:.2f}" for figure in figures]
        print(f"| `{name}` | " + " | ".join(cells) + " |", flush=True)


def arguments(name: str, kind: type) -> list[np.ndarray]:
    """Return operands inside the function's domain."""
    generator = np.random.default_rng(7)
    limit = 1 if name in ("asin", "acos") else 9
    count = 2 if name in ("pow", "atan2") else 1
    return [generator.uniform(0.01, limit, COUNT).astype(kind) for _ in range(count)]


def programs(name: str, kind: type) -> list[Callable[..., Any] | None]:
    """Return ours, NumPy's and numba's, each ``(*operands, out)``; None where there is none."""
    compiled = _ours(name, tl.f32 if kind is np.float32 else tl.f64)
    function = getattr(np, IN_NUMPY.get(name, name), None)
    return [
        lambda *args: compiled(*args[:-1], out=args[-1]),
        None if function is None else lambda *args: function(*args[:-1], out=args[-1]),
        _numba(name),
    ]


def _ours(name: str, dtype: Any) -> Callable[..., Any]:
    N, function = tl.dim("N"), getattr(tl, name)
    if name in ("pow", "atan2"):

        @tl.compute
        def apply(x: dtype[N], y: dtype[N]):
            return tl.tensor(function(x[i], y[i]) for i in N)
    else:

        @tl.compute
        def apply(x: dtype[N]):
            return tl.tensor(function(x[i]) for i in N)

    return tl.compile(apply)


def _numba(name: str) -> Callable[..., Any] | None:
    try:
        from numba import njit
    except ImportError:
        return None
    scalar = {"pow": math.pow}.get(name, getattr(math, name, None))
    if name == "sigmoid":
        scalar = njit(lambda x: 1 / (1 + math.exp(-x)))
    if name == "rsqrt":
        scalar = njit(lambda x: 1 / math.sqrt(x))
    if scalar is None or name == "exp2":
        return None
    function = scalar
    if name in ("pow", "atan2"):

        @njit(error_model="numpy")
        def apply(x, y, out):
            for i in range(x.size):
                out[i] = function(x[i], y[i])
    else:

        @njit(error_model="numpy")
        def apply(x, out):
            for i in range(x.size):
                out[i] = function(x[i])

    return apply


def measure(
    functions: list[Callable[..., Any] | None], operands: list[np.ndarray], rounds: int
) -> list[float | None]:
    """Return nanoseconds an element of each."""
    out = np.empty_like(operands[0])
    times: list[list[float]] = [[] for _ in functions]
    for round_ in range(rounds + 2):
        for place, function in enumerate(functions):
            if function is None:
                continue
            start = time.perf_counter()
            function(*operands, out)
            if round_ > 1:
                times[place].append(time.perf_counter() - start)
    return [median(each) / COUNT * 1e9 if each else None for each in times]


if __name__ == "__main__":
    main()
