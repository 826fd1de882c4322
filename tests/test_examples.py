"""The examples run as scripts, at sizes that no block divides; each compares its own results."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
SIZES = {
    "blur": ("45", "83"),
    "digits_cnn": ("3", "1"),
    "digits_mlp": ("33", "3"),
    "gemm_by_hand": ("67",),
    "softmax": ("13", "101"),
}


def test_each_example_has_its_small_sizes() -> None:
    assert sorted(SIZES) == [path.stem for path in EXAMPLES]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_examples_run(example: Path) -> None:
    if example.stem.startswith("digits"):
        pytest.importorskip("sklearn")
    code = f"import runpy; runpy.run_path({str(example)!r}, run_name='__main__')"
    done = subprocess.run(
        [sys.executable, "-c", code, *SIZES[example.stem]],
        capture_output=True, text=True, cwd=ROOT, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert " ms" in done.stdout
