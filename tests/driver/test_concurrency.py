"""Compiled functions among threads, processes, signals and other users of OpenMP.

Each case runs in a process of its own, for each kind of runtime: OpenMP's, threads of the system,
and none.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

COMMON = """
import ctypes, os, signal, sys, threading, time
import numpy as np
import tensorlang as tl
from tensorlang.runtime.threads import openmp

M, N = tl.dims("M N")

@tl.compute
def double(x: tl.f32[M, N]):
    return tl.tensor(x[i, j] * 2 for i in M for j in N)

@tl.compute
def heavy(x: tl.f32[M, N]):
    return tl.tensor(tl.sum(tl.sin(x[i, j] + k) for k in tl.range(400)) for i in M for j in N)

tl.set_num_threads(3)
x = np.ones((300, 400), np.float32)
assert (double(x) == 2).all()
"""

CASES = {
    "threads at once": """
wrong = []
def work(number):
    for step in range(20):
        y = np.full((40 + number, 100 + step), number, np.float32)
        if not (double(y) == 2 * number).all():
            wrong.append((number, step))
threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
[t.start() for t in threads]
[t.join() for t in threads]
assert not wrong, wrong
""",
    "the interpreter runs on meanwhile": """
heavy(x[:2])
counts, stop = [0], threading.Event()
def count():
    while not stop.is_set():
        counts[0] += 1
        time.sleep(0.001)
thread = threading.Thread(target=count)
thread.start()
before, start = counts[0], time.perf_counter()
heavy(np.ones((600, 600), np.float32))
seconds, made = time.perf_counter() - start, counts[0] - before
stop.set(); thread.join()
# where the lock is held throughout, at most two steps fit around the call
assert seconds > 0.03, f"the call is too short to tell: {seconds}"
assert made >= 5, f"{made} steps in {seconds:.3f} s"
""",
    "an interrupt leaves a usable process": """
heavy(x[:2])
large = np.ones((200, 600), np.float32)
for _ in range(3):
    timer = threading.Timer(0.03, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        while True:
            heavy(large)
    except KeyboardInterrupt:
        pass
    timer.join()
    assert (double(x) == 2).all()
""",
    "inside a parallel region of somebody else": """
if openmp().name in ("none", "system threads"):
    print("done"); sys.exit()
FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
results = []
def body(_):
    results.append(bool((double(x) == 2).all()))
call = ctypes.CFUNCTYPE(None, FUNCTION, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint)
call(openmp().entry)(FUNCTION(body), None, 4, 0)
assert results == [True] * 4, results
""",
    "children of a fork": """
for child in range(5):
    pid = os.fork()
    if pid == 0:
        signal.alarm(30)
        right = (double(x) == 2).all() and (heavy(x[:3, :5]).shape == (3, 5))
        os._exit(0 if right else 1)
    assert os.waitpid(pid, 0)[1] == 0
assert (double(x) == 2).all()
""",
}


@pytest.mark.skipif(sys.platform != "linux", reason="forks and signals as on Linux")
@pytest.mark.parametrize("runtime", ["auto", "system", "none"])
@pytest.mark.parametrize("case", CASES)
def test_among_others(case, runtime):
    done = subprocess.run(
        [sys.executable, "-c", f"{COMMON}{CASES[case]}\nprint('done')"],
        env={**os.environ, "TENSORLANG_OPENMP": runtime, "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert (done.returncode, done.stdout.strip()) == (0, "done"), done.stderr
