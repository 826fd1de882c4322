"""Each pass on a small program, as text before and after."""

from __future__ import annotations

import re
from dataclasses import replace
from textwrap import dedent

import lower_builder as build
import lower_running as running
import numpy as np
import pytest

import tensorlang as tl
from tensorlang.dtypes import bf16, f16, f32, i32
from tensorlang.errors import CompileError
from tensorlang.interpreter.failures import DataIndexError
from tensorlang.interpreter.run import run_lowered
from tensorlang.ir.affine import Var, affine
from tensorlang.ir.definition import Condition
from tensorlang.ir.lowered import Allocate, LoweredProgram
from tensorlang.ir.printer import format_lowered, format_program
from tensorlang.ir.program import Alloc, Layout, Program
from tensorlang.ir.walk import iterate
from tensorlang.lower.pipeline import lower, lowering_steps

SIZES = (0, 1, 2, 3, 5, 6, 7, 11, 12, 13, 16, 17)


def plain(text: str) -> str:
    """Without parentheses around single names."""
    return re.sub(r"\(([\w.]+)\)", r"\1", text)


def after(program: Program, wanted_pass: str) -> str:
    for name, state in lowering_steps(program):
        if name == wanted_pass:
            text = format_program(state) if isinstance(state, Program) else format_lowered(state)
            return dedent(text.split("\n", 1)[1])
    raise AssertionError(f"no pass {wanted_pass}")


def expect(program: Program, wanted_pass: str, wanted: str) -> None:
    assert plain(after(program, wanted_pass)) == plain(dedent(wanted).strip("\n"))


def elementwise(dtype=f32) -> build.Schedule:
    """Y[i] = X[i] + X[i]."""
    n = Var("N")
    x, y = build.tensor("X", n, dtype=dtype), build.tensor("Y", n, dtype=dtype)
    (i,) = build.axes(i=n)
    load = build.load(x, i.variable)
    stage = build.Stage((y,), (i,), (build.add(load, load),))
    return build.Schedule(build.Definition("double", (n,), (x,), (), (stage,), (y,)))


def split(tail: str, kind: str = "serial", outer: str = "serial") -> build.Schedule:
    s = elementwise()
    (i,) = s.loops()
    io, ii = s.split(i, 6, tail)
    s.kind(ii, kind)
    s.kind(io, outer)
    return s


def test_a_shared_guard_becomes_the_bound_of_a_serial_loop():
    expect(
        split("auto").program,
        "bound_loops",
        """
        for i.o in (N + 5) // 6:
            for i.i in min(N - 6 * i.o, 6):
                Y[6 * i.o + i.i] = X[6 * i.o + i.i] + X[6 * i.o + i.i]
        """,
    )


def test_a_range_is_cut_off_at_both_ends():
    program = build.naive(build.band())
    expect(
        program,
        "bound_loops",
        """
        for i in M:
            S[i] = 0
            for k in min(0, -i + 2) + min(N, i + 2):
                S[i] += A[i, k - min(0, -i + 2)]
        """,
    )
    for sizes in ((0, 3), (3, 0), (1, 1), (5, 4), (7, 5), (4, 9)):
        running.check_every_pass(program, *sizes)


def test_tail_guard_keeps_the_condition():
    expect(
        split("guard").program,
        "fold",
        """
        for i.o in (N + 5) // 6:
            for i.i in 6:  # tail=guard
                if 6 * i.o + i.i < N:
                    Y[6 * i.o + i.i] = X[6 * i.o + i.i] + X[6 * i.o + i.i]
        """,
    )


def test_tail_peel_makes_two_loops():
    expect(
        split("peel").program,
        "bound_loops",
        """
        for i.o in N // 6:
            for i.i in 6:
                Y[6 * i.o + i.i] = X[6 * i.o + i.i] + X[6 * i.o + i.i]
        for i.o in -(N // 6) + (N + 5) // 6:
            for i.i in min(-6 * i.o + N % 6, 6):
                Y[6 * i.o + i.i + 6 * (N // 6)] = X[6 * i.o + i.i + 6 * (N // 6)] + X[6 * i.o + i.i + 6 * (N // 6)]
        """,  # noqa: E501
    )


def test_full_vectors_run_without_a_mask():
    expect(
        split("auto", "vectorized").program,
        "version_tiles",
        """
        for i.o in (N + 5) // 6:
            if 6 * i.o + 5 < N:
                vectorized for i.i in 6:
                    Y[6 * i.o + i.i] = X[6 * i.o + i.i] + X[6 * i.o + i.i]
            else:
                vectorized for i.i in 6:
                    Y[6 * i.o + i.i] = X[6 * i.o + i.i] + X[6 * i.o + i.i]  # if 6 * i.o + i.i < N
        """,
    )


