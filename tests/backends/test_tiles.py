"""Register tiles: correct, and in registers, as features of the assembly show."""

from __future__ import annotations

import re
import time

import numpy as np
import pytest

from tensorlang.backends.llvm.module import emit_module
from tensorlang.dtypes import DType, f32, f64, i32, to_numpy
from tensorlang.targets.cpu import parse_cpu_target
from tests.backends.harness import AVX2, BASELINE, Kernel, compiled, target_of
from tests.backends.programs import matmul_tile

WIDE = pytest.mark.skipif(
    parse_cpu_target("cpu").vector_bits < 512, reason="the target has no AVX-512"
)
TILES = [
    pytest.param(f32, 6, 8, 2, AVX2, "ymm", id="f32-6x16-avx2"),
    pytest.param(f64, 6, 4, 2, AVX2, "ymm", id="f64-6x8-avx2"),
    pytest.param(f32, 12, 16, 2, "cpu", "zmm", id="f32-12x32-avx512", marks=WIDE),
    pytest.param(f32, 14, 16, 2, "cpu", "zmm", id="f32-14x32-avx512", marks=WIDE),
    pytest.param(f64, 14, 8, 2, "cpu", "zmm", id="f64-14x16-avx512", marks=WIDE),
]


def blocks(assembly: str) -> list[str]:
    return re.split(r"\n(?=\.LBB\d+_\d+:)", assembly)


@pytest.mark.parametrize(("dtype", "rows", "lanes", "vectors", "target", "register"), TILES)
def test_tile_lives_in_registers(
    dtype: DType, rows: int, lanes: int, vectors: int, target: str, register: str
) -> None:
    program = matmul_tile(dtype, rows, lanes, vectors, (rows * 3, lanes * vectors * 2, 37))
    assembly = compiled(program, target).assembly
    inner = [block for block in blocks(assembly) if "vfmadd" in block]
    assert inner
    for block in inner:
        products = len(re.findall(rf"vfmadd\S+\s.*%{register}", block))
        assert products
        assert products % (rows * vectors) == 0
        assert "(%rsp" not in block, "stack traffic in the loop over k"
        assert "(%rbp" not in block, "stack traffic in the loop over k"


@pytest.mark.parametrize("dtype", [f32, f64, i32])
@pytest.mark.parametrize("target", ["cpu", AVX2, BASELINE])
@pytest.mark.parametrize("depth", [0, 1, 2, 13])
def test_tile_is_right(dtype: DType, target: str, depth: int) -> None:
    program = matmul_tile(dtype, 3, 4, 2, (6, 24, depth))
    generator = np.random.default_rng(0)
    a = generator.integers(-5, 5, (6, depth)).astype(to_numpy(dtype))
    b = generator.integers(-5, 5, (depth, 24)).astype(to_numpy(dtype))
    packed = np.ascontiguousarray(b.reshape(depth, 3, 8).transpose(1, 0, 2))
    outcome = Kernel(program, target)([a, packed])
    assert outcome.code == 0
    np.testing.assert_array_equal(outcome.outputs[0].reshape(6, 24), a @ b)


def test_tile_is_compiled_quickly() -> None:
    """Emission and all of LLVM; bounds are ten times what an idle machine needs."""
    target = target_of(AVX2)
    program = matmul_tile(f32, 6, 8, 2, (60, 160, 64))
    emit_module(program, target)
    start = time.process_time()
    emit_module(program, target)
    assert time.process_time() - start < 0.1
    start = time.process_time()
    compiled(program, AVX2)
    assert time.process_time() - start < 0.6
