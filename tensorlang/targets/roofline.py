"""The two limits of a machine that bound any program: arithmetic and memory traffic.

Input:  a CPU target, the bits of an element, a number of threads
Output: ``Roofline(gflops=99.2, gigabytes=21.5)``: its vector units, and its memory

The peak is two fused multiply-adds of a whole vector in each cycle, as most server cores have;
the clock is the operating system's. The bandwidth is measured once: a sum over 64 MiB.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from tensorlang.targets.cpu import CpuTarget

_USUAL_CLOCK = 2.5
_PIPES = 2
_MEASURED_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Roofline:
    """Peak GFLOP/s, and GB/s between memory and the last cache."""

    gflops: float
    gigabytes: float

    @property
    def balance(self) -> float:
        """Operations a byte above which arithmetic is the limit."""
        return self.gflops / self.gigabytes


def roofline(target: CpuTarget, bits: int = 32, threads: int = 1) -> Roofline:
    """Return the limits of ``threads`` cores for floating-point numbers of ``bits`` bits."""
    operations = 2 if target.fused_multiply_add else 1
    peak = target.lanes(bits) * _PIPES * operations * clock_gigahertz() * threads
    return Roofline(peak, memory_gigabytes())


@cache
def clock_gigahertz() -> float:
    """Return the clock of the first core as the system tells it; 2.5 where it does not."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("cpu MHz"):
                return float(line.partition(":")[2]) / 1e3
    except (OSError, ValueError):
        pass
    return _USUAL_CLOCK


@cache
def memory_gigabytes() -> float:
    """Return the GB/s at which this thread reads memory: the best of three sums."""
    data = np.ones(_MEASURED_BYTES // 8)
    best = float("inf")
    for _ in range(3):
        start = time.perf_counter()
        data.sum()
        best = min(best, time.perf_counter() - start)
    return _MEASURED_BYTES / best / 1e9
