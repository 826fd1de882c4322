"""What the peer benchmarks measure: a workload, and the programs that do it.

Input:  ``Workload("256x256x256", programs=..., operations=2 * 256**3)``
Output: ``Outcome(work="256x256x256", medians={"numpy": 0.31, "tensorlang": 0.29}, failures={})``

A program is made by a builder, which imports its library, so that a library which is missing or
fails costs one line of the report. Programs whose name begins with ``tensorlang`` are ours.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

OURS = "tensorlang"

Call = Callable[[], Any]
"""Does the work once; its result, where there is one, is compared with the first program's."""

Builder = Callable[[], Call]
Programs = dict[str, Builder]


@dataclass(frozen=True, slots=True)
class Workload:
    """Something that several libraries can do.

    Attributes
    ----------
    name
        unique among all workloads, such as ``"256x256x256"``
    programs
        given the number of threads, a builder for each program
    operations, bytes
        arithmetic and least memory traffic of one call; 0 where the rate says nothing
    tolerance
        how far results may be apart, relative to the spread of the first program's; None where
        they cannot be compared
    measure
        replaces the interleaved timing: given the number of threads, milliseconds by program

    """

    name: str
    programs: Callable[[int], Programs] = lambda threads: {}
    operations: float = 0
    bytes: float = 0
    tolerance: float | None = 1e-3
    measure: Callable[[int], dict[str, float]] | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """Median milliseconds by program, and what went wrong by program."""

    work: str
    threads: int
    medians: dict[str, float] = field(default_factory=dict[str, float])
    failures: dict[str, str] = field(default_factory=dict[str, str])