def test_tail_mask_makes_one_version():
    expect(
        split("mask", "vectorized").program,
        "fold",
        """
        for i.o in (N + 5) // 6:
            vectorized for i.i in 6:  # tail=mask
                if 6 * i.o + i.i < N:
                    Y[6 * i.o + i.i] = X[6 * i.o + i.i] + X[6 * i.o + i.i]
        """,
    )


@pytest.mark.parametrize("tail", ["auto", "guard", "peel", "mask"])
@pytest.mark.parametrize("kind", ["serial", "vectorized", "unrolled"])
@pytest.mark.parametrize("outer", ["serial", "parallel"])
def test_every_tail_computes_the_same(tail, kind, outer):
    s = split(tail, kind, outer)
    for size in SIZES:
        running.check_every_pass(s.program, size)


def test_assumed_divisibility_removes_the_guard():
    s = split("auto", "vectorized")
    (n,) = s.program.definition.sizes
    condition = Condition(affine(n) % 6, "N must be a multiple of 6", equality=True)
    expect(
        replace(s.program, conditions=(condition,)),
        "simplify_guards",
        """
        assume N % 6 == 0
        for i.o in (N + 5) // 6:
            vectorized for i.i in 6:
                Y[6 * i.o + i.i] = X[6 * i.o + i.i] + X[6 * i.o + i.i]
        """,
    )


def test_conditions_of_the_definition_and_the_schedule_are_both_checked():
    s = elementwise()
    (n,) = s.program.definition.sizes
    first, second = Condition(affine(n) - 1, "not empty"), Condition(affine(9) - n, "short")
    definition = replace(s.program.definition, conditions=(first,))
    program = replace(s.program, definition=definition, conditions=(second,))
    assert lower(program).conditions == (first, second)


def test_nested_parallel_loops_run_as_one():
    s = build.Schedule(build.matmul())
    i, j, _ = s.loops()
    s.kind(i, "parallel")
    s.kind(j, "parallel")
    expect(
        s.program,
        "fold",
        """
        parallel for i.j in M * N:
            C[i.j] = 0
            for k in K:
                C[i.j] = C[i.j] + A[k + K * (i.j // N)] * B[i.j + N * k - N * (i.j // N)]
        """,
    )


def test_a_serial_fused_loop_becomes_its_nest():
    s = build.Schedule(build.matmul())
    i, j, _ = s.loops()
    s.fuse(i, j)
    expect(
        s.program,
        "fold",
        """
        for i in M:
            for j in N:
                C[j + N * i] = 0
                for k in K:
                    C[j + N * i] = C[j + N * i] + A[k + K * i] * B[j + N * k]
        """,
    )


def test_a_run_of_a_fused_loop_is_bounded():
    s = build.Schedule(build.softmax_like())
    i, j = s.loops("Y")
    s.fuse(i, j)
    chunk, _ = s.split_fused(i, 8)
    s.kind(chunk, "parallel")
    text = after(s.program, "fold")
    assert "parallel for f.o in (M * N + 7) // 8:" in text
    assert "for f.i in min(-8 * f.o + M * N, 8):" in text
    assert "Y[8 * f.o + f.i] = X[8 * f.o + f.i] - top[(8 * f.o + f.i) // N]" in text
    for sizes in ((0, 3), (3, 0), (1, 1), (3, 5), (2, 4)):
        running.check_every_pass(s.program, *sizes)


@pytest.mark.parametrize("kind", ["vectorized", "unrolled"])
def test_a_run_may_be_vectorized_or_unrolled(kind):
    s = build.Schedule(build.softmax_like())
    i, j = s.loops("Y")
    s.fuse(i, j)
    s.split_fused(i, 4)
    s.kind(i, kind)
    for sizes in ((0, 3), (3, 0), (1, 1), (3, 5), (2, 4)):
        running.check_every_pass(s.program, *sizes)


