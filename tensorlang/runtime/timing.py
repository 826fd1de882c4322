"""Measure a call: warm up, repeat, and state the median together with the spread.

Input:  ``f.time(A, B)``
Output: ``matmul: 2.75 ms (2.71-2.86, best 2.70, 73 calls), 97.6 GFLOP/s, 1.1 GB/s``

The median is the figure to quote; the quartiles tell how far to trust it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median, quantiles
from time import perf_counter_ns

_SHORTEST_SAMPLE = 50_000  # ns; shorter calls are timed in batches, for the clock's resolution
_MOST_SAMPLES = 1_000


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds per call: median, quartiles and best, of ``samples`` measurements.

    ``operations`` and ``bytes`` are those of the definition: what a schedule recomputes or reads
    twice does not count.
    """

    name: str
    median: float
    lower_quartile: float
    upper_quartile: float
    best: float
    samples: int
    operations: int = 0
    bytes: int = 0

    @property
    def spread(self) -> float:
        """The distance of the quartiles, relative to the median."""
        return (self.upper_quartile - self.lower_quartile) / self.median if self.median else 0.0

    @property
    def gflops(self) -> float:
        """Billions of operations a second, at the median."""
        return self.operations / self.median / 1e9 if self.median else 0.0

    @property
    def gbytes(self) -> float:
        """Billions of bytes of inputs and outputs a second, at the median."""
        return self.bytes / self.median / 1e9 if self.median else 0.0

    def __str__(self) -> str:
        factor, unit = _unit(self.median)
        low, high, best = (
            f"{value * factor:.3g}"
            for value in (self.lower_quartile, self.upper_quartile, self.best)
        )
        return (
            f"{self.name}: {self.median * factor:.3g} {unit}"
            f" ({low}-{high}, best {best}, {self.samples} samples),"
            f" {self.gflops:.3g} GFLOP/s, {self.gbytes:.3g} GB/s"
        )


def _unit(seconds: float) -> tuple[float, str]:
    for factor, unit in ((1.0, "s"), (1e3, "ms"), (1e6, "us")):
        if seconds * factor >= 1:
            return factor, unit
    return 1e9, "ns"


def measure(
    call: Callable[[], object],
    *,
    seconds: float = 0.2,
    at_least: int = 5,
    name: str = "call",
    operations: int = 0,
    bytes: int = 0,
) -> Timing:
    """Time ``call`` for about ``seconds``, and at least ``at_least`` times, after warming up.

    >>> measure(lambda: sum(range(100)), seconds=0.001).samples >= 5
    True
    """
    call()  # compiles, touches the pages, wakes the threads
    once = max(1, _time_batch(call, 1))
    batch = max(1, _SHORTEST_SAMPLE // once)
    deadline = perf_counter_ns() + int(seconds * 1e9)
    samples: list[float] = []
    while len(samples) < at_least or (
        perf_counter_ns() < deadline and len(samples) < _MOST_SAMPLES
    ):
        samples.append(_time_batch(call, batch) / batch * 1e-9)
    low, _, high = quantiles(samples, n=4) if len(samples) > 1 else (samples[0],) * 3
    return Timing(name, median(samples), low, high, min(samples), len(samples), operations, bytes)


def _time_batch(call: Callable[[], object], count: int) -> int:
    start = perf_counter_ns()
    for _ in range(count):
        call()
    return perf_counter_ns() - start
