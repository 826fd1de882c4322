"""reverse_compute_at: a stage inside a loop of the stage that it reads."""

# ruff: noqa: E501 - printed programs

import pytest

import tensorlang as tl
from tests.schedule.checks import accepts, compiles, prints, refused, start


def test_program_after():
    s = accepts("mean", lambda s: s.reverse_compute_at("mean", "mean.sum/i"), (0, 1, 2, 5))
    prints(
        s,
        """
        mean.sum = global f32[M]
        for i in M:
            for j in N:
                mean.sum[i] += x[i, j]
            mean[i] = mean.sum[i] / N
        """,
    )


@pytest.mark.parametrize("loop", ["C/i", "C/j"])
def test_after_a_reduction(loop):
    accepts("matmul_bias", lambda s: s.reverse_compute_at("matmul_bias", loop), (0, 1, 2, 5))


def test_in_a_tile():
    def steps(s):
        loops = s.tile(["C/i", "C/j"], [2, 3])
        s.reverse_compute_at("matmul_bias", loops[1])

    s = accepts("matmul_bias", steps, (0, 1, 2, 5))
    prints(
        s,
        """
        C = global i32[M, N]
        for i.o in (M + 1) // 2:
            for j.o in (N + 2) // 3:
                for i.i in 2:
                    for j.i in 3:
                        for k in K:
                            C[2 * i.o + i.i, 3 * j.o + j.i] += A[2 * i.o + i.i, k] * B[k, 3 * j.o + j.i]  # if 2 * i.o + i.i < M and 3 * j.o + j.i < N
                for i in 2:
                    for j in 3:
                        matmul_bias[2 * i.o + i, 3 * j.o + j] = maximum(C[2 * i.o + i, 3 * j.o + j] + bias[3 * j.o + j], 0)  # if 2 * i.o + i < M and 3 * j.o + j < N
        """,
    )


def test_every_kind_of_producer():
    accepts("half_sum", lambda s: s.reverse_compute_at("half_sum", "half_sum.acc/i"), (0, 1, 5))
    accepts(
        "sum_and_squares", lambda s: s.reverse_compute_at("sum_and_squares", "linear/i"), (0, 1, 5)
    )
    accepts("scan_line", lambda s: s.reverse_compute_at("scan_line", "sums/j"), (0, 1, 5))
    accepts("two_outputs", lambda s: s.reverse_compute_at("plus", "shared/i"), (0, 1, 5))


def test_an_output_can_move():
    def steps(s):
        s.reverse_compute_at("plus", "shared/j")
        s.reverse_compute_at("minus", "shared/j")

    s = accepts("two_outputs", steps, (0, 1, 2, 5))
    prints(
        s,
        """
        shared = global f32[M, N]
        for i in M:
            for j in N:
                shared[i, j] = x[i, j] * 2
                plus[i, j] = shared[i, j] + 1
                minus[i, j] = shared[i, j] - 1
        """,
    )


def test_a_fused_loop():
    accepts(
        "two_outputs",
        lambda s: s.reverse_compute_at("plus", s.fuse("shared/i", "shared/j")),
        (0, 1, 4),
    )


def test_compiled():
    compiles("matmul_bias", lambda s: s.reverse_compute_at("matmul_bias", s.split("C/i", 4)[0]))


def test_refused_inside_the_reduction():
    s = start("matmul_bias")
    refused(
        s,
        lambda: s.reverse_compute_at("matmul_bias", "C/k"),
        """
        reverse_compute_at('matmul_bias', 'C/k') is refused: matmul_bias would read, inside k, what is not complete there
          AT

            C = global i32[M, N]
            for i in M:
                for j in N:
                    for k in K:    # <-- here
                        C[i, j] += A[i, k] * B[k, j]
            for i in M:
                for j in N:
                    matmul_bias[i, j] = maximum(C[i, j] + bias[j], 0)

        Counterexample: an element of the output matmul_bias is never written
        sizes:  M = 1, K = 0, N = 1
                the caller reads matmul_bias[0, 0]

        Try: a loop further out, where all that it reads is complete
        """,
    )


def test_a_reduction_over_whole_rows():
    s = accepts("softmax", lambda s: s.reverse_compute_at("total", "e/i"), (0, 1, 2, 5))
    assert s.verify().ok
    prints(
        s,
        """
        top = global f32[M]
        e = global f32[M, N]
        total = global f32[M]
        for i in M:
            for j in N:
                top[i] = max(top[i]; X[i, j])
        for i in M:
            for j in N:
                e[i, j] = exp(X[i, j] - top[i])
            for j in N:
                total[i] += e[i, j]
        for i in M:
            for j in N:
                softmax[i, j] = e[i, j] / total[i]
        """,
    )


