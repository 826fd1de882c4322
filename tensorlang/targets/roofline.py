"""The two limits of a machine that bound any program: arithmetic and memory traffic.

Input:  a CPU target, the bits of an element, a number of threads, the bytes that a program touches
Output: ``Roofline(gflops=99.2, gigabytes=21.5, level="memory")``

After S. Williams, A. Waterman and D. Patterson, "Roofline: an insightful visual performance model
for multicore architectures" (2009). Where the machine was measured (see ``ceilings``), the limits
are those figures. Else the peak is two fused multiply-adds of a whole vector in each cycle, as most
server cores have, at the operating system's clock, and the bandwidth that of a sum over 64 MiB.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from tensorlang.targets.ceilings import known_ceilings
from tensorlang.targets.cpu import CpuTarget

_USUAL_CLOCK = 2.5
_PIPES = 2
_MEASURED_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Roofline:
    """Peak GFLOP/s, and GB/s between ``level`` and the cores; ``measured`` or estimated."""

    gflops: float
    gigabytes: float
    level: str = "memory"
    measured: bool = False

    @property
    def balance(self) -> float:
        """Operations a byte above which arithmetic is the limit."""
        return self.gflops / self.gigabytes


def roofline(
    target: CpuTarget, bits: int = 32, threads: int = 1, touched: int | None = None
) -> Roofline:
    """Return the limits of ``threads`` cores for floating-point numbers of ``bits`` bits.

    ``touched`` are the bytes of a program's inputs and outputs, which again and again come from the
    level that holds them; without it, they come from memory.
    """
    found = known_ceilings(target)
    if found is None:
        return estimated_roofline(target, bits, threads)
    level = "memory" if touched is None else level_of(target, touched, threads)
    bandwidth = found.bandwidth(level, threads)
    return Roofline(found.arithmetic(bits, threads), bandwidth, level, measured=True)


def estimated_roofline(target: CpuTarget, bits: int = 32, threads: int = 1) -> Roofline:
    """Return the limits as the facts of the processor suggest them."""
    operations = 2 if target.fused_multiply_add else 1
    peak = target.lanes(bits) * _PIPES * operations * clock_gigahertz() * threads
    return Roofline(peak, memory_gigabytes())


def level_of(target: CpuTarget, touched: int, threads: int = 1) -> str:
    """Return the first level of memory that holds ``touched`` bytes, spread over ``threads``."""
    sizes = (
        ("L1", target.l1_bytes * threads),
        ("L2", target.l2_bytes * threads),
        ("L3", target.l3_bytes),
    )
    return next((name for name, size in sizes if touched <= size), "memory")


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
