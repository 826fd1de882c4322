"""reorder: free for maps and commutative reductions, proved where something depends on order."""

# ruff: noqa: E501 - printed programs

import itertools

import pytest

import tensorlang as tl
from tests.schedule.checks import accepts, compiles, prints, refused, start


def test_program_after():
    s = start("matmul")
    s.reorder("k", "i", "j")
    prints(
        s,
        """
        for k in K:
            for i in M:
                for j in N:
                    matmul[i, j] += A[i, k] * B[k, j]
        """,
    )


@pytest.mark.parametrize("order", list(itertools.permutations("ijk")))
def test_every_order_of_a_reduction(order):
    accepts("matmul", lambda s: s.reorder(*order), (0, 1, 3))


def test_loops_between_the_given_ones_stay():
    s = start("matmul")
    s.split("i", 4)
    s.reorder("k", "i.o")
    assert [loop.name for loop in s.loops] == ["k", "i.i", "j", "i.o"]
    s.reorder("j")
    assert [loop.name for loop in s.loops] == ["k", "i.i", "j", "i.o"]


@pytest.mark.parametrize(
    "name", ["add", "argmax", "triangular", "band", "sum_and_squares", "gather_rows", "any_all"]
)
def test_every_kind_of_stage(name):
    def steps(s):
        loops = s[s.definition.stages[0].name].loops
        s.reorder(*reversed(loops))

    accepts(name, steps, (0, 1, 2, 5))


def test_a_recurrence_keeps_the_order_of_its_own_axis():
    accepts("running_sum", lambda s: s.reorder("j", "i"), (0, 1, 2, 5))
    s = start("scan_line")
    s.split("sums/j", 4)
    refused(
        s,
        lambda: s.reorder("sums/j.i", "sums/j.o"),
        """
        reorder('sums/j.i', 'sums/j.o') is refused: the order j.i, j.o breaks a dependence
          AT

            sums = global i64[N]
            for j.o in (N + 3) // 4:    # <-- here
                for j.i in 4:    # <-- here
                    sums[4 * j.o + j.i] = where((4 * j.o + j.i) > 0, sums[4 * j.o + j.i - 1] + x[4 * j.o + j.i - 1], 0)  # if 4 * j.o + j.i < N
            for j in N:
                scan_line[j] = sums[j] * 2 + x[j]

        Counterexample: sums is read before it is written
        sizes:  N = 5
        loops:  j.i = 0, j.o = 1
                sums[j=4] reads sums[3]
        in:     sums[4 * j.o + j.i] = where((4 * j.o + j.i) > 0, sums[4 * j.o + j.i - 1] + x[4 * j.o + j.i - 1], 0)  # if 4 * j.o + j.i < N

        Try: keep the loops that carry the dependence in their order
        """,
    )


def test_an_ordered_reduction_keeps_its_order():
    accepts("ordered", lambda s: s.reorder("j", "i"), (0, 1, 2, 5))
    s = start("ordered")
    s.split("j", 4)
    refused(
        s,
        lambda: s.reorder("j.i", "j.o"),
        """
        reorder('j.i', 'j.o') is refused: the order j.i, j.o breaks a dependence
          AT

            for i in M:
                for j.o in (N + 3) // 4:    # <-- here
                    for j.i in 4:    # <-- here
                        ordered[i] = custom(ordered[i]; x[i, 4 * j.o + j.i])  # if 4 * j.o + j.i < N

        Counterexample: the ordered reduction ordered runs out of order
        sizes:  M = 1, N = 5
        loops:  i = 0, j.i = 1, j.o = 0, i' = 0, j.i' = 0, j.o' = 1
                the update ordered[i=0, j=1]
                continues the update ordered[i=0, j=4]
        in:     ordered[i] = custom(ordered[i]; x[i, 4 * j.o + j.i])  # if 4 * j.o + j.i < N

        Try: keep the loops that carry the dependence in their order
        """,
    )


def test_across_storage_that_is_read():
    """Data flows from one statement to another inside the loops."""

    def steps(s):
        s.compute_at("rows", "blur/i")
        s.tile(["blur/j"], [2])

    accepts("blur", steps, (0, 1, 2, 5))
    s = start("blur")
    s.compute_at("rows", "blur/i")
    refused(
        s,
        lambda: s.reorder("blur/j", "blur/i"),
        """
        reorder('blur/j', 'blur/i') is refused: j and i are not perfectly nested (the storage of rows below i)
          AT

            for i in H:    # <-- here
                rows = global f32[3, W] at [i, 0]
                for i' in 3:
                    for j in W:
                        rows[i + i', j] = image[i + i', j] + image[i + i', j + 1] + image[i + i', j + 2]
                for j in W:    # <-- here
                    blur[i, j] = rows[i, j] + rows[i + 1, j] + rows[i + 2, j]

        Try: reorder before stages or copies are placed between the loops
        """,
    )


