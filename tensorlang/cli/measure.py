"""Times several programs fairly: interleaved, in one process, in an order that rotates.

Input:  ``{"SciPy": call_scipy, "tensorlang": call_ours}``
Output: ``{"SciPy": Timing(median=0.081, ...), "tensorlang": Timing(median=0.004, ...)}``

A machine's clock and its neighbours change within seconds; programs that are timed one after the
other see different machines. Medians ignore the rounds in which something else ran.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds that a program took, over all rounds."""

    median: float
    lowest: float
    highest: float


def interleave(
    programs: Mapping[str, Callable[[], object]],
    rounds: int,
    progress: Callable[[range], Iterable[object]] = lambda rounds: rounds,
) -> dict[str, Timing]:
    """Return the times of ``programs`` over ``rounds`` rounds, after one round that is not counted.

    ``progress`` wraps the rounds, to show how far they are.
    """
    names = list(programs)
    seconds: dict[str, list[float]] = {name: [] for name in names}
    for call in programs.values():
        call()
    for number, _ in enumerate(progress(range(rounds))):
        shift = number % len(names)
        for name in names[shift:] + names[:shift]:
            start = time.perf_counter()
            programs[name]()
            seconds[name].append(time.perf_counter() - start)
    return {
        name: Timing(statistics.median(times), min(times), max(times))
        for name, times in seconds.items()
    }
