"""Runs workloads in this process and tells of each on standard output, a line of JSON an event.

``python -m benchmarks.peer_process --threads 1 --seconds 2.5 --until 1790000000 WORKLOAD ...``

``{"work": ..., "program": ...}`` comes before a program is made and tried, so that whoever listens
knows what a process that ended was doing; ``{"outcome": ...}`` when a workload is done.
``--without WORKLOAD PROGRAM`` leaves out a program that has ended a process before.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from dataclasses import asdict
from typing import Any

import numpy as np

from benchmarks.interleaving import interleave
from benchmarks.workload import Call, Outcome, Workload
from benchmarks.workloads import all_workloads

_LONGEST_MESSAGE = 160


def main() -> None:
    """Run the workloads that are named."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peer_process", description=__doc__)
    parser.add_argument("names", nargs="+")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=2.5)
    parser.add_argument("--until", type=float, default=float("inf"))
    parser.add_argument("--without", nargs=2, action="append", default=[])
    options = parser.parse_args()
    events = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # libraries print into standard output, too

    def tell(**event: Any) -> None:
        print(json.dumps(event), file=events, flush=True)

    workloads = all_workloads()
    for name in options.names:
        if time.time() > options.until:
            break
        skipped = {program for work, program in options.without if work == name}
        outcome = run(workloads[name], options.threads, options.seconds, skipped, tell)
        tell(outcome=asdict(outcome))


def run(workload: Workload, threads: int, seconds: float, skipped: set[str], tell: Any) -> Outcome:
    """Make, check and measure the programs of a workload but for ``skipped``."""
    outcome = Outcome(workload.name, threads)
    if workload.measure is not None:
        tell(work=workload.name, program="all")
        outcome.medians.update(workload.measure(threads))
        return outcome
    calls: dict[str, Call] = {}
    expected: np.ndarray | None = None
    try:
        builders = workload.programs(threads)
    except Exception as error:
        outcome.failures["all"] = _message(error)
        return outcome
    for program, build in builders.items():
        if program in skipped:
            continue
        tell(work=workload.name, program=program)
        try:
            call = build()
            result = call()
            call()
        except Exception as error:
            outcome.failures[program] = _message(error)
            continue
        if workload.tolerance is not None and result is not None:
            result = np.array(result)
            expected = result if expected is None else expected
            if (difference := distance(result, expected)) > workload.tolerance:
                outcome.failures[program] = f"its result is off by {difference:.2g} of the spread"
                continue
        calls[program] = call
    tell(work=workload.name, program="timing")
    if calls:
        outcome.medians.update(interleave(calls, seconds))
    return outcome


def distance(result: np.ndarray, expected: np.ndarray) -> float:
    """Return the largest difference, relative to the standard deviation of ``expected``."""
    if result.size != expected.size:
        return float("inf")
    wanted = expected.astype(np.float64).ravel()
    spread = float(np.std(wanted)) or float(np.abs(wanted).max(initial=0)) or 1.0
    return float(np.abs(result.astype(np.float64).ravel() - wanted).max(initial=0)) / spread


def _message(error: Exception) -> str:
    if isinstance(error, ModuleNotFoundError):
        return f"not installed: {error.name}"
    first = (str(error).strip() or "no message").splitlines()[0]
    return f"{type(error).__name__}: {first}"[:_LONGEST_MESSAGE]


if __name__ == "__main__":
    main()
    sys.stderr.flush()
    os._exit(0)  # threads of the libraries may not end by themselves