def test_after_the_init_is_placed():
    def steps(s):
        s.decompose_reduction("row_sum", "j")
        s.split("row_sum/j", 3)
        s.reorder("row_sum/j.i", "row_sum/j.o")

    accepts("row_sum", steps, (0, 1, 2, 5))


def test_compiled():
    compiles("matmul", lambda s: s.reorder("k", "j", "i"))
    compiles("argmax", lambda s: s.reorder("j", "i"))


def test_refused():
    s = start("matmul")
    refused(
        s,
        lambda: s.reorder("i", "j", "i"),
        """
        reorder('i', 'j', 'i') is refused: i is named twice
          AT

            for i in M:    # <-- here
                for j in N:
                    for k in K:
                        matmul[i, j] += A[i, k] * B[k, j]

        Try: each loop once
        """,
    )
    s = start("softmax")
    refused(
        s,
        lambda: s.reorder("top/i", "softmax/i"),
        """
        reorder('top/i', 'softmax/i') is refused: softmax/i does not stand inside top/i, nor around it
          AT

            top = global f32[M]
            e = global f32[M, N]
            total = global f32[M]
            for i in M:    # <-- here
                for j in N:
                    top[i] = max(top[i]; X[i, j])
            for i in M:
                for j in N:
                    e[i, j] = exp(X[i, j] - top[i])
            for i in M:
                for j in N:
                    total[i] += e[i, j]
            for i in M:    # <-- here
                for j in N:
                    softmax[i, j] = e[i, j] / total[i]

        Try: loops of one nest; compute_at and reverse_compute_at move a stage into another's
        """,
    )


def test_refused_around_two_parts():
    s = start("triangular")
    s.split("i", 2)
    s.peel("j")
    refused(
        s,
        lambda: s.reorder("triangular/j", "i.i"),
        """
        reorder('triangular/j', 'i.i') is refused: j and i.i are not perfectly nested (several statements below i.i)
          AT

            for i.o in (N + 1) // 2:
                for i.i in 2:    # <-- here
                    triangular[2 * i.o + i.i] = 0  # if 2 * i.o + i.i < N
                    for j in 2 * i.o + i.i + 1:    # <-- here
                        triangular[2 * i.o + i.i] += x[2 * i.o + i.i, j]  # if j < 2 * i.o + i.i + 1 and 2 * i.o + i.i < N
                    for j.rest in N - 2 * i.o - i.i - 1:
                        triangular[2 * i.o + i.i] += x[2 * i.o + i.i, 2 * i.o + i.i + j.rest + 1]  # if j.rest < 0 and 2 * i.o + i.i < N

        Try: reorder before stages or copies are placed between the loops
        """,
    )


def test_refused_between_a_piece_and_its_positions():
    s = start("matmul")
    outer, inner = s.split(s.fuse("j", "k"), 4)
    refused(
        s,
        lambda: s.reorder(outer, "i"),
        """
        reorder('j.k.o', 'i') is refused: j.k.o runs over pieces of a fused loop, and nothing may stand between it and j.k.i
          AT

            for i in M:
                for j.k.o in (N * K + 3) // 4:    # <-- here
                    for j.k.i = (j, k) in (N, K)[4 * j.k.o : + 4]:    # <-- here
                        matmul[i, j] += A[i, k] * B[k, j]

        Try: reorder before the fused loop is split; or fix the sizes: tl.schedule(op, N=1024)
        """,
    )
    s = start("gather_rows")
    outer, inner = s.split(s.fuse("k", "j"), 4)
    refused(
        s,
        lambda: s.reorder(inner, outer),
        """
        reorder('k.j.i', 'k.j.o') is refused: k.j.i is a piece of a fused loop, and only k.j.o may stand directly around it
          AT

            for k.j.o in (N * K + 3) // 4:    # <-- here
                for k.j.i = (k, j) in (K, N)[4 * k.j.o : + 4]:    # <-- here
                    gather_rows[k, j] = x[int(table[k]), j]

        Try: fix the sizes (tl.schedule(op, N=1024)), or split before fusing
        """,
    )


def test_loops_are_arguments_and_no_list():
    s = start("double")
    with pytest.raises(
        tl.ScheduleError, match=r"Try: each loop as an argument of its own: s\.reorder\(io, jo\)"
    ):
        s.reorder(list(s.loops))
