from __future__ import annotations

from textwrap import dedent

import lower_builder as build

from tensorlang.ir.printer import format_program
from tensorlang.ir.program import Program
from tensorlang.ir.walk import iterate
from tensorlang.schedule.place_inits import place_inits


def expect(program: Program, wanted: str) -> None:
    text = format_program(place_inits(program)).split("\n", 1)[1]
    assert dedent(text) == dedent(wanted).strip("\n")


def test_naive_matmul_gets_an_init_before_its_reduction_loop():
    expect(
        build.naive(build.matmul()),
        """
        for i in M:
            for j in N:
                C[i, j] = 0
                for k in K:
                    C[i, j] += A[i, k] * B[k, j]
        """,
    )


def test_data_loops_below_are_cloned_with_their_kinds_and_guards():
    s = build.Schedule(build.matmul())
    i, j, k = s.loops()
    io, ii = s.split(i, 6)
    jo, ji = s.split(j, 16)
    ko, ki = s.split(k, 4)
    s.reorder(io, jo, ko, ki, ii, ji)
    s.kind(ii, "unrolled")
    s.kind(ji, "vectorized")
    expect(
        s.program,
        """
        for i.o in (M + 5) // 6:
            for j.o in (N + 15) // 16:
                unrolled for i.i in 6:
                    vectorized for j.i in 16:
                        C[6 * i.o + i.i, 16 * j.o + j.i] = 0  # if 6 * i.o + i.i < M and 16 * j.o + j.i < N
                for k.o in (K + 3) // 4:
                    for k.i in 4:
                        unrolled for i.i in 6:
                            vectorized for j.i in 16:
                                C[6 * i.o + i.i, 16 * j.o + j.i] += A[6 * i.o + i.i, 4 * k.o + k.i] * B[4 * k.o + k.i, 16 * j.o + j.i]  # if 6 * i.o + i.i < M and 16 * j.o + j.i < N and 4 * k.o + k.i < K
        """,  # noqa: E501
    )
    placed = place_inits(s.program)
    handles = [id(stmt.variable) for stmt in iterate(placed.body) if hasattr(stmt, "variable")]
    assert len(handles) == len(set(handles)) == 8


def test_redirection_is_dropped_inside_and_kept_outside():
    for at, name in ((1, "C.acc"), (0, "C")):
        s = build.Schedule(build.matmul())
        i, j, k = s.loops()
        if at:
            s.accumulate(s.program.definition.outputs[0], j)
        else:
            s.reorder(k, i, j)
            s.accumulate(s.program.definition.outputs[0], k, "global", copy_in=True)
        text = format_program(place_inits(s.program))
        assert f"{name}[i, j] = 0" in text
    expect(
        s.program,
        """
        for i in M:
            for j in N:
                C[i, j] = 0
        for k in K:
            C.acc = global f32[M, N]
            for a0 in M:
                for a1 in N:
                    C.acc[a0, a1] = C[a0, a1]
            for i in M:
                for j in N:
                    C.acc[i, j] += A[i, k] * B[k, j]
            for a0 in M:
                for a1 in N:
                    C[a0, a1] = C.acc[a0, a1]
        """,
    )


def test_a_loop_fused_over_data_and_reduction_is_unfused_for_the_init():
    s = build.Schedule(build.row_sum())
    i, j = s.loops()
    s.fuse(i, j)
    s.split_fused(i, 8)
    expect(
        s.program,
        """
        for i in M:
            S[i] = 0
        for f.o in (M * N + 7) // 8:
            for f.i = (i, j) in (M, N)[8 * f.o : + 8]:
                S[i] += A[i, j]
        """,
    )


def test_a_run_over_data_loops_is_cloned_whole():
    s = build.Schedule(build.matmul())
    i, j, k = s.loops()
    s.reorder(k, i, j)
    s.fuse(i, j)
    s.split_fused(i, 8)
    expect(
        s.program,
        """
        for f.o in (M * N + 7) // 8:
            for f.i = (i, j) in (M, N)[8 * f.o : + 8]:
                C[i, j] = 0
        for k in K:
            for f.o in (M * N + 7) // 8:
                for f.i = (i, j) in (M, N)[8 * f.o : + 8]:
                    C[i, j] += A[i, k] * B[k, j]
        """,
    )


def test_the_predicate_of_a_reduction_does_not_restrict_the_init():
    expect(
        build.naive(build.triangle()),
        """
        for i in M:
            S[i] = 0
            for k in N:
                S[i] += A[i, k]  # if k < i + 1
        """,
    )


def test_without_reduction_axes_the_init_stands_directly_before():
    definition = build.matmul()
    stage = definition.stages[0]
    from dataclasses import replace

    bare = replace(stage, reduction_axes=(), values=(build.load(definition.inputs[0], 0, 0),))
    expect(
        build.naive(replace(definition, stages=(bare,))),
        """
        for i in M:
            for j in N:
                C[i, j] = 0
                C[i, j] += A[0, 0]
        """,
    )


def test_only_the_path_of_each_reduction_is_cloned():
    s = build.Schedule(build.softmax_like())
    i, _ = s.loops("Y")
    s.compute_at("top", i)
    expect(
        s.program,
        """
        for i in M:
            top = global f32[1] at [i]
            for i' in 1:
                top[i + i'] = -inf  # if i + i' < M
                for j in N:
                    top[i + i'] = max(top[i + i']; X[i + i', j])  # if i + i' < M
            for j in N:
                Y[i, j] = X[i, j] - top[i]
        """,
    )


def test_decomposed_reductions_are_left_alone():
    placed = place_inits(build.naive(build.matmul()))
    assert place_inits(placed) is placed


def test_tuple_states_are_initialised_together():
    expect(
        build.naive(build.argmax()),
        """
        for i in M:
            V[i], P[i] = -inf, 0
            for j in N:
                V[i], P[i] = argmax(V[i], P[i]; X[i, j], j)
        """,
    )
