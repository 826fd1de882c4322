"""The deep run: many cases, in processes that may die.

``python -m tests.fuzz --cases 3000 --seed 1`` runs them; ``--case 17`` one, with all it shows.
A process works through a range of seeds and prints a line before and after each; where it dies or
hangs, the seed that began is a fault, and another process goes on after it.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

BATCH = 100  # seeds a process
HANG = 180.0  # seconds without a word


@dataclass
class Summary:
    """The sum of all accounts."""

    cases: int = 0
    runs: int = 0
    plain: int = 0
    unproved: int = 0
    faults: list[dict[str, Any]] = field(default_factory=list)
    accepted: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, account: dict[str, Any]) -> None:
        with self.lock:
            self._add(account)

    def _add(self, account: dict[str, Any]) -> None:
        self.cases += 1
        self.runs += account["runs"]
        self.plain += account["plain"]
        self.unproved += account["unproved"]
        for name in ("accepted", "refused", "errors"):
            getattr(self, name).update(account[name])
        if account["faults"]:
            self.faults.append(account)


def work(first: int, count: int, sizes: int) -> None:
    """Run seeds and print a line of JSON for each; what the parent process reads."""
    from tests.fuzz.case import run_case

    for seed in range(first, first + count):
        print(json.dumps({"begin": seed}), flush=True)
        print(json.dumps(run_case(seed, sizes), default=vars), flush=True)


def run_batch(first: int, count: int, sizes: int, summary: Summary) -> None:
    """Run seeds in a process; note the seed at which it dies and go on behind it."""
    end = first + count
    while first < end:
        command = [sys.executable, "-m", "tests.fuzz", "--work", str(first), str(end - first)]
        process = subprocess.Popen(
            [*command, "--sizes", str(sizes)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "TENSORLANG_PARALLEL_FROM": "0", "TENSORLANG_CACHE": "off"},
        )
        begun, error = _follow(process, summary)
        if process.wait() == 0:
            return
        fault = {"kind": "crash", "text": f"exit status {process.returncode}\n{error[-2000:]}"}
        seed = first if begun is None else begun
        summary.add(
            {"seed": seed, "faults": [fault], "runs": 0, "plain": 0, "unproved": 0, "accepted": {},
             "refused": {}, "errors": {}, "operator": "", "steps": ""}
        )  # fmt: skip
        first = seed + 1


def _follow(process: subprocess.Popen[str], summary: Summary) -> tuple[int | None, str]:
    """Read accounts until the process ends or hangs; return the seed that did not end."""
    lines: queue.Queue[str] = queue.Queue()
    errors: list[str] = []
    assert process.stdout is not None
    assert process.stderr is not None
    readers = [
        threading.Thread(target=lambda: [lines.put(line) for line in process.stdout or ()]),
        threading.Thread(target=lambda: errors.extend(process.stderr or ())),
    ]
    for reader in readers:
        reader.start()
    begun: int | None = None
    heard = time.monotonic()
    while readers[0].is_alive() or not lines.empty():
        try:
            line = lines.get(timeout=0.5)
        except queue.Empty:
            if time.monotonic() - heard > HANG:
                process.kill()
                errors.append(f"no word for {HANG} seconds")
            continue
        heard = time.monotonic()
        message = json.loads(line)
        if "begin" in message:
            begun = message["begin"]
        else:
            summary.add(message)
            begun = None
    for reader in readers:
        reader.join()
    return begun, "".join(errors)


def report(summary: Summary, seconds: float, first: int) -> str:
    kinds = Counter(fault["kind"] for account in summary.faults for fault in account["faults"])
    lines = [
        f"{summary.cases} cases from seed {first} in {seconds:.0f} s",
        f"{summary.runs} results agree with the reference;"
        f" calls that failed as the reference does: {dict(summary.errors)}",
        f"{summary.plain} references agree with the text run as plain Python",
        f"{summary.unproved} schedules were accepted step by step, but not proved",
        f"faults: {len(summary.faults)} cases, {dict(kinds)}",
        "steps (accepted / refused):",
        *[
            f"  {name:20} {summary.accepted[name]:6} / {summary.refused[name]}"
            for name in sorted(summary.accepted | summary.refused)
        ],
    ]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--cases", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--sizes", type=int, default=3, help="draws of sizes for each case")
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time")
    parser.add_argument("--case", type=int, help="run one seed here, and show it")
    parser.add_argument("--faults", type=Path, help="a file to write faults to, as they appear")
    parser.add_argument("--work", type=int, nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        work(*options.work, options.sizes)
        return 0
    if options.case is not None:
        from tests.fuzz.case import describe, run_case

        account = run_case(options.case, options.sizes)
        print(describe(account))
        return 1 if account.faults else 0
    start = time.monotonic()
    summary = Summary()
    end = options.seed + options.cases

    def batch(first: int) -> None:
        run_batch(first, min(BATCH, end - first), options.sizes, summary)
        print(f"{summary.cases} cases, {len(summary.faults)} with faults", flush=True)
        if options.faults:
            options.faults.write_text(json.dumps(summary.faults, indent=1))

    with ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(batch, range(options.seed, end, BATCH)))
    print(report(summary, time.monotonic() - start, options.seed))
    return 1 if summary.faults else 0


if __name__ == "__main__":
    sys.exit(main())
