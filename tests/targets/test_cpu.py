"""Facts about processors."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

import tensorlang as tl
from tensorlang.errors import CompileError
from tensorlang.targets.cpu import host_target, parse_cpu_target
from tensorlang.targets.machine import available_cores, cache_sizes


def test_host() -> None:
    host = parse_cpu_target("cpu -mcpu=native")
    assert host is host_target()
    assert host.vector_bits in (128, 256, 512)
    assert host.vector_registers in (16, 32)
    assert host.lanes(32) == host.vector_bits // 32
    assert host.lanes(8192) == 1
    assert 1 <= host.cores <= (os.cpu_count() or 1)
    assert 4096 <= host.l1_bytes <= host.l2_bytes <= host.l3_bytes
    assert str(host) == "cpu"


@pytest.mark.skipif(not host_target().is_x86, reason="names of x86 processors")
@pytest.mark.parametrize(
    ("name", "bits", "registers", "fused", "half", "rounds"),
    [
        ("x86-64", 128, 16, False, False, False),
        ("x86-64-v2", 128, 16, False, False, True),
        ("haswell", 256, 16, True, True, True),
        ("skylake-avx512", 512, 32, True, True, True),
    ],
)
def test_named(name: str, bits: int, registers: int, fused: bool, half: bool, rounds: bool) -> None:
    target = parse_cpu_target(f"cpu -mcpu={name}")
    assert (target.cpu, str(target)) == (name, f"cpu -mcpu={name}")
    assert (target.vector_bits, target.vector_registers) == (bits, registers)
    assert target.fused_multiply_add is fused
    assert target.half_conversion is half
    assert target.native_rounding is rounds
    assert parse_cpu_target(f"cpu -mcpu={name}") is target


def test_mistakes() -> None:
    with pytest.raises(CompileError) as caught:
        parse_cpu_target("cpu -mcpu=haswel")
    assert str(caught.value) == (
        'target "cpu -mcpu=haswel": LLVM does not know this processor for '
        f"{host_target().triple}.\n"
        'Leave -mcpu out to compile for this machine, or use a name such as "x86-64-v3".'
    )
    with pytest.raises(CompileError) as caught:
        parse_cpu_target("cpu -march=native")
    assert str(caught.value) == (
        'target "cpu -march=native": the option -march=native is not known.\n'
        'A CPU target is "cpu" or "cpu -mcpu=NAME".'
    )
    with pytest.raises(CompileError, match='target "gpu" is not a CPU target'):
        parse_cpu_target("gpu")


def test_native_is_the_host() -> None:
    assert parse_cpu_target("cpu -mcpu=native") is host_target()


def test_machine() -> None:
    assert available_cores() >= 1
    first, second, third = cache_sizes()
    assert 0 < first <= second <= third


def test_importing_targets_does_not_load_llvm() -> None:
    program = "import sys, tensorlang.targets.cpu; print('llvmlite' in sys.modules)"
    answer = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert answer.stdout.strip() == "False"


def test_the_settings_choose_what_cpu_means() -> None:
    program = (
        "import numpy as np, tensorlang as tl\n"
        "N = tl.dim('N')\n"
        "@tl.compute\n"
        "def twice(x: tl.f32[N]):\n"
        "    return tl.tensor(x[i] * 2 for i in N)\n"
        "f = tl.compile(twice)\n"
        "assert (f(np.ones(100, np.float32)) == 2).all()\n"
        "print('<16 x float>' in f.source('llvm'), 'ymm' in f.source('asm'))\n"
    )
    for name, expected in (("x86-64", "False False"), ("haswell", "False True")):
        answer = subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "TENSORLANG_CPU": name},
        )
        assert answer.stdout.strip() == expected


def test_rules_choose_for_the_target() -> None:
    names = {"x86-64": 4, "haswell": 8, "skylake-avx512": 16}
    N = tl.dim("N")

    @tl.compute
    def exponential(x: tl.f32[N]):
        return tl.tensor(tl.exp(x[i]) for i in N)

    for name, lanes in names.items():
        printed = str(tl.schedule(exponential).default(target=f"cpu -mcpu={name}"))
        assert f"vectorized({lanes})" in printed or f" in {lanes}" in printed, printed
