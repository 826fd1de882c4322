"""Measure tensorlang beside every other library that is installed, and write docs/benchmarks.md.

``python -m benchmarks.peers [FAMILY | WORKLOAD ...] [--threads 1 2] [--seconds 2.5]``

All workloads, whose tables and plots go into the page, or some, which are printed only. For each
number of threads the workloads run in one process, in which the programs take turns; with one
thread it stays on one core. A library that is missing or fails is a line of the report; one that
ends the process is left out and the others go on. After ``--minutes`` no more workloads are begun.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from signal import SIGKILL
from tempfile import TemporaryFile
from threading import Timer
from typing import IO

from benchmarks.peer_report import Conditions, print_outcome, write_page
from benchmarks.workload import Outcome
from benchmarks.workloads import all_workloads, choose

ROOT = Path(__file__).parents[1]
_LONGEST_SILENCE = 120.0  # seconds
_LONGEST_LINE = 120
_THREAD_VARIABLES = (
    "OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS",
    "NUMEXPR_NUM_THREADS", "NUMEXPR_MAX_THREADS", "TVM_NUM_THREADS", "HL_NUM_THREADS",
    "PJRT_NPROC", "TENSORLANG_NUM_THREADS",
)  # fmt: skip
_UNSET = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "TENSORLANG_CPU", "TENSORLANG_PARALLEL_FROM")


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="FAMILY | WORKLOAD")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--seconds", type=float, default=2.0, help="for a workload's timing")
    parser.add_argument("--minutes", type=float, default=9.5, help="for everything")
    parser.add_argument("--write", action="store_true", help="write the page in any case")
    options = parser.parse_args()
    try:
        names = choose(options.names)
    except ValueError as error:
        parser.error(str(error))
    known, begin, load = all_workloads(), time.time(), os.getloadavg()[0]
    outcomes: list[Outcome] = []
    for position, threads in enumerate(options.threads, start=1):
        until = begin + 60 * options.minutes * position / len(options.threads)
        here = [name for name in names if position == 1 or known[name].measure is None]
        for outcome in run(here, threads, options.seconds, until):
            print_outcome(outcome)
            outcomes.append(outcome)
    if options.write or not options.names:
        command = " ".join(["python -m benchmarks.peers", *sys.argv[1:]])
        write_page(outcomes, Conditions(command, time.time() - begin, load))


def run(names: list[str], threads: int, seconds: float, until: float) -> Iterator[Outcome]:
    """Measure workloads with ``threads`` threads until a time, and yield the outcomes."""
    left = list(names)
    deaths: dict[str, dict[str, str]] = {name: {} for name in names}
    while left and time.time() < until:
        current, program = left[0], "start"
        without = [
            word for name in left for dead in deaths[name] for word in ("--without", name, dead)
        ]
        command = [
            sys.executable, "-m", "benchmarks.peer_process", *left, "--threads", str(threads),
            "--seconds", str(seconds), "--until", str(until), *without,
        ]  # fmt: skip
        with TemporaryFile("w+") as errors:
            process = subprocess.Popen(
                command,
                cwd=ROOT,
                env=environment(threads),
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                preexec_fn=_stay_on_one_core if threads == 1 else None,
            )
            for event in _events(process):
                if "outcome" in event:
                    outcome = Outcome(**event["outcome"])
                    outcome.failures.update(deaths[outcome.work])
                    left.remove(outcome.work)
                    yield outcome
                    current, program = (left or [current])[0], "start"
                else:
                    current, program = event["work"], event["program"]
            code = process.wait()
            if code == 0:
                break
            reason = _reason(code, errors)
        if program in ("start", "timing", "all") or program in deaths[current]:
            left.remove(current)
            yield Outcome(current, threads, {}, {program: reason, **deaths[current]})
        else:
            deaths[current][program] = reason
    for name in left:
        yield Outcome(name, threads, {}, {"all": "not measured, out of time"})


def _reason(code: int, errors: IO[str]) -> str:
    """Return why a process ended, with the last line that it wrote."""
    if code == -SIGKILL:
        return "gave no answer"
    errors.seek(0)
    last = (errors.read().strip() or "it said nothing").splitlines()[-1]
    return f"ended the process (exit status {code}): {last[:_LONGEST_LINE]}"


def environment(threads: int) -> dict[str, str]:
    """Return the environment of a process with ``threads`` threads for every library."""
    kept = {name: value for name, value in os.environ.items() if name not in _UNSET}
    return {**kept, **dict.fromkeys(_THREAD_VARIABLES, str(threads)), "TF_CPP_MIN_LOG_LEVEL": "3"}


def _stay_on_one_core() -> None:
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def _events(process: subprocess.Popen[str]) -> Iterator[dict]:
    """Yield what a process tells, and kill it after a long silence."""
    assert process.stdout is not None
    watch = Timer(_LONGEST_SILENCE, process.kill)
    watch.start()
    for line in process.stdout:
        watch.cancel()
        watch = Timer(_LONGEST_SILENCE, process.kill)
        watch.start()
        yield json.loads(line)
    watch.cancel()


if __name__ == "__main__":
    main()
