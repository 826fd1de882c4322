"""The command itself, in processes of its own, as a person or a pipe would call it."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np

from tensorlang.cli.photograph import load_photograph, save_photograph

ROOT = Path(__file__).parents[2]


def tensorlang(*arguments: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    code = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r});"
        "from tensorlang.cli.main import main; main()"
    )
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True, text=True, cwd=cwd, check=False,
    )  # fmt: skip


def test_help_names_the_commands() -> None:
    done = tensorlang("--help")
    assert done.returncode == 0
    assert "demo" in done.stdout
    assert "doctor" in done.stdout


def test_the_roofline_is_shown() -> None:
    done = tensorlang("roofline")
    assert done.returncode == 0, done.stderr
    assert re.search(r"multiply-adds of f32 +\| +[0-9.]+ GFLOP/s", done.stdout)
    assert re.search(r"reading from memory +\| +[0-9.]+ GB/s", done.stdout)


def test_the_module_is_the_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tensorlang", "--help"],
        capture_output=True, text=True, cwd=ROOT, check=False,
    )  # fmt: skip
    assert done.returncode == 0
    assert done.stdout == tensorlang("--help").stdout


def test_an_unknown_command_is_refused() -> None:
    done = tensorlang("demon")
    assert done.returncode == 2
    assert "demon" in done.stderr


def test_a_missing_picture_is_one_line_of_error(tmp_path: Path) -> None:
    done = tensorlang("demo", "--input", "no.png", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (1, "error: there is no picture at no.png\n")


def test_demo_sharpens_a_picture(tmp_path: Path) -> None:
    picture = np.random.default_rng(0).random((3, 75, 301), dtype=np.float32)
    save_photograph(picture, tmp_path / "in.png")
    arguments = ("--input", "in.png", "--output", "out.png", "--rounds", "1")
    done = tensorlang("demo", *arguments, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "\x1b" not in done.stdout
    assert "for c in C:" in done.stdout
    assert "parallel for y.o in (H + 63) // 64:" in done.stdout
    assert "| SciPy gaussian_filter" in done.stdout
    sharp = load_photograph(tmp_path / "out.png").pixels
    assert sharp.shape == picture.shape
    assert sharp.std() > picture.std()


def test_doctor_finds_what_is_needed() -> None:
    done = tensorlang("doctor")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "All that is needed is there." in done.stdout


def test_version() -> None:
    assert re.fullmatch(r"tensorlang (\d\S*|\(not installed\))\n", tensorlang("--version").stdout)
