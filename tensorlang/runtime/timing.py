"""Measure a call: warm up, repeat, and state the median together with the spread.

Input:  ``f.time(A, B)``
Output: ``matmul: 2.75 ms (2.71-2.86, best 2.70, 73 samples), 97.6 GFLOP/s (98 % of 99.2), 1.1 GB/s
        (4 % of L3's 26); arithmetic is the limit``

The median is the figure to quote; the quartiles tell how far to trust it. Beside the rates stand
the ceilings of the machine, as measured with code that does nothing but multiply and add, or read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median, quantiles
from time import perf_counter_ns

from tensorlang.targets.roofline import Roofline

_SHORTEST_SAMPLE = 50_000  # ns; shorter calls are timed in batches, for the clock's resolution
_MOST_SAMPLES = 1_000
_MOSTLY_CALLING = 1e-6  # seconds of a call, a good part of which is the call itself
_FAR_FROM_LIMITS = 0.25
_ABOVE_LIMITS = 1.2


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds per call: median, quartiles and best, of ``samples`` measurements.

    ``operations`` and ``bytes`` are those of the definition: what a schedule recomputes or reads
    twice does not count, and a function such as ``exp`` is one operation. ``limits`` are those of
    this machine, for the level of memory that holds the inputs and outputs.
    """

    name: str
    median: float
    lower_quartile: float
    upper_quartile: float
    best: float
    samples: int
    operations: int = 0
    bytes: int = 0
    limits: Roofline | None = None

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

    @property
    def share_of_arithmetic(self) -> float:
        """The reached part of the machine's peak GFLOP/s; 0 where the machine was not measured."""
        return self.gflops / self.limits.gflops if self.limits else 0.0

    @property
    def share_of_bandwidth(self) -> float:
        """The reached part of the GB/s at which the level that holds the data can be read.

        A level may be read faster than it can be written: programs that write reach less.
        """
        return self.gbytes / self.limits.gigabytes if self.limits else 0.0

    @property
    def limit(self) -> str:
        """What keeps the call from being faster: the nearer ceiling, if one is near.

        ``"arithmetic"``, a level of memory such as ``"L2"``, ``"the call itself"`` for calls of
        less than a microsecond, else ``"neither"``: dependent operations, functions that cost many
        operations, or a schedule that moves or computes more than the definition says.
        """
        if self.limits is None:
            return "unknown"
        arithmetic, bandwidth = self.share_of_arithmetic, self.share_of_bandwidth
        if max(arithmetic, bandwidth) >= _FAR_FROM_LIMITS:
            return "arithmetic" if arithmetic >= bandwidth else self.limits.level
        return "the call itself" if self.median < _MOSTLY_CALLING else "neither"

    def __str__(self) -> str:
        factor, unit = _unit(self.median)
        low, high, best = (
            f"{value * factor:.3g}"
            for value in (self.lower_quartile, self.upper_quartile, self.best)
        )
        time = (
            f"{self.name}: {self.median * factor:.3g} {unit}"
            f" ({low}-{high}, best {best}, {self.samples} samples)"
        )
        if self.limits is None:
            return f"{time}, {self.gflops:.3g} GFLOP/s, {self.gbytes:.3g} GB/s"
        return (
            f"{time}, {self.gflops:.3g} GFLOP/s"
            f" ({self.share_of_arithmetic:.0%} of {self.limits.gflops:.3g}),"
            f" {self.gbytes:.3g} GB/s ({self.share_of_bandwidth:.0%} of {self.limits.level}'s"
            f" {self.limits.gigabytes:.3g}); {self.limit} is the limit{self._doubt}"
        ).replace("%", " %")

    @property
    def _doubt(self) -> str:
        if max(self.share_of_arithmetic, self.share_of_bandwidth) <= _ABOVE_LIMITS:
            return ""
        return " (the machine was busy when it was measured: `tensorlang roofline --again`)"


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
    limits: Roofline | None = None,
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
    return Timing(
        name, median(samples), low, high, min(samples), len(samples), operations, bytes, limits
    )


def _time_batch(call: Callable[[], object], count: int) -> int:
    start = perf_counter_ns()
    for _ in range(count):
        call()
    return perf_counter_ns() - start
