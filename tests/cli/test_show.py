"""``tensorlang show``, ``explain`` and ``cache``, as a person would call them."""

import os
import re
from pathlib import Path

import pytest

from tensorlang.backends.llvm.debug_lines import with_debug_lines
from tensorlang.cli.load_program import NotShown, load_program
from tensorlang.cli.show import annotated
from tests.cli.test_main import tensorlang

PROGRAM = """\
import tensorlang as tl

M, N, K = tl.dims("M N K")


@tl.compute
def matmul(A: tl.f32[M, K], B: tl.f32[K, N]):
    C = tl.tensor(tl.sum(A[i, k] * B[k, j] for k in K) for i in M for j in N)
    return tl.tensor(tl.maximum(C[i, j], 0) for i in M for j in N)


@tl.compute
def relu(x):
    return tl.tensor(tl.maximum(x[i], 0) for i in tl.grid(x.shape))


s = tl.schedule(matmul, M=64, N=64, K=64)
if __name__ == "__main__":
    raise SystemExit("not for show")
"""
SUM = "program.py:8: C = tl.tensor(tl.sum(A[i, k] * B[k, j] for k in K) for i in M for j in N)"
MAXIMUM = "program.py:9: return tl.tensor(tl.maximum(C[i, j], 0) for i in M for j in N)"


@pytest.fixture
def program(tmp_path: Path) -> str:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return str(path)


@pytest.mark.parametrize("kind", ["schedule", "loops", "llvm", "asm"])
def test_every_kind_names_the_lines_that_it_computes(program: str, kind: str) -> None:
    [(name, schedule)] = load_program(f"{program}:matmul", ["K=32"])
    text = "\n".join(annotated(schedule, kind))
    assert name == "matmul"
    assert SUM in text
    assert MAXIMUM in text
    if kind == "schedule":
        assert re.search(r"\bC\[.*\] \+= .*# " + re.escape(SUM), text)
    if kind == "asm":
        # multiplications belong to the sum, and the maximum comes after its own line
        of_sum, _, of_maximum = text.partition(f"# {MAXIMUM}")
        assert "mul" in of_sum or "fma" in of_sum.lower() or "vfmadd" in of_sum
        assert "max" in of_maximum
        assert ".loc" not in text
        assert ".debug" not in text


def test_debug_locations_do_not_change_the_code(program: str) -> None:
    from tensorlang.backends.cpu import parse_target
    from tensorlang.backends.llvm import machine
    from tensorlang.cli.show import lines_of
    from tensorlang.driver import compile

    [(_, schedule)] = load_program(f"{program}:matmul", [])
    text = compile(schedule).source("llvm")
    target = parse_target("cpu")

    def instructions(llvm: str) -> list[str]:
        made = machine.assembly(machine.optimise(llvm, target, 3, False), target, 3)
        code = made.partition(".section\t.debug")[0]
        lines = [line.split("#")[0].strip() for line in code.splitlines()]
        return [line for line in lines if line and line[0].isalpha() and not line.endswith(":")]

    assert instructions(text) == instructions(with_debug_lines(text, lines_of(schedule.definition)))


def test_what_is_shown_without_a_name(program: str) -> None:
    assert [name for name, _ in load_program(program, [])] == ["matmul", "s"]


@pytest.mark.parametrize(
    ("suffix", "sizes", "text"),
    [
        (":blur", [], "has no operator or schedule called blur; it has matmul, relu, s"),
        (":relu", [], "relu has no annotations: show a schedule of it, such as"),
        (":s", ["M=3"], "s is a schedule, whose sizes are fixed where it is made"),
        (":matmul", ["M"], "--size takes NAME=NUMBER, such as M=64, found 'M'"),
        ("x", [], "there is no file"),
    ],
)
def test_mistakes(program: str, suffix: str, sizes: list[str], text: str) -> None:
    with pytest.raises(NotShown, match=re.escape(text)):
        load_program(program + suffix, sizes)


def test_the_commands(program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENSORLANG_CACHE", str(tmp_path / "code"))
    shown = tensorlang("show", f"{program}:s", "--kind", "loops")
    assert shown.returncode == 0, shown.stderr
    assert "## s for cpu" in shown.stdout
    assert SUM in shown.stdout
    explained = tensorlang(
        "explain", f"{program}:matmul", "--size", "M=64", "--size", "N=64", "--size", "K=64"
    )
    assert explained.returncode == 0, explained.stderr
    assert "bytes in and out: 49,152" in explained.stdout
    wrong = tensorlang("show", f"{program}:nothing")
    assert wrong.returncode == 1
    assert "has no operator or schedule called nothing" in wrong.stderr
    listed = tensorlang("cache")
    assert listed.stdout.startswith(f"{tmp_path / 'code'}: 1 entries, ")
    assert re.search(r"\| matmul +\| +\d+ \|", listed.stdout)
    assert tensorlang("cache", "prune", "--keep", "much").returncode == 2
    assert "removed 1 entries" in tensorlang("cache", "clear").stdout
    assert ": 0 entries, 0 bytes" in tensorlang("cache", "show").stdout


@pytest.mark.parametrize(
    ("setting", "text"),
    [("off", "every process compiles anew"), ("/proc/nowhere", "can name another folder")],
)
def test_doctor_tells_why_code_is_not_kept(
    setting: str, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TENSORLANG_CACHE", setting)
    done = tensorlang("doctor")
    assert done.returncode == 0
    assert re.search(rf"kept code +\| optional +\| .*{text}", done.stdout)
    assert re.search(r"threads +\| ok", done.stdout) or not os.path.exists("/proc/self/maps")
