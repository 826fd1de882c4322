"""PTX of the four kernels: what is in it, and what ptxas makes of it."""

import re
from typing import Any

import numpy as np
import pytest

import tensorlang as tl
from tensorlang.backends import ptxas
from tensorlang.backends.nvptx import _check_functions
from tensorlang.errors import CompileError
from tests import kernels

needs_ptxas = pytest.mark.skipif(
    ptxas.find_ptxas() is None,
    reason="ptxas is not here: install the CUDA toolkit or the package nvidia-cuda-nvcc",
)
TARGETS = ("cuda:sm_80", "cuda:sm_90")


def ptx_of(s: tl.Schedule, target: str = "cuda:sm_90", **options: Any) -> str:
    # The proof has tests of its own, and takes longer than the compilation.
    return tl.compile(s, target=target, verify=False, **options).source("ptx")


@needs_ptxas
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", kernels.KERNELS)
def test_ptxas_accepts_the_kernels_without_spills(name: str, target: str) -> None:
    usage = ptxas.assemble(ptx_of(kernels.KERNELS[name](), target), target.removeprefix("cuda:"))
    assert usage.spill_bytes == 0, usage.log
    assert usage.stack_bytes == 0, usage.log
    assert 0 < usage.registers <= 128


def test_a_vector_add_reads_through_the_read_only_cache() -> None:
    ptx = ptx_of(kernels.vector_add())
    assert ".target sm_90" in ptx
    assert ".visible .entry tensorlang_add(" in ptx
    assert ".maxntid 256, 1, 1" in ptx
    assert len(re.findall(r"ld\.global\.nc\.b32", ptx)) == 2
    assert "st.global.b32" in ptx
    assert "bar.sync" not in ptx
    assert ".shared" not in ptx


def test_the_transpose_waits_once_and_pads_its_rows() -> None:
    ptx = ptx_of(kernels.padded_transpose())
    assert ptx.count("bar.sync") == 1
    assert f".b8 shared0_A_shared[{4 * (33 * 31 + 32)}]" in ptx
    assert ".maxntid 32, 32, 1" in ptx


def test_the_matmul_moves_128_bits_at_once_and_keeps_its_tile_in_registers() -> None:
    ptx = ptx_of(kernels.tiled_matmul())
    assert ptx.count("ld.global.nc.v4") == 2
    assert ptx.count("st.shared.v4") == 2
    assert "ld.shared.v4" in ptx
    assert ptx.count("st.global.v4") == 4
    assert ptx.count("bar.sync") == 2
    assert "fma.rn.f32" in ptx
    assert "__local_depot" not in ptx
    assert "ld.local" not in ptx


def test_vectors_are_narrower_where_rows_are_not_aligned() -> None:
    """Without a promise that N is a multiple of 4, an address may be odd."""
    s = kernels.tiled_matmul(vector=4, M=64, N=66, K=64)
    ptx = ptx_of(s)
    copies_of_b = [line for line in ptx.splitlines() if "ld.global.nc" in line]
    assert any(".v2" in line or ".b32" in line for line in copies_of_b)
    assert any(".v4" in line for line in copies_of_b)  # rows of A are


def test_a_softmax_has_no_call_and_waits_four_times() -> None:
    ptx = ptx_of(kernels.row_softmax())
    assert ptx.count("bar.sync") == 4
    assert ".extern" not in ptx
    assert "call" not in ptx


@needs_ptxas
def test_large_tiles_ask_for_shared_memory_at_launch() -> None:
    f = tl.compile(kernels.tiled_matmul((128, 128, 64), (8, 8)), target="cuda:sm_90", verify=False)
    assert ".extern .shared .align 128 .b8 shared_memory[]" in f.source("ptx")
    report = str(f.report)
    assert "dynamic shared memory: 65536 bytes a block" in report
    assert "0 bytes spilled" in report


@needs_ptxas
@pytest.mark.parametrize("dtype", ["f16", "bf16", "f64", "i32", "i64", "u8", "bool"])
def test_all_dtypes_make_kernels(dtype: str) -> None:
    N = tl.dim("N")
    scalar = getattr(tl, dtype)

    @tl.compute
    def larger(A: scalar[N], B: scalar[N]):
        return tl.tensor(tl.maximum(A[i], B[i]) for i in N)

    s = tl.schedule(larger)
    block, thread = s.split("i", 128)
    s.bind(block, "block.x")
    s.bind(thread, "thread.x")
    for target in TARGETS:
        ptxas.assemble(ptx_of(s, target), target.removeprefix("cuda:"))


