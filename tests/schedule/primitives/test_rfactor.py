"""rfactor: partial results for each iteration of a reduction loop."""

# ruff: noqa: E501 - printed programs

import pytest

from tests.schedule.checks import accepts, compiles, each, prints, refused, start


def test_program_after():
    s = start("total")
    _, inner = s.split("i", 8)
    partial = s.rfactor(inner)
    assert partial.name == "total.rf"
    assert [loop.name for loop in partial.loops] == ["i.o", "i.i"]
    assert [loop.name for loop in s["total"].loops] == ["i.i"]
    prints(
        s,
        """
        total.rf = global i64[8]
        for i.o in (N + 7) // 8:
            for i.i in 8:
                total.rf[i.i] += x[8 * i.o + i.i]  # if 8 * i.o + i.i < N
        for i.i in 8:
            total[()] += total.rf[i.i]
        """,
    )


@pytest.mark.parametrize("part", [0, 1])
@each(
    "name",
    "loop",
    """
    total:i row_sum:j column_sum:i matmul:k grand_total:i grand_total:j argmax:j
    sum_and_squares:linear/j any_all:some/j triangular:j band:j half_sum:half_sum.acc/j
    mean:mean.sum/j softmax:top/j conv2d_stride1_pad1:r
    """,
)
def test_every_kind_of_reduction(name, loop, part):
    def steps(s):
        loops = s.split(loop, 3)
        s.rfactor(loops[part])

    accepts(name, steps, (0, 1, 2) if name.startswith("conv") else (0, 1, 3, 4))


def test_a_whole_axis():
    accepts("row_sum", lambda s: s.rfactor("j"), (0, 1, 4))
    accepts("matmul", lambda s: s.rfactor("k"), (0, 1, 3), K=3)


def test_twice_and_then_lanes_and_threads():
    def steps(s):
        chunk, inner = s.split("i", 6)
        s.rfactor(chunk)
        s.parallel(chunk)
        _, lane = s.split(inner, 3)
        s.rfactor(lane)
        s.vectorize(lane)

    s = accepts("total", steps, (0, 1, 5, 6, 7, 13))
    prints(
        s,
        """
        total.rf = global i64[(N + 5) // 6]
        parallel for i.o in (N + 5) // 6:
            total.rf.rf = global i64[1, 3] at [i.o, 0]
            for i.i.o in 2:
                vectorized for i.i.i in 3:
                    total.rf.rf[i.o, i.i.i] += x[6 * i.o + 3 * i.i.o + i.i.i]  # if 6 * i.o + 3 * i.i.o + i.i.i < N
            for i.i.i in 3:
                total.rf[i.o] += total.rf.rf[i.o, i.i.i]
        for i.o in (N + 5) // 6:
            total[()] += total.rf[i.o]
        """,
    )


def test_the_partial_results_are_scheduled_further():
    """The lanes of the partial results are data: their guard is none of the predicate's."""

    def steps(s):
        s.rfactor("j")
        s.split("triangular.rf/j", 4)
        s.split("triangular/j", 4)

    accepts("triangular", steps, (0, 1, 2, 5))


def test_between_data_loops():
    def steps(s):
        s.reorder("k", "i", "j")
        s.rfactor(s.split("k", 2)[0])

    accepts("matmul", steps, (0, 1, 3))


def test_compiled():
    compiles("total", lambda s: s.rfactor(s.split("i", 4)[1]))
    compiles("argmax", lambda s: s.rfactor(s.split("j", 4)[1]))


def test_refused():
    s = start("matmul")
    refused(
        s,
        lambda: s.rfactor("i"),
        """
        rfactor('i') is refused: i is no loop of a reduction
          AT

            for i in M:    # <-- here
                for j in N:
                    for k in K:
                        matmul[i, j] += A[i, k] * B[k, j]

        Try: a loop that runs through a reduction axis, or a part of one after split
        """,
    )
    s = start("ordered")
    refused(
        s,
        lambda: s.rfactor("j"),
        """
        rfactor('j') is refused: ordered combines in a fixed order (ordered=True)
          AT

            for i in M:
                for j in N:    # <-- here
                    ordered[i] = custom(ordered[i]; x[i, j])

        Try: leave the reduction in one piece
        """,
    )
    s = start("running_sum")
    refused(
        s,
        lambda: s.rfactor("j"),
        """
        rfactor('j') is refused: j is no loop of a reduction
          AT

            for i in M:
                for j in N:    # <-- here
                    running_sum[i, j] = where(j > 0, running_sum[i, j - 1] + x[i, j], 0 + x[i, j])

        Try: a loop that runs through a reduction axis, or a part of one after split
        """,
    )


def test_refused_after_other_steps():
    s = start("row_sum")
    s.cache_write("row_sum", at="i", scope="global")
    refused(
        s,
        lambda: s.rfactor("j"),
        """
        rfactor('j') is refused: row_sum accumulates in a copy already
          AT

            for i in M:
                row_sum.local = global f32[1] at [i]
                for j in N:    # <-- here
                    row_sum.local[i] += x[i, j]
                row_sum[i] = row_sum.local[i]

        Try: rfactor before cache_write
        """,
    )
    s = start("row_sum")
    s.decompose_reduction("row_sum", "j")
    refused(
        s,
        lambda: s.rfactor("row_sum/j"),
        """
        rfactor('row_sum/j') is refused: the reduction row_sum has been decomposed already
          AT

        Try: rfactor before decompose_reduction and peel
        """,
    )
    s = start("grand_total")
    fused = s.fuse("i", "j")
    refused(
        s,
        lambda: s.rfactor(fused),
        """
        rfactor('i.j') is refused: i.j runs through a fused loop of several variables, or its pieces
          AT

            for i.j = (i, j) in (M, N):    # <-- here
                grand_total[()] += x[i, j]

        Try: rfactor before fuse; or fix the sizes, which fuse to one variable: tl.schedule(op, N=1024)
        """,
    )
    s = start("row_sum")
    s.cache_read("x", at="j")
    refused(
        s,
        lambda: s.rfactor("j"),
        """
        rfactor('j') is refused: other stages are computed inside the reduction loops of row_sum
          AT

            for i in M:
                for j in N:    # <-- here
                    x.local = global f32[1, 1] at [i, j]
                    x.local[i, j] = x[i, j]
                    row_sum[i] += x.local[i, j]

        Try: rfactor before compute_at and cache_read
        """,
    )