def test_refused_stages():
    s = start("softmax")
    block, _ = s.split("e/j", 4)
    refused(
        s,
        lambda: s.reverse_compute_at("total", block),
        """
        reverse_compute_at('total', 'j.o') is refused: total reduces over j, of which j.o has a part
          AT

            top = global f32[M]
            e = global f32[M, N]
            total = global f32[M]
            for i in M:
                for j in N:
                    top[i] = max(top[i]; X[i, j])
            for i in M:
                for j.o in (N + 3) // 4:    # <-- here
                    for j.i in 4:
                        e[i, 4 * j.o + j.i] = exp(X[i, 4 * j.o + j.i] - top[i])  # if 4 * j.o + j.i < N
            for i in M:
                for j in N:
                    total[i] += e[i, j]
            for i in M:
                for j in N:
                    softmax[i, j] = e[i, j] / total[i]

        Try: a loop further out, whose body computes all that is reduced
        """,
    )
    s = start("every_second")
    refused(
        s,
        lambda: s.reverse_compute_at("every_second", "pairs/i"),
        """
        reverse_compute_at('every_second', 'pairs/i') is refused: every_second does not read pairs element by element
          AT

            pairs = global f32[2 * N]
            for i in 2 * N:    # <-- here
                pairs[i] = x[i] + 1
            for i in N:
                every_second[i] = pairs[2 * i] - pairs[2 * i + 1]

        Try: compute_at moves the stage that it reads instead
        """,
    )
    s = start("mean")
    s.split("mean/i", 4)
    refused(
        s,
        lambda: s.reverse_compute_at("mean", "mean.sum/i"),
        """
        reverse_compute_at('mean', 'mean.sum/i') is refused: the loops of mean have been scheduled already
          AT

            mean.sum = global f32[M]
            for i in M:    # <-- here
                for j in N:
                    mean.sum[i] += x[i, j]
            for i.o in (M + 3) // 4:
                for i.i in 4:
                    mean[4 * i.o + i.i] = mean.sum[4 * i.o + i.i] / N  # if 4 * i.o + i.i < M

        Try: reverse_compute_at first, then split
        """,
    )


def test_refused_where_sums_only_begin():
    s = start("mean")
    s.decompose_reduction("mean.sum", "mean.sum/i")
    with pytest.raises(tl.ScheduleError, match="mean reads nothing that is computed inside"):
        s.reverse_compute_at("mean", "mean.sum.init/i")


def test_refused_where_nothing_is_read():
    s = start("softmax")
    refused(
        s,
        lambda: s.reverse_compute_at("softmax", "top/i"),
        """
        reverse_compute_at('softmax', 'top/i') is refused: softmax reads nothing that is computed inside i
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
            for i in M:
                for j in N:
                    softmax[i, j] = e[i, j] / total[i]

        Try: a loop of a stage that it reads
        """,
    )
    s = start("every_second")
    refused(
        s,
        lambda: s.reverse_compute_at("every_second", "pairs/i"),
        """
        reverse_compute_at('every_second', 'pairs/i') is refused: every_second does not read pairs element by element
          AT

            pairs = global f32[2 * N]
            for i in 2 * N:    # <-- here
                pairs[i] = x[i] + 1
            for i in N:
                every_second[i] = pairs[2 * i] - pairs[2 * i + 1]

        Try: compute_at moves the stage that it reads instead
        """,
    )
    s = start("chain")
    refused(
        s,
        lambda: s.reverse_compute_at("chain", "first/i"),
        """
        reverse_compute_at('chain', 'first/i') is refused: chain would read, inside i, what is not complete there
          AT

            first = global f32[N]
            second = global f32[N]
            for i in N:    # <-- here
                first[i] = x[i] + 1
            for i in N:
                second[i] = first[i] * 2
            for i in N:
                chain[i] = second[i] - first[i]

        Counterexample: second is read before it is written
        sizes:  N = 1
        loops:  i = 0
                chain[i=0] reads second[0]
        in:     chain[i] = second[i] - first[i]

        Try: a loop further out, where all that it reads is complete
        """,
    )


def test_neighbours_follow_with_a_lag():
    s = accepts("blur", lambda s: s.reverse_compute_at("blur", "rows/i"), (0, 1, 2, 5))
    prints(
        s,
        """
        rows = global f32[H + 2, W]
        for i in H + 2:
            for j in W:
                rows[i, j] = image[i, j] + image[i, j + 1] + image[i, j + 2]
            for j in W:
                blur[i - 2, j] = rows[i - 2, j] + rows[i - 1, j] + rows[i, j]  # if i - 2 >= 0
        """,
    )
    compiles("blur", lambda s: s.reverse_compute_at("blur", "rows/i"), (0, 1, 2, 5))
    for factor in (2, 3):

        def steps(s, factor=factor):
            outer, _ = s.split("rows/i", factor)
            s.reverse_compute_at("blur", outer)

        accepts("blur", steps, (0, 1, 2, 5))
