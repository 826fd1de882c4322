"""fuse: by quotients where sizes are fixed, else one loop over several variables."""

# ruff: noqa: E501 - printed programs

import pytest

from tests.schedule.checks import accepts, compiles, prints, refused, start


def test_program_of_fixed_and_symbolic_sizes():
    s = start("add", N=8)
    fused = s.fuse("i", "j")
    assert (fused.name, fused.extent) == ("i.j", "8 * M")
    prints(
        s,
        """
        for i.j in 8 * M:
            add[i.j // 8, i.j % 8] = A[i.j // 8, i.j % 8] + B[i.j // 8, i.j % 8]
        """,
    )
    s = start("add")
    fused = s.fuse("i", "j")
    assert (fused.name, fused.extent) == ("i.j", "M, N")
    prints(
        s,
        """
        for i.j = (i, j) in (M, N):
            add[i, j] = A[i, j] + B[i, j]
        """,
    )


@pytest.mark.parametrize("fixed", [{}, {"N": 4}, {"M": 3, "N": 1}, {"N": 0}, {"M": 0}])
def test_maps(fixed):
    accepts("add", lambda s: s.fuse("i", "j"), **fixed)


@pytest.mark.parametrize("fixed", [{}, {"M": 2, "N": 3, "K": 4}, {"K": 0}, {"K": 1, "N": 1}])
@pytest.mark.parametrize("loops", [("i", "j"), ("j", "k"), ("i", "j", "k")])
def test_data_and_reduction_loops(loops, fixed):
    """The init runs over the data loops alone, also where they are fused with a reduction."""
    accepts("matmul", lambda s: s.fuse(*loops), (0, 1, 3), **fixed)


def test_a_fused_reduction_in_pieces():
    """With quotients, the init would have run again in each piece."""
    s = accepts("row_sum", lambda s: s.split(s.fuse("i", "j"), 5), M=4, N=16)
    prints(
        s,
        """
        for i.j.o in 13:
            for i.j.i = (i, j) in (4, 16)[5 * i.j.o : + 5]:
                row_sum[i] += x[i, j]
        """,
    )


@pytest.mark.parametrize(
    "name",
    ["argmax", "triangular", "band", "ordered", "running_sum", "gather_rows", "grand_total"],
)
def test_every_kind_of_stage(name):
    accepts(name, lambda s: s.fuse(*s.loops), (0, 1, 2, 3))


def test_after_split_and_before_others():
    def steps(s):
        s.tile(["i", "j"], [2, 3])
        s.parallel(s.fuse("i.o", "j.o"))
        s.unroll(s.fuse("i.i", "j.i"))

    s = accepts("add", steps)
    prints(
        s,
        """
        parallel for i.o.j.o = (i.o, j.o) in ((M + 1) // 2, (N + 2) // 3):
            unrolled for i.i.j.i in 6:
                add[2 * i.o + i.i.j.i // 3, 3 * j.o + i.i.j.i % 3] = A[2 * i.o + i.i.j.i // 3, 3 * j.o + i.i.j.i % 3] + B[2 * i.o + i.i.j.i // 3, 3 * j.o + i.i.j.i % 3]  # if 2 * i.o + i.i.j.i // 3 < M and 3 * j.o + i.i.j.i < N + 3 * (i.i.j.i // 3)
        """,
    )


def test_compiled():
    compiles("matmul", lambda s: s.parallel(s.fuse("i", "j")))
    compiles("add", lambda s: s.split(s.fuse("i", "j"), 16), N=5)


