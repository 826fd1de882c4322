"""Median times of programs that take turns in one process, within a number of seconds.

Input:  ``{"numpy": call, "tensorlang": call}``, 2.5 seconds
Output: ``{"numpy": 0.31, "tensorlang": 0.29}``, milliseconds

A turn is a burst of calls after a pause, in which the idle threads of the library before go to
sleep (those of OpenBLAS spin for a tenth of a second), and calls that are not counted. Its figure
is the mean: timed one by one on a busy machine, most calls that are shorter than a time slice are
never interrupted, and the median would show all others several times as slow. Programs far slower
than the fastest take few turns.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from statistics import median

from benchmarks.workload import Call
from tensorlang.runtime.threads import num_threads

LEAST_ROUNDS = 3
MOST_ROUNDS = 25
HOPELESS = 4.0
_BURST = 0.02
_PAUSE = 0.005
_SLEEP = 0.15
"""Seconds after which threads of other libraries that wait for work have stopped spinning."""

_AWAKE = 0.06
"""Seconds of calls until threads that slept run on cores of their own again."""

_LONG = 0.03


def interleave(
    calls: Mapping[str, Call], seconds: float, least_rounds: int = LEAST_ROUNDS
) -> dict[str, float]:
    """Return the median milliseconds of one call of each program, compiled and warm already."""
    once = {name: _shortest(call) for name, call in calls.items()}
    fastest = min(once.values())
    counts = {name: max(1, min(100_000, int(_BURST / time))) for name, time in once.items()}
    samples: dict[str, list[float]] = {name: [] for name in calls}
    names, deadline = list(calls), time.perf_counter() + seconds
    for round_ in range(MOST_ROUNDS):
        if round_ >= least_rounds and time.perf_counter() > deadline:
            break
        shift = round_ % len(names)
        for name in names[shift:] + names[:shift]:
            if round_ < least_rounds or once[name] <= HOPELESS * fastest:
                samples[name].append(_burst(calls[name], counts[name], once[name]))
    return {name: 1e3 * median(times) for name, times in samples.items()}


def _shortest(call: Call) -> float:
    """Return the seconds of a call, the shortest of a few."""
    shortest, spent = float("inf"), 0.0
    for _ in range(5):
        last = _seconds(call)
        shortest, spent = min(shortest, last), spent + last
        if spent > 2 * _LONG:
            break
    return max(shortest, 1e-8)


def _burst(call: Call, count: int, once: float) -> float:
    """Return the seconds a call of ``count`` of them."""
    several = num_threads() > 1
    time.sleep(_SLEEP if several else _PAUSE)
    if once < _LONG:
        call()
    awake = time.perf_counter() + (_AWAKE if several else 0.0)
    while time.perf_counter() < awake:
        call()
    start = time.perf_counter()
    for _ in range(count):
        call()
    return (time.perf_counter() - start) / count


def _seconds(call: Call) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start
