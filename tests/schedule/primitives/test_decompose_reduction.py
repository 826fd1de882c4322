"""decompose_reduction: the init as a nest of its own."""

# ruff: noqa: E501 - printed programs

import pytest

from tests.schedule.checks import accepts, compiles, each, prints, refused, start


def test_program_after():
    s = start("matmul")
    init = s.decompose_reduction("matmul", "k")
    assert init.name == "matmul.init"
    prints(
        s,
        """
        for i in M:
            for j in N:
                matmul[i, j] = 0
                for k in K:
                    matmul[i, j] += A[i, k] * B[k, j]
        """,
    )


@pytest.mark.parametrize("loop", ["i", "j", "k"])
def test_at_every_loop_around_the_reduction(loop):
    accepts("matmul", lambda s: s.decompose_reduction("matmul", loop), (0, 1, 3))


@each(
    "name",
    "stage",
    "loop",
    """
    total:total:i argmax:argmax:i sum_and_squares:linear:linear/j triangular:triangular:j
    triangular:triangular:i band:band:i ordered:ordered:j softmax:top:top/i
    half_sum:half_sum.acc:half_sum.acc/i
    """,
)
def test_every_kind_of_reduction(name, stage, loop):
    accepts(name, lambda s: s.decompose_reduction(stage, loop), (0, 1, 2, 5))


def test_the_init_is_scheduled_by_itself():
    def steps(s):
        init = s.decompose_reduction("matmul", "i")
        i, j = init.loops
        s.split(j, 4)
        s.parallel(i)
        s.split("matmul/i", 3)
        assert [loop.name for loop in s["matmul.init"].loops] == ["i", "j.o", "j.i"]

    accepts("matmul", steps, (0, 1, 4, 5))


def test_after_splits_reorders_and_fusion():
    def steps(s):
        s.tile(["i", "k"], [2, 3])
        s.decompose_reduction("matmul", "matmul/i.o")

    accepts("matmul", steps, (0, 1, 2, 5))
    accepts("row_sum", lambda s: s.decompose_reduction("row_sum", s.fuse("i", "j")), (0, 1, 3))


def test_inside_a_cached_accumulator():
    def steps(s):
        s.cache_write("matmul", at="i", scope="global")
        s.decompose_reduction("matmul", "matmul/j")

    accepts("matmul", steps, (0, 1, 3))


def test_compiled():
    compiles("matmul", lambda s: s.decompose_reduction("matmul", "j"))


def test_refused():
    s = start("softmax")
    refused(
        s,
        lambda: s.decompose_reduction("e", "e/i"),
        """
        decompose_reduction('e', 'e/i') is refused: e is no reduction
          AT

        Try: a stage that reduces
        """,
    )
    refused(
        s,
        lambda: s.decompose_reduction("total", "e/i"),
        """
        decompose_reduction('total', 'e/i') is refused: i is no loop around total
          AT

            top = global f32[M]
            e = global f32[M, N]
            total = global f32[M]
            for i in M:
                for j in N:
                    top[i] = max(top[i]; X[i, j])
            for i in M:    # <-- here
                for j in N:
                    e[i, j] = exp(X[i, j] - top[i])
            for i in M:
                for j in N:
                    total[i] += e[i, j]
            for i in M:
                for j in N:
                    softmax[i, j] = e[i, j] / total[i]

        Try: one of the stage's loops
        """,
    )
    s.split("total/j", 4)
    refused(
        s,
        lambda: s.decompose_reduction("total", "total/j.i"),
        """
        decompose_reduction('total', 'total/j.i') is refused: an init right before j.i would run again in the middle of the reduction
          AT

            top = global f32[M]
            e = global f32[M, N]
            total = global f32[M]
            for i in M:
                for j in N:
                    top[i] = max(top[i]; X[i, j])
            for i in M:
                for j in N:
                    e[i, j] = exp(X[i, j] - top[i])
            for i in M:
                for j.o in (N + 3) // 4:
                    for j.i in 4:    # <-- here
                        total[i] += e[i, 4 * j.o + j.i]  # if 4 * j.o + j.i < N
            for i in M:
                for j in N:
                    softmax[i, j] = e[i, j] / total[i]

        Try: the outermost reduction loop, or a loop around it
        """,
    )
    s.decompose_reduction("total", "total/j.o")
    refused(
        s,
        lambda: s.decompose_reduction("total", "total/j.o"),
        """
        decompose_reduction('total', 'total/j.o') is refused: the reduction total has been decomposed already
          AT

        Try: decompose_reduction before decompose_reduction and peel
        """,
    )


def test_refused_outside_the_storage():
    s = start("matmul")
    s.cache_write("matmul", at="j", scope="global")
    refused(
        s,
        lambda: s.decompose_reduction("matmul", "matmul/i"),
        """
        decompose_reduction('matmul', 'matmul/i') is refused: matmul.local is allocated inside i, and an init before the loop could not reach it
          AT

            for i in M:    # <-- here
                for j in N:
                    matmul.local = global f32[1, 1] at [i, j]
                    for k in K:
                        matmul.local[i, j] += A[i, k] * B[k, j]
                    matmul[i, j] = matmul.local[i, j]

        Try: a loop inside the storage that is accumulated in
        """,
    )
    s = start("mean")
    s.compute_at("mean.sum", "mean/i")
    refused(
        s,
        lambda: s.decompose_reduction("mean.sum", "mean/i"),
        """
        decompose_reduction('mean.sum', 'mean/i') is refused: mean.sum is allocated inside i, and an init before the loop could not reach it
          AT

            for i in M:    # <-- here
                mean.sum = global f32[1] at [i]
                for j in N:
                    mean.sum[i] += x[i, j]
                mean[i] = mean.sum[i] / N

        Try: a loop inside the storage that is accumulated in
        """,
    )
