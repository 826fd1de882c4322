"""The long runs; see the package."""

import argparse
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[2]


_SETTLING = 30.0
"""Seconds from which memory must have stopped growing."""


def soak_threads(seconds: float) -> bool:
    """Call twenty operators from eight threads, half with fresh sizes; is memory flat?"""
    from tests.soak.operators import OPERATORS, check

    errors: list[str] = []
    calls = [0] * 8
    stop = threading.Event()

    def work(number: int) -> None:
        generator = np.random.default_rng(number)
        while not stop.is_set():
            case = OPERATORS[generator.integers(len(OPERATORS))]
            fresh = generator.integers(2)
            m, n = generator.integers(1, 200, 2) if fresh else (64, 96)
            try:
                check(case, int(m), int(n), generator)
            except Exception as error:
                errors.append(f"{type(error).__name__}: {error}")
                stop.set()
            calls[number] += 1

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    start, memory = time.monotonic(), list[int]()
    while not stop.is_set() and time.monotonic() - start < seconds:
        stop.wait(seconds / 12)
        memory.append(_resident())
    stop.set()
    for thread in threads:
        thread.join()
    settled = memory[len(memory) // 3 :] or memory
    growth = settled[-1] - settled[0]
    # the first calls of each kind compile, which a short run does not get beyond
    flat = growth < max(16 << 20, settled[0] // 10) or seconds < _SETTLING
    print(f"threads: 8, operators: {len(OPERATORS)}, calls: {sum(calls)}, wrong: {len(errors)}")
    print(f"resident MiB: {', '.join(str(size >> 20) for size in memory)}")
    print(*errors[:3], sep="\n", end="\n" if errors else "")
    return flat and not errors


def soak_forks(count: int) -> bool:
    """Fork after parallel use; each child calls and compiles within thirty seconds."""
    import signal

    import tensorlang as tl
    from tests.soak.operators import OPERATORS, check

    tl.set_num_threads(4)
    generator = np.random.default_rng(0)
    threads = [
        threading.Thread(target=check, args=(case, 300, 400, np.random.default_rng(1)))
        for case in OPERATORS[:4]
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    check(OPERATORS[0], 400, 500, generator)
    fine = 0
    for child in range(count):
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                signal.alarm(30)
                check(OPERATORS[0], 400, 500, generator)
                check(OPERATORS[child % len(OPERATORS)], 30, 40, generator)
                status = 0
            finally:
                os._exit(status)
        fine += os.waitpid(pid, 0)[1] == 0
    check(OPERATORS[0], 400, 500, generator)
    print(f"children: {count}, without fault: {fine}")
    return fine == count


_ONE = "from tests.soak.operators import *; check(OPERATORS[13], 33, 50, np.random.default_rng(0))"


def soak_processes(count: int) -> bool:
    """Compile the same operator in many processes with one empty cache."""
    with tempfile.TemporaryDirectory() as folder:
        start = time.monotonic()
        processes = [
            subprocess.Popen(
                [sys.executable, "-c", _ONE],
                cwd=ROOT,
                env={**os.environ, "TENSORLANG_CACHE": folder},
            )
            for _ in range(count)
        ]
        failed = sum(process.wait() != 0 for process in processes)
        seconds = time.monotonic() - start
        artefacts = sum(path.is_file() for path in Path(folder).rglob("*"))
    print(f"processes: {count}, failed: {failed}, artefacts: {artefacts}, seconds: {seconds:.0f}")
    return failed == 0 and artefacts == 1


def _resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.soak")
    parser.add_argument("run", choices=("threads", "forks", "processes"))
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--count", type=int, default=0)
    given = parser.parse_args()
    os.environ.setdefault("TENSORLANG_PARALLEL_FROM", "0")  # small work starts threads too
    match given.run:
        case "threads":
            fine = soak_threads(given.seconds)
        case "forks":
            fine = soak_forks(given.count or 100)
        case _:
            fine = soak_processes(given.count or 50)
    print("fine" if fine else "WRONG")
    sys.exit(not fine)


if __name__ == "__main__":
    main()
