"""Facts about processors."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tensorlang.errors import CompileError
from tensorlang.targets.cpu import host_target, parse_cpu_target
from tensorlang.targets.machine import available_cores, cache_sizes


def test_host() -> None:
    host = parse_cpu_target("cpu")
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
