"""Compiled functions in a process and in its forked children."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import os, sys
import numpy as np
import tensorlang as tl
from tensorlang.driver import compile
from tensorlang.runtime.threads import openmp
from tensorlang.schedule.entry import schedule

M, N = tl.dims("M N")

@tl.compute
def double(x: tl.f32[M, N]):
    return tl.tensor(x[i, j] * 2 for i in M for j in N)

s = schedule(double)
s.parallel(s.loops[0])
f = compile(s)
x = np.ones((600, 700), np.float32)
assert (f(x) == 2).all()
child = os.fork()
if child:
    _, status = os.waitpid(child, 0)
    assert (f(x) == 2).all()
    print("done" if status == 0 else "failed")
else:
    status = 1
    try:
        assert (f(x) == 2).all()
        assert (double(x) == 2).all()
        status = 0
    finally:
        os._exit(status)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("runtime", ["auto", "none"])
def test_forked_children_call_and_compile(runtime):
    root = str(Path(__file__).parents[2])
    output = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={
            **os.environ,
            "PYTHONPATH": root,
            "TENSORLANG_OPENMP": runtime,
            "TENSORLANG_NUM_THREADS": "3",
        },
        cwd="/",
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (output.returncode, output.stdout.strip()) == (0, "done"), output.stderr
