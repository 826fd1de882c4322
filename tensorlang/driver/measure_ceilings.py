"""Measure what this machine can do at most, with two kernels of our own.

Input:  this machine
Output: ``Ceilings(threads=2, gflops={"32 x 1": 99.2, ...}, gigabytes={"memory x 1": 21.5, ...})``

::

    multiply_add[p, r, i] = sum over k of x[k] * y[p, i]     10 sums of a vector each in registers:
                                                             nothing but multiply-adds
    read[p, r, i] = sum over k of x[p, k, i]                 16 loads of a vector a step of k, which
                                                             are added: nothing but loads

``p`` runs in parallel, ``r`` repeats the work, so that a call is long enough for the clock. The
best of some calls counts: a ceiling is what is possible, and other programs take from it.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np

from tensorlang.driver.entry import compile
from tensorlang.dtypes import f32, f64
from tensorlang.lang import reductions
from tensorlang.lang.comprehension import tensor
from tensorlang.lang.compute import Operator, compute
from tensorlang.lang.dims import Dim, dims
from tensorlang.runtime.threads import num_threads
from tensorlang.schedule.entry import schedule
from tensorlang.targets.ceilings import Ceilings
from tensorlang.targets.cpu import CpuTarget, parse_cpu_target

_SUMS = 10  # vectors; two multiply-adds a cycle of four cycles each need eight
_LOADS = 16
_STEPS = 2048
_OPERATIONS = 1 << 25
_BYTES = 1 << 27
_MOST_BYTES = 1 << 28
_LARGE_L3 = 1 << 26
_CALLS = 5

P, K, W = dims("P K W")


@compute
def multiply_add(x: f32[K], y: f32[P, W], *, repeats: Dim):
    """Add up products of what is in registers, but for one number a step."""
    return tensor(reductions.sum(x[k] * y[p, i] for k in K) for p in P for _ in repeats for i in W)


@compute
def multiply_add_double(x: f64[K], y: f64[P, W], *, repeats: Dim):
    """Do the same in f64."""
    return tensor(reductions.sum(x[k] * y[p, i] for k in K) for p in P for _ in repeats for i in W)


@compute
def read(x: f32[P, K, W], *, repeats: Dim):
    """Add up vectors that are each loaded once."""
    return tensor(reductions.sum(x[p, k, i] for k in K) for p in P for _ in repeats for i in W)


def measure_ceilings() -> Ceilings:
    """Return the ceilings for one thread and for as many as calls use; takes about two seconds."""
    target, threads = parse_cpu_target("cpu"), num_threads()
    gflops: dict[str, float] = {}
    gigabytes: dict[str, float] = {}
    for count in dict.fromkeys((1, threads)):
        gflops[f"32 x {count}"] = _peak(multiply_add, target.lanes(32), np.float32, count)
        gflops[f"64 x {count}"] = _peak(multiply_add_double, target.lanes(64), np.float64, count)
        run = _compile(read, _LOADS, target.lanes(32), parallel=count > 1)
        for level, size in _sizes(target, count).items():
            gigabytes[f"{level} x {count}"] = _bandwidth(run, target, size, count)
    for figures in (gflops, gigabytes):
        for name in figures:  # where others use the other cores, more threads are no faster
            alone = figures[name.partition(" x ")[0] + " x 1"]
            figures[name] = max(figures[name], alone)
    return Ceilings(threads, gflops, gigabytes)


def _sizes(target: CpuTarget, threads: int) -> dict[str, int]:
    """Return for each level bytes that it holds and the one before does not."""
    # of a huge third level, which virtual machines share, a part stands for the whole
    third = min(target.l3_bytes, _LARGE_L3)
    return {
        "L1": target.l1_bytes // 2 * threads,
        "L2": target.l2_bytes // 2 * threads,
        "L3": max(third // 2, min(2 * target.l2_bytes * threads, third)),
        "memory": max(_LARGE_L3, min(4 * target.l3_bytes, _MOST_BYTES)),
    }


def _peak(operator: Operator, lanes: int, kind: type[np.floating[Any]], threads: int) -> float:
    run = _compile(operator, _SUMS, lanes, parallel=threads > 1)
    width = _SUMS * lanes
    x, y = np.ones(_STEPS, kind), np.ones((threads, width), kind)
    each = 2 * _STEPS * width
    repeats = max(1, _OPERATIONS // each)
    out = np.empty((threads, repeats, width), kind)
    seconds = _best(lambda: run(x, y, repeats=repeats, out=out))
    return each * repeats * threads / seconds / 1e9


def _bandwidth(run: Any, target: CpuTarget, size: int, threads: int) -> float:
    width = _LOADS * target.lanes(32)
    x = np.ones((threads, max(1, size // (4 * width * threads)), width), np.float32)
    repeats = max(1, _BYTES // x.nbytes)
    out = np.empty((threads, repeats, width), np.float32)
    return x.nbytes * repeats / _best(lambda: run(x, repeats=repeats, out=out)) / 1e9


def _best(call: Callable[[], object]) -> float:
    call()
    best = float("inf")
    for _ in range(_CALLS):
        start = perf_counter()
        call()
        best = min(best, perf_counter() - start)
    return best


def _compile(operator: Operator, vectors: int, lanes: int, *, parallel: bool) -> Any:
    """Return the code of ``vectors`` sums that stay in registers."""
    s = schedule(operator, W=vectors * lanes)
    part, repeat, i, k = s.loops
    vector, lane = s.split(i, lanes)
    s.reorder(part, repeat, k, vector, lane)
    s.cache_write(s.definition.name, at=repeat)
    s.unroll(vector)
    s.vectorize(lane)
    if parallel:
        s.parallel(part)
    return compile(s)