def test_refused():
    s = start("matmul")
    refused(
        s,
        lambda: s.fuse("i"),
        """
        fuse('i') is refused: fuse needs two loops or more
          AT

            for i in M:    # <-- here
                for j in N:
                    for k in K:
                        matmul[i, j] += A[i, k] * B[k, j]

        Try: s.fuse("i", "j")
        """,
    )
    refused(
        s,
        lambda: s.fuse("j", "i"),
        """
        fuse('j', 'i') is refused: i is not directly inside j; found there: k
          AT

            for i in M:    # <-- here
                for j in N:    # <-- here
                    for k in K:
                        matmul[i, j] += A[i, k] * B[k, j]

        Try: reorder the loops so that each is directly inside the one before
        """,
    )
    refused(
        s,
        lambda: s.fuse("i", "k"),
        """
        fuse('i', 'k') is refused: k is not directly inside i; found there: j
          AT

            for i in M:    # <-- here
                for j in N:
                    for k in K:    # <-- here
                        matmul[i, j] += A[i, k] * B[k, j]

        Try: reorder the loops so that each is directly inside the one before
        """,
    )
    refused(
        s,
        lambda: s.fuse("k", "i"),
        """
        fuse('k', 'i') is refused: i is not directly inside k; found there: a statement
          AT

            for i in M:    # <-- here
                for j in N:
                    for k in K:    # <-- here
                        matmul[i, j] += A[i, k] * B[k, j]

        Try: reorder the loops so that each is directly inside the one before
        """,
    )


def test_kinds_stay():
    s = accepts("add", lambda s: [s.parallel("i"), s.parallel("j"), s.fuse("i", "j")], (0, 1, 5))
    assert [loop.kind for loop in s.loops] == ["parallel"]
    s = accepts("add", lambda s: [s.unroll("i"), s.unroll("j"), s.fuse("i", "j")], M=3, N=5)
    assert [loop.kind for loop in s.loops] == ["unrolled"]
    accepts("add", lambda s: [s.unroll("i"), s.unroll("j"), s.fuse("i", "j")], M=3, N=0)


def test_refused_between_statements_and_kinds():
    s = start("mean")
    s.reverse_compute_at("mean", "mean.sum/i")
    refused(
        s,
        lambda: s.fuse("mean.sum/i", "mean.sum/j"),
        """
        fuse('mean.sum/i', 'mean.sum/j') is refused: j is not directly inside i; found there: several statements
          AT

            mean.sum = global f32[M]
            for i in M:    # <-- here
                for j in N:    # <-- here
                    mean.sum[i] += x[i, j]
                mean[i] = mean.sum[i] / N

        Try: reorder the loops so that each is directly inside the one before
        """,
    )
    s = start("add")
    s.parallel("i")
    refused(
        s,
        lambda: s.fuse("i", "j"),
        """
        fuse('i', 'j') is refused: i is parallel and j is serial, and one loop runs in one way
          AT

            parallel for i in M:    # <-- here
                for j in N:    # <-- here
                    add[i, j] = A[i, j] + B[i, j]

        Try: fuse first, and choose how the fused loop runs afterwards
        """,
    )


def test_refused_around_two_parts():
    s = start("triangular")
    s.split("i", 2)
    s.peel("j")
    refused(
        s,
        lambda: s.fuse("i.i", "triangular/j"),
        """
        fuse('i.i', 'triangular/j') is refused: j is not directly inside i.i; found there: several statements
          AT

            for i.o in (N + 1) // 2:
                for i.i in 2:    # <-- here
                    triangular[2 * i.o + i.i] = 0  # if 2 * i.o + i.i < N
                    for j in 2 * i.o + i.i + 1:    # <-- here
                        triangular[2 * i.o + i.i] += x[2 * i.o + i.i, j]  # if j < 2 * i.o + i.i + 1 and 2 * i.o + i.i < N
                    for j.rest in N - 2 * i.o - i.i - 1:
                        triangular[2 * i.o + i.i] += x[2 * i.o + i.i, 2 * i.o + i.i + j.rest + 1]  # if j.rest < 0 and 2 * i.o + i.i < N

        Try: reorder the loops so that each is directly inside the one before
        """,
    )


def test_pieces_hold_nothing_new():
    s = start("add")
    outer, inner = s.split(s.fuse("i", "j"), 4)
    refused(
        s,
        lambda: s.fuse(outer, inner),
        """
        fuse('i.j.o', 'i.j.i') is refused: i.j.o runs over pieces of a fused loop, and nothing may stand between it and i.j.i
          AT

            for i.j.o in (M * N + 3) // 4:    # <-- here
                for i.j.i = (i, j) in (M, N)[4 * i.j.o : + 4]:    # <-- here
                    add[i, j] = A[i, j] + B[i, j]

        Try: fuse before the fused loop is split; or fix the sizes: tl.schedule(op, N=1024)
        """,
    )