def test_a_vectorized_loop_moves_inside_the_loops_it_holds():
    s = build.Schedule(build.matmul())
    _, j, _ = s.loops()
    _, ji = s.split(j, 4)
    s.kind(ji, "vectorized")
    expect(
        s.program,
        "fold",
        """
        for i in M:
            for j.o in (N + 3) // 4:
                if 4 * j.o + 3 < N:
                    vectorized for j.i in 4:
                        C[4 * j.o + j.i + N * i] = 0
                    for k in K:
                        vectorized for j.i in 4:
                            C[4 * j.o + j.i + N * i] = C[4 * j.o + j.i + N * i] + A[k + K * i] * B[4 * j.o + j.i + N * k]
                else:
                    vectorized for j.i in 4:
                        if 4 * j.o + j.i < N:
                            C[4 * j.o + j.i + N * i] = 0
                    for k in K:
                        vectorized for j.i in 4:
                            if 4 * j.o + j.i < N:
                                C[4 * j.o + j.i + N * i] = C[4 * j.o + j.i + N * i] + A[k + K * i] * B[4 * j.o + j.i + N * k]
        """,  # noqa: E501
    )


# --- storage ----------------------------------------------------------------------------------


def packed_matmul(lanes: int = 4, rows: int = 3, shape_rounds_up: bool = False) -> build.Schedule:
    """A matmul whose B is copied into panels, with accumulators in registers."""
    s = build.Schedule(build.matmul())
    i, j, k = s.loops()
    io, ii = s.split(i, rows)
    jo, ji = s.split(j, lanes)
    s.reorder(jo, io, k, ii, ji)
    s.kind(ii, "unrolled")
    s.kind(ji, "vectorized")
    _, b = s.program.definition.inputs
    (c,) = s.program.definition.outputs
    s.accumulate(c, io)
    if not shape_rounds_up:
        s.cache_read(b, jo)
        return s
    # The whole of B in one copy, laid out in panels of ``lanes`` columns.
    copy = s.cache_read_all(b)
    kk, n = Var("k"), Var("n")
    columns = affine(n)
    layout = Layout(
        (kk, n),
        (columns // lanes, affine(kk), columns % lanes),
        ((b.shape[1] + (lanes - 1)) // lanes, b.shape[0], affine(lanes)),
    )
    s.change(
        lambda stmt: (
            replace(stmt, layout=layout)
            if isinstance(stmt, Alloc) and stmt.tensor is copy.tensor
            else stmt
        )
    )
    return s


@pytest.mark.parametrize("shape_rounds_up", [False, True])
def test_packed_matmul(shape_rounds_up):
    s = packed_matmul(shape_rounds_up=shape_rounds_up)
    for sizes in ((0, 0, 0), (1, 1, 1), (3, 2, 4), (4, 3, 5), (7, 5, 9), (3, 0, 4), (2, 3, 3)):
        running.check_every_pass(s.program, *sizes)


def test_edge_tiles_have_no_guards_on_registers():
    text = after(packed_matmul().program, "run_private_tails")
    edge = text[text.rindex("else:") :]
    assert "C.acc[3 * i.o + i.i, 4 * j.o + j.i] = 0\n" in edge
    assert "A[min(M - 1, 3 * i.o + i.i), k] * B.copy[k, 4 * j.o + j.i]\n" in edge
    assert "# if 3 * i.o + a0 < M and 4 * j.o + a1 < N" in edge  # only what the caller sees


def test_lanes_beyond_the_tensor_are_filled_with_zeros():
    text = after(packed_matmul().program, "run_private_tails")
    assert "B.copy[a0, 4 * j.o + a1] = where((N - 4 * j.o - a1 - 1) >= 0, B[" in text


def test_padding_that_nothing_writes_is_zeroed():
    lowered = lower(packed_matmul(shape_rounds_up=True).program)
    (allocate,) = [
        stmt
        for stmt in iterate(lowered.body)
        if isinstance(stmt, Allocate) and stmt.buffer.scope == "global"
    ]
    assert allocate.zeroed


def test_memory_is_allocated_outside_serial_loops():
    text = after(packed_matmul().program, "hoist_storage")
    assert text.startswith("B.copy = global f32[4 * K]\nfor j.o in")
    s = packed_matmul()
    s.kind(s.loops()[0], "parallel")
    assert after(s.program, "hoist_storage").startswith("parallel for j.o in")


def test_storage_that_nothing_uses_disappears():
    s = elementwise()
    unused = build.tensor("unused", 7)
    body = Alloc(unused, (affine(0),), (affine(7),), "global", s.program.body)
    assert "unused" not in format_lowered(lower(replace(s.program, body=body)))


def test_registers_of_unknown_size_are_refused():
    s = build.Schedule(build.matmul())
    i, _, _ = s.loops()
    s.accumulate(s.program.definition.outputs[0], i)
    with pytest.raises(CompileError) as caught:
        lower(s.program)
    assert str(caught.value) == (
        "C.acc is allocated in registers (scope 'local') with the extents (1, N), but registers "
        "need a constant size: N is not known when compiling.\n"
        "Fix the size (tl.schedule(op, N=...)), split the loop and allocate inside it, or use "
        "scope='global'."
    )


def test_unrolling_an_unknown_number_of_iterations_is_refused():
    s = elementwise()
    s.kind(s.loops()[0], "unrolled")
    with pytest.raises(CompileError) as caught:
        lower(s.program)
    assert str(caught.value) == (
        "the loop i cannot be unrolled: its extent N is not known when compiling; split it by a "
        "constant and unroll the inner loop"
    )


# --- arrays and values ------------------------------------------------------------------------


def test_strides_are_sizes_of_their_own():
    program = build.naive(build.matmul())
    a, b = program.definition.inputs
    lowered = lower(program, {a: "inner", b: "any"})
    assert [str(size) for size in lowered.sizes] == [
        "M", "K", "N", "A.stride0", "B.stride0", "B.stride1",
    ]  # fmt: skip
    assert "A[k + i * A.stride0] * B[j * B.stride1 + k * B.stride0]" in format_lowered(lowered)
    random = np.random.default_rng(0)
    big_a = random.integers(-4, 5, (6, 10)).astype(np.float32)
    big_b = random.integers(-4, 5, (9, 8)).astype(np.float32)
    left, right = big_a[::2, :4], big_b.T[:4, ::3]
    sizes = (3, 4, 3, 20, 1, 24)
    (result,) = run_lowered(lowered, (left, right), (), sizes, [(3, 3)])
    np.testing.assert_array_equal(result, left @ right)


def test_indices_that_depend_on_data_are_checked():
    program = build.naive(build.gather())
    lowered = lower(program)
    assert [(site.tensor, site.axis, site.location) for site in lowered.check_sites] == [
        ("X", 0, "user.py:7")
    ]
    x = np.arange(6, dtype=np.float32).reshape(3, 2)
    for rows in ([2, 0], [], [1]):
        table = np.array(rows, dtype=np.int64)
        (result,) = run_lowered(lowered, (x, table), (), (3, 2, len(rows)), [(len(rows), 2)])
        np.testing.assert_array_equal(result, x[table])
    with pytest.raises(DataIndexError, match="axis 0 of X"):
        run_lowered(lowered, (x, np.array([3], np.int64)), (), (3, 2, 1), [(1, 2)])
    unchecked = lower(program, check_bounds=False)
    assert unchecked.check_sites == ()


def test_loads_under_where_stay_lazy():
    s = build.Schedule(build.shift())
    (i,) = s.loops()
    _, ii = s.split(i, 4)
    s.kind(ii, "vectorized")
    for size in SIZES:
        running.check_every_pass(s.program, size)


@pytest.mark.parametrize("dtype", [f16, bf16])
def test_half_precision_is_computed_in_f32_and_rounded_by_the_store(dtype):
    program = elementwise(dtype).program
    name = dtype.name
    assert f"Y[i] = {name}(f32(X[i]) + f32(X[i]))" in format_lowered(lower(program))
    for size in (0, 1, 5):
        running.check_every_pass(program, size)


def test_tuple_states_are_stored_together():
    assert "V[i], P[i] = where(X[j + N * i] > V[i], X[j + N * i], V[i])" in after(
        build.naive(build.argmax()), "fold"
    )


def test_integers_survive_every_pass():
    s = build.Schedule(build.matmul(i32))
    i, j, k = s.loops()
    io, ii = s.split(i, 3)
    s.reorder(io, k, ii, j)
    running.check_every_pass(s.program, 5, 4, 3)


def test_fixed_sizes():
    for m, n, k in ((0, 3, 2), (6, 8, 4), (7, 9, 5), (1, 1, 1)):
        s = build.Schedule(build.matmul(f32, m, n, k))
        i, j, kk = s.loops()
        io, ii = s.split(i, 3)
        jo, ji = s.split(j, 4)
        s.reorder(io, jo, kk, ii, ji)
        s.kind(ii, "unrolled")
        s.kind(ji, "vectorized")
        s.accumulate(s.program.definition.outputs[0], jo)
        lowered = running.check_every_pass(s.program)
        assert isinstance(lowered, LoweredProgram)
        if m % 3 == 0 and n % 4 == 0:
            assert "if" not in format_lowered(lowered)


def test_reads_of_copies_in_registers_stay_inside():
    """A stencil whose copy of the input is small, and whose tail is ragged."""
    s = build.Schedule(build.blur())
    (i,) = s.loops("Y")
    io, ii = s.split(i, 4)
    s.compute_at("H", io, "local")
    (x,) = s.program.definition.inputs
    s.cache_read(x, io, "local")
    s.kind(ii, "vectorized")
    for size in SIZES:
        running.check_every_pass(s.program, size)


# --- registers and vectors --------------------------------------------------------------------


def register_tile() -> build.Schedule:
    """A 2 x 16 tile computed in vectors of 8, whose copies back are left as they were made."""
    s = build.Schedule(build.matmul())
    i, j, k = s.loops()
    io, ii = s.split(i, 2)
    jo, ji = s.split(j, 16)
    jv, jl = s.split(ji, 8)
    s.reorder(io, jo, k, ii, jv, jl)
    s.kind(ii, "unrolled")
    s.kind(jv, "unrolled")
    s.kind(jl, "vectorized")
    s.accumulate(s.program.definition.outputs[0], jo)
    return s


def test_copies_left_alone_run_in_vectors():
    text = after(register_tile().program, "vectorize_copies")
    assert "for a0 in 2:\n            vectorized for a1 in 16:\n" in text


def test_registers_are_accessed_in_one_width():
    text = after(register_tile().program, "match_vector_widths")
    assert "unrolled for a1.o in 2:\n                vectorized for a1.i in 8:\n" in text


def test_loops_over_registers_are_unrolled():
    text = after(register_tile().program, "unroll_registers")
    assert "unrolled for a0 in 2:\n            unrolled for a1.o in 2:\n" in text
    s = build.Schedule(build.blur())
    (i,) = s.loops("Y")
    io, _ = s.split(i, 100)
    s.compute_at("H", io, "local")
    assert "unrolled" not in after(s.program, "unroll_registers")  # 102 copies are too many


def test_register_tiles_compute_the_same():
    for sizes in ((0, 0, 0), (1, 1, 1), (2, 3, 16), (3, 2, 17), (5, 1, 15), (4, 0, 33)):
        running.check_every_pass(register_tile().program, *sizes)


def test_loops_and_buffers_of_the_result_are_distinct():
    """Also where storage stands inside an unrolled loop."""
    s = build.Schedule(build.blur())
    (i,) = s.loops("Y")
    io, ii = s.split(i, 3)
    s.compute_at("H", ii)
    s.kind(ii, "unrolled")
    for size in SIZES:
        running.check_every_pass(s.program, size)
    lowered = lower(s.program)
    buffers = [stmt.buffer for stmt in iterate(lowered.body) if isinstance(stmt, Allocate)]
    assert len(set(buffers)) == len(buffers) == 6
    del io


def test_the_check_of_instances_notices_what_is_lost_and_what_is_added():
    from tensorlang.lower.check import check_same_instances

    whole = elementwise().program
    (n,) = whole.definition.sizes
    short = replace(whole, body=replace(whole.body, extent=affine(n) - 1))
    with pytest.raises(AssertionError, match=r"the program does not run Y\[2\] \(whole\)"):
        check_same_instances(whole, short, {n: 3})
    with pytest.raises(AssertionError, match=r"the program also runs Y\[2\] \(whole\)"):
        check_same_instances(short, whole, {n: 3})


@pytest.mark.parametrize("kind", ["reversed", "shifted"])
@pytest.mark.parametrize("how", ["vectorized", "unrolled"])
def test_reads_beyond_the_end_stay_inside_whatever_their_index(kind, how):
    """Lanes beyond the end would read before the beginning, or from an empty array."""
    s = build.Schedule(build.through_a_stage(kind))
    (i,) = s.loops("Y")
    io, _ = s.split(i, 4)
    s.compute_at("H", io, "local")
    s.kind(s.loops("H")[-1], how)
    for size in SIZES:
        running.check_every_pass(s.program, size)


def test_a_box_that_begins_beyond_the_tensor_is_not_clamped_into():
    H, W = tl.dims("H W")

    @tl.compute
    def blur(x: tl.f32[H, W]):
        a = tl.tensor(x[i, j] + x[i, j + 1] for i in H for j in W - 1)
        return tl.tensor(a[i, j] + a[i + 1, j] for i in H - 1 for j in W - 1)

    s = tl.schedule(blur)
    s.split("a/i", 3)
    s.unroll("i.i")
    s.cache_read("x", at="i.i")
    s.cache_write("a", at="a/j")
    assert "min(" not in tl.compile(s).source("loops")
