"""Artefacts, loading, options and errors of the CPU backend."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from tensorlang.backends.base import backend_for, backend_names
from tensorlang.backends.cpu import compile_lowered
from tensorlang.backends.cpu import load as load_artefact
from tensorlang.backends.llvm.maths import FUNCTIONS
from tensorlang.dtypes import bool_, f32
from tensorlang.errors import CompileError
from tensorlang.ir.affine import Affine, Var, affine
from tensorlang.ir.expr import Call, Const, Select
from tensorlang.ir.lowered import Allocate, LoweredProgram
from tensorlang.targets.cpu import host_target, parse_cpu_target
from tensorlang.targets.llvm import llvm_binding
from tests.backends.harness import AVX2, BASELINE, Kernel, compiled
from tests.backends.programs import buffer, call, lanes_over, load, loop, program, store


def axpy(lanes: int = 8, name: str = "test") -> LoweredProgram:
    size = Var("N")
    x, y = buffer("X", f32, size), buffer("Y", f32, size)

    def body(i: Affine) -> object:
        return store(y, i, call("add", call("mul", load(x, i), Const(3.0, f32)), Const(1.0, f32)))

    return program(lanes_over(size, lanes, body), (size,), (x,), (y,), name=name)


@pytest.mark.parametrize("opt_level", [0, 1, 2, 3])
@pytest.mark.parametrize("fast_math", [False, True])
def test_options(opt_level: int, fast_math: bool) -> None:
    kernel = Kernel(axpy(), opt_level=opt_level, fast_math=fast_math)
    x = np.arange(21, dtype=np.float32)
    np.testing.assert_array_equal(kernel([x], (21,)).outputs[0], 3 * x + 1)


def test_contraction_depends_on_the_target() -> None:
    assert "vfmadd" in compiled(axpy(), AVX2).assembly
    assert "fmadd" not in compiled(axpy(), BASELINE).assembly


def test_reassociation_only_with_fast_math() -> None:
    assert "reassoc" not in compiled(axpy()).llvm
    assert "reassoc" in compiled(axpy(), fast_math=True).llvm


@pytest.mark.skipif(parse_cpu_target("cpu").vector_bits < 512, reason="the target has no AVX-512")
def test_widest_vectors_are_used() -> None:
    assert "%zmm" in compiled(axpy(16)).assembly


def test_artefact() -> None:
    artefact = compiled(axpy(name="soft/max.1 b"))
    assert artefact.entry == "tensorlang_soft_max.1_b"
    assert f"define i64 @{artefact.entry}(ptr %arguments)" in artefact.llvm
    assert f"@{artefact.entry}" in artefact.optimized
    assert f"{artefact.entry}:" in artefact.assembly
    assert artefact.object_code[:4] == b"\x7fELF" or artefact.object_code
    assert not artefact.autovectorized


def test_compilation_is_reproducible() -> None:
    made = axpy()
    assert compiled(made).object_code == compiled(made).object_code


def test_an_object_loads_again_without_being_compiled() -> None:
    artefact = compiled(axpy())
    kept = dataclasses.replace(artefact, llvm="")
    first, second = load_artefact(artefact, {}), load_artefact(kept, {})
    assert first.address != second.address


def test_naive_loops_are_vectorized_by_llvm() -> None:
    size, i = Var("N"), Var("i")
    x, y = buffer("X", f32, size), buffer("Y", f32, size)
    body = loop(i, size, store(y, i, call("mul", load(x, i), load(x, i))))
    artefact = compiled(program(body, (size,), (x,), (y,)), AVX2)
    assert artefact.autovectorized
    assert "vmulps" in artefact.assembly


def test_missing_symbol() -> None:
    size, i = Var("N"), Var("i")
    y = buffer("Y", f32, size)
    made = program(loop(i, size, store(y, i, Const(1.0, f32)), "parallel"), (size,), (), (y,))
    with pytest.raises(CompileError, match="tensorlang_test cannot be linked: Failed to"):
        load_artefact(compiled(made), {})


def test_code_for_another_machine_is_not_loaded() -> None:
    artefact = compiled(axpy())
    target = dataclasses.replace(artefact.target, text="cpu -mcpu=future", vector_bits=2048)
    with pytest.raises(CompileError) as caught:
        load_artefact(dataclasses.replace(artefact, target=target), {})
    assert str(caught.value) == (
        f'code for target "cpu -mcpu=future" cannot run on this machine ({host_target().cpu}), '
        "which lacks 2048-bit vectors.\n"
        'Its object code can be saved and taken elsewhere; target="cpu" is this machine.'
    )


def test_a_program_that_is_not_lowered_is_refused() -> None:
    size, lane = Var("N"), Var("i")
    y, tile = buffer("Y", f32, size), buffer("T", f32, 4, scope="local")
    symbolic = loop(lane, size, store(y, lane, Const(0.0, f32)), "vectorized")
    with pytest.raises(CompileError, match="loop i cannot be vectorized: N lanes"):
        compiled(program(symbolic, (size,), (), (y,)))
    inside = loop(lane, 4, Allocate(tile, store(tile, lane, Const(0.0, f32))), "vectorized")
    with pytest.raises(CompileError, match="T is allocated inside a vectorized loop"):
        compiled(program(inside, (size,), (), (y,)))
    bound = loop(lane, 4, store(y, affine(lane), Const(0.0, f32)), "thread.x")
    with pytest.raises(CompileError, match=r"cannot hold a loop of kind thread\.x"):
        compiled(program(bound, (size,), (), (y,)))


def test_registry() -> None:
    assert "cpu" in backend_names()
    assert backend_for("cpu -mcpu=haswell") is backend_for("cpu")
    with pytest.raises(CompileError) as caught:
        backend_for("tpu:v9")
    assert str(caught.value) == (
        f'target "tpu:v9": no backend is called "tpu". Known here: '
        f"{', '.join(sorted(backend_names()))}.\n"
        'Other packages can add one through the entry point group "tensorlang.backends".'
    )


def test_long_chains_do_not_recurse() -> None:
    size = Var("N")
    x, y = buffer("X", f32, size), buffer("Y", f32, size)

    def body(i: Affine) -> object:
        value = load(x, i)
        for number in range(1500):
            value = call("add", value, Const(float(number % 2), f32))
        for _ in range(300):
            value = Select(Call("gt", (value, Const(1e6, f32)), bool_), Const(0.0, f32), value, f32)
        return store(y, i, value)

    values = np.arange(9, dtype=np.float32)
    made = program(lanes_over(size, 8, body), (size,), (x,), (y,))
    np.testing.assert_array_equal(Kernel(made)([values], (9,)).outputs[0], values + 750)


def test_code_for_another_architecture() -> None:
    """Nothing is x86's own: the same IR compiles for AArch64, with its fused multiply-add."""
    binding = llvm_binding()
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    target = dataclasses.replace(
        host_target(),
        text="cpu -mcpu=cortex-a76",
        cpu="cortex-a76",
        features="",
        triple="aarch64-unknown-linux-gnu",
        vector_bits=128,
        vector_registers=32,
    )
    artefact = compile_lowered(axpy(4), target)
    assert "fmla\tv" in artefact.assembly
    names = sorted({*FUNCTIONS} - {"pow", "atan2", "fma"})
    size = Var("N")
    x, y = buffer("X", f32, size), buffer("Y", f32, size)

    def body(i: Affine) -> object:
        value = load(x, i)
        for name in names:
            value = call("maximum", call(name, value), value)
        return store(y, i, value)

    made = program(lanes_over(size, 4, body), (size,), (x,), (y,))
    assembly = compile_lowered(made, target).assembly
    assert "fmax\tv" in assembly
    assert "bl\texpf" not in assembly