UNARY = [
    "exp",
    "exp2",
    "log",
    "log2",
    "log1p",
    "expm1",
    "sqrt",
    "rsqrt",
    "sin",
    "cos",
    "tan",
    "tanh",
    "sinh",
    "cosh",
    "asin",
    "acos",
    "atan",
    "erf",
    "sigmoid",
    "abs",
    "sign",
    "floor",
    "ceil",
    "round",
    "trunc",
]


@needs_ptxas
def test_functions_have_forms_for_gpus() -> None:
    N = tl.dim("N")

    for name in UNARY:
        function = getattr(tl, name)

        @tl.compute
        def mapped(x: tl.f32[N]):
            return tl.tensor(function(x[i]) for i in N)  # noqa: B023 - traced at once

        s = tl.schedule(mapped)
        block, thread = s.split("i", 128)
        s.bind(block, "block.x")
        s.bind(thread, "thread.x")
        ptx = ptx_of(s)
        assert ".extern" not in ptx, name


def test_functions_of_the_c_library_are_refused() -> None:
    with pytest.raises(CompileError) as error:
        _check_functions(
            "declare float @llvm.sqrt.f32(float)\ndeclare float @sinf(float)", "mapped"
        )
    assert str(error.value) == (
        "mapped uses sinf, which is not available on GPUs: it is a function of the C library "
        "or of CPUs.\nCompute it on the CPU, or write it with functions that are (exp, log, tanh, "
        "erf, sqrt, ...)."
    )


def test_remainders_of_floats_are_refused() -> None:
    N = tl.dim("N")

    @tl.compute
    def wrapped(x: tl.f32[N]):
        return tl.tensor(x[i] % 2.0 for i in N)

    s = tl.schedule(wrapped)
    block, thread = s.split("i", 128)
    s.bind(block, "block.x")
    s.bind(thread, "thread.x")
    with pytest.raises(CompileError, match="wrapped takes the remainder of floats"):
        ptx_of(s)


def test_a_call_says_what_is_missing() -> None:
    f = tl.compile(kernels.vector_add(), target="cuda:sm_90")
    x = np.ones(3, np.float32)
    with pytest.raises(RuntimeError) as error:
        f(x, x)
    assert str(error.value) == (
        "add is compiled for cuda:sm_90, and this version of tensorlang does not launch kernels: "
        'it makes the PTX, f.source("ptx"), which the CUDA driver (cuModuleLoadData) or CuPy '
        "(RawModule) can load and run as tensorlang_add.\nTo run here, compile the schedule for "
        'target="cpu" without bound loops.'
    )


def test_too_many_blocks_are_refused_at_the_call() -> None:
    M, N = tl.dims("M N")

    @tl.compute
    def copy(x: tl.u8[M, N]):
        return tl.tensor(x[i, j] for i in M for j in N)

    s = tl.schedule(copy)
    i, _ = s.loops
    s.bind(i, "block.y")
    f = tl.compile(s, target="cuda:sm_90")
    with pytest.raises(ValueError, match="M <= 65535, the most blocks along y"):
        f(np.zeros((65_536, 1), np.uint8))


def test_a_cpu_does_not_run_bound_loops() -> None:
    with pytest.raises(CompileError, match=r"block\.x"):
        tl.compile(kernels.vector_add())


def test_what_a_target_does_not_make_is_said() -> None:
    f = tl.compile(kernels.add)
    with pytest.raises(ValueError, match=r"add\.source: 'ptx' is not made for cpu"):
        f.source("ptx")


def test_a_schedule_that_races_does_not_compile() -> None:
    s = kernels.tiled_matmul((8, 8, 4), (4, 4), vector=1, swap=True)
    with pytest.raises(tl.ScheduleError) as error:
        tl.compile(s, target="cuda:sm_90")
    text = str(error.value)
    assert "the program does not provably compute matmul: threads" in text
    assert re.search(r"thread \(1, 0, 0\): .* writes matmul.local", text)


def test_without_ptxas_there_is_still_ptx(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tensorlang.backends.nvptx.find_ptxas", lambda: None)
    f = tl.compile(kernels.vector_add(), target="cuda:sm_80")
    assert ".target sm_80" in f.source("ptx")
    assert "registers: not known without ptxas" in str(f.report)
