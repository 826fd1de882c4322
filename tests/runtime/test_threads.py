import ctypes
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tensorlang.config import read_settings
from tensorlang.runtime import openmp as openmp_module
from tensorlang.runtime import threads
from tensorlang.runtime.openmp import find_openmp

ROOT = Path(__file__).parents[2]
FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
PARALLEL = ctypes.CFUNCTYPE(None, FUNCTION, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint)


@pytest.fixture(autouse=True)
def fresh_state(monkeypatch):
    monkeypatch.setattr(threads, "_state", threads._State())


def calls_of(runtime, count):
    seen = []
    PARALLEL(runtime.entry)(FUNCTION(lambda data: seen.append(data)), 42, count, 0)
    return seen


def test_without_openmp_the_work_is_done_once():
    runtime = find_openmp("none")
    assert not runtime.is_parallel
    assert calls_of(runtime, 4) == [42]


def test_found_runtime_uses_threads():
    runtime = find_openmp("auto")
    if not runtime.is_parallel:
        pytest.skip("no OpenMP runtime here")
    assert calls_of(runtime, 3) == [42, 42, 42]
    path = next(iter(openmp_module._loaded_libraries()))
    assert find_openmp(path).was_loaded
    assert find_openmp(path).entry == runtime.entry


@pytest.mark.parametrize("path", ["/nowhere/libgomp.so.1", ctypes.util.find_library("c")])
def test_what_is_no_runtime_is_refused(path):
    with pytest.raises(ValueError, match=r"TENSORLANG_OPENMP: .* is not an OpenMP runtime"):
        find_openmp(path)


def test_library_names():
    accepted = [
        "/usr/lib/libgomp.so.1",
        "/x/torch/lib/libgomp-a34b3233.so.1",
        "/x/libiomp5.so",
        "/x/libomp.so.5",
        "/x/scikit_learn.libs/libgomp-24e2ab19.so.1.0.0",
        "/x/lib/libomp.dylib",
    ]
    refused = ["/x/libompi.so", "/x/libgomp/readme.so.txt/x", "/x/libomptarget.so", "/x/libm.so"]
    assert all(openmp_module._LIBRARY.search(path) for path in accepted)
    assert not any(openmp_module._LIBRARY.search(path) for path in refused)


def test_number_of_threads():
    assert threads.num_threads() >= 1
    threads.set_num_threads(5)
    assert threads.num_threads() == 5
    for wrong, error in [(0, ValueError), (-1, ValueError), (2.0, TypeError), (True, TypeError)]:
        with pytest.raises(error, match="the number of threads must be"):
            threads.set_num_threads(wrong)
    assert threads.num_threads() == 5


def test_little_work_stays_on_one_thread(monkeypatch):
    monkeypatch.setattr(threads, "settings", lambda: read_settings({}))
    threads.set_num_threads(4)
    assert threads.threads_for(1e-7) == 1
    assert threads.threads_for(1e-3) == (4 if threads.openmp().is_parallel else 1)


def test_a_thread_more_must_be_worth_it(monkeypatch):
    monkeypatch.setattr(threads, "settings", lambda: read_settings({}))
    threads.set_num_threads(64)
    threads._state.openmp = openmp_module.OpenMP("x", "", 0, start_microseconds=20.0)
    used = [threads.threads_for(microseconds * 1e-6) for microseconds in (19, 20, 101, 1000)]
    assert used == [1, 2, 10, 64]


def test_system_threads_share_the_work():
    runtime = find_openmp("system")
    assert runtime.is_parallel
    barrier = threading.Barrier(3, timeout=30)  # only three at the same time get through
    seen = []

    def work(data):
        barrier.wait()
        seen.append((data, threading.get_ident()))

    PARALLEL(runtime.entry)(FUNCTION(work), 42, 3, 0)
    assert [data for data, _ in seen] == [42] * 3
    assert len({ident for _, ident in seen}) == 3
    assert len(calls_of(runtime, 1000)) == 257  # as many as one call starts at most, and itself


SPIN = """
import os, sys
from tensorlang.runtime.openmp import find_openmp
before = dict(os.environ)
found = find_openmp()
assert dict(os.environ) == before
print(found.start_microseconds)
"""


@pytest.mark.parametrize(
    ("setting", "start"), [({}, "20.0"), ({"OMP_WAIT_POLICY": "active"}, "3.0")]
)
def test_threads_spin_little_unless_the_user_decides(setting, start):
    if not find_openmp("auto").is_parallel:
        pytest.skip("no OpenMP runtime here")
    clean = {k: v for k, v in os.environ.items() if k not in openmp_module._SPIN_SETTINGS}
    done = subprocess.run(
        [sys.executable, "-c", SPIN],
        env={**clean, **setting}, cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.strip() == start


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="needs processor affinity")
def test_default_follows_affinity_and_environment():
    program = (
        "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))});"
        "from tensorlang.runtime.threads import num_threads; print(num_threads())"
    )
    clean = {k: v for k, v in os.environ.items() if not k.endswith("NUM_THREADS")}
    for environment, expected in [
        ({}, "1"),
        ({"OMP_NUM_THREADS": "7"}, "7"),
        ({"OMP_NUM_THREADS": "7", "TENSORLANG_NUM_THREADS": "3"}, "3"),
    ]:
        output = subprocess.run(
            [sys.executable, "-c", program],
            env={**clean, **environment},
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
        assert output.stdout.strip() == expected


FORK = """
import ctypes, os, sys, threading
import numpy as np
from hand_built import scale
from python_kernels import compiled
from tensorlang.dtypes import f32
from tensorlang.ir.affine import Var, affine
from tensorlang.ir.program import EMPTY, For
from tensorlang.runtime import threads

FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
PARALLEL = ctypes.CFUNCTYPE(None, FUNCTION, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint)
parallel = PARALLEL(threads.openmp().entry)
threads.set_num_threads(3)
seen = []

def run(inputs, outputs, scalars, sizes):
    parallel(FUNCTION(lambda data: seen.append(threading.get_ident())), None, sizes["threads"], 0)
    outputs[0][...] = inputs[0] * scalars[0]

f = compiled(scale(f32), run, body=For(Var("i"), affine(3), "parallel", EMPTY))
x = np.ones(1_000_000, np.float32)
assert f(2, x).sum() == 2_000_000 and len(seen) == 3, seen
for generation in range(2):
    child = os.fork()
    if child:
        _, status = os.waitpid(child, 0)
        sys.exit(os.waitstatus_to_exitcode(status))
    seen.clear()
    assert f(3, x).sum() == 3_000_000 and f(3, x).sum() == 3_000_000 and len(seen) == 6, seen
    assert threading.get_ident() not in seen
print("done")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_can_run_parallel_loops():
    if not find_openmp("auto").is_parallel:
        pytest.skip("no OpenMP runtime here")
    output = subprocess.run(
        [sys.executable, "-c", FORK],
        env={**os.environ, "PYTHONPATH": f"{ROOT}:{Path(__file__).parent}"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (output.returncode, output.stdout.strip()) == (0, "done"), output.stderr


def test_a_call_on_behalf_of_the_survivor_runs_elsewhere_and_reports_errors():
    threads._after_fork_in_child()
    assert threads.call_with_threads(lambda: threading.get_ident()) != threading.get_ident()
    other = []
    thread = threading.Thread(
        target=lambda: other.append(threads.call_with_threads(threading.get_ident))
    )
    thread.start()
    thread.join()
    assert other == [thread.ident]
    with pytest.raises(ZeroDivisionError):
        threads.call_with_threads(lambda: 1 // 0)
