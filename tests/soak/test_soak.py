"""Each long run, for a moment."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc, and forks")
@pytest.mark.parametrize(
    "run", [("threads", "--seconds", "3"), ("forks", "--count", "4"), ("processes", "--count", "3")]
)
def test_a_short_run(run):
    done = subprocess.run(
        [sys.executable, "-m", "tests.soak", *run], cwd=ROOT, capture_output=True, text=True,
        timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
