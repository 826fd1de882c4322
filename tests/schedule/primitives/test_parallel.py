"""parallel: iterations that do not touch each other's elements."""

# ruff: noqa: E501 - printed programs

import pytest

from tests.schedule.checks import accepts, compiles, each, prints, refused, start


def test_program_after():
    s = start("add")
    s.parallel("i")
    assert [loop.kind for loop in s.loops] == ["parallel", "serial"]
    prints(
        s,
        """
        parallel for i in M:
            for j in N:
                add[i, j] = A[i, j] + B[i, j]
        """,
    )


@each(
    "name",
    "loop",
    """
    double:i add:j cube:b matmul:i matmul:j argmax:i triangular:i band:i running_sum:i gather:k
    gather_rows:j ordered:i sum_and_squares:linear/i blur:blur/j two_outputs:plus/i
    conv2d_stride1_pad1:o smooth:smooth/i
    """,
)
def test_every_kind_of_stage(name, loop):
    accepts(name, lambda s: s.parallel(loop), (0, 1, 2, 4))


def test_split_and_guarded_loops():
    accepts("add", lambda s: s.parallel(s.split("i", 4)[0]))
    accepts("add", lambda s: s.parallel(s.split("i", 4)[1]))
    accepts("matmul", lambda s: s.parallel(s.tile(["i", "j", "k"], [2, 2, 2])[0]), (0, 1, 2, 5))


@pytest.mark.parametrize("fixed", [{}, {"N": 4}])
def test_fused_loops(fixed):
    accepts("add", lambda s: s.parallel(s.fuse("i", "j")), **fixed)
    accepts("add", lambda s: s.parallel(s.split(s.fuse("i", "j"), 4)[0]), **fixed)
    accepts("matmul", lambda s: s.parallel(s.fuse("i", "j")), (0, 1, 4), **fixed)


def test_perfectly_nested_parallel_loops_run_as_one():
    def steps(s):
        s.parallel("i")
        s.parallel("j")

    accepts("add", steps)


def test_storage_inside_is_private():
    def steps(s):
        s.compute_at("rows", "blur/i")
        s.parallel("blur/i")

    accepts("blur", steps, (0, 1, 2, 5))


def test_compiled():
    compiles("matmul", lambda s: s.parallel("i"))
    compiles("running_sum", lambda s: s.parallel("i"))


def test_refused_reductions():
    s = start("row_sum")
    refused(
        s,
        lambda: s.parallel("j"),
        """
        parallel('j') is refused: parallel j would let two iterations combine into one element at once
          AT

            for i in M:
                for j in N:    # <-- here
                    row_sum[i] += x[i, j]

        Counterexample: j = 0 and j = 1 both read and write the same element of row_sum

        Try: j runs through a reduction: s.rfactor("j") gives each iteration its own partial result, which may then run in parallel or as vector lanes
        """,
    )
    s = start("row_sum")
    fused = s.fuse("i", "j")
    refused(
        s,
        lambda: s.parallel(fused),
        """
        parallel('i.j') is refused: iterations of i.j are not independent
          AT

            for i.j = (i, j) in (M, N):    # <-- here
                row_sum[i] += x[i, j]

        Counterexample: two iterations of serial loop i.j touch one element of row_sum
        sizes:  M = 1, N = 2
        loops:  i = 0, j = 0, i' = 0, j' = 1
                the update row_sum[i=0, j=0] writes row_sum[0]
                the update row_sum[i=0, j=1] writes row_sum[0]
        in:     row_sum[i] += x[i, j]

        Try: make a loop parallel that carries no dependence
        """,
    )
    s = start("row_sum")
    piece, _ = s.split(s.fuse("i", "j"), 4)
    refused(
        s,
        lambda: s.parallel(piece),
        """
        parallel('i.j.o') is refused: iterations of i.j.o are not independent
          AT

            for i.j.o in (M * N + 3) // 4:    # <-- here
                for i.j.i = (i, j) in (M, N)[4 * i.j.o : + 4]:
                    row_sum[i] += x[i, j]

        Counterexample: two iterations of serial loop i.j.o may touch one element of row_sum
        sizes:  M = 1, N = 2
        loops:  i = 0, j = 0, i' = 0, j' = 1
                the update row_sum[i=0, j=0] writes row_sum[0]
                the update row_sum[i=0, j=1] writes row_sum[0]
        in:     row_sum[i] += x[i, j]

        Try: make a loop parallel that carries no dependence
        """,
    )


def test_refused_recurrences():
    s = start("running_sum")
    refused(
        s,
        lambda: s.parallel("j"),
        """
        parallel('j') is refused: iterations of j are not independent
          AT

            for i in M:
                for j in N:    # <-- here
                    running_sum[i, j] = where(j > 0, running_sum[i, j - 1] + x[i, j], 0 + x[i, j])

        Counterexample: two iterations of serial loop j touch one element of running_sum
        sizes:  M = 1, N = 2
        loops:  i = 0, j = 0, j' = 1
                running_sum[i=0, j=0] writes running_sum[0, 0]
                running_sum[i=0, j=1] reads running_sum[0, 0]
        in:     running_sum[i, j] = where(j > 0, running_sum[i, j - 1] + x[i, j], 0 + x[i, j])

        Try: make a loop parallel that carries no dependence
        """,
    )


def test_refused_where_copies_are_shared():
    """Every iteration copies the whole row back: the last one would win."""
    s = start("row_sum")
    s.reorder("j", "i")
    s.cache_write("row_sum", at="j", scope="global")
    refused(
        s,
        lambda: s.parallel("j"),
        """
        parallel('j') is refused: parallel j would let two iterations combine into one element at once
          AT

            for j in N:    # <-- here
                row_sum.local = global f32[M]
                for i in M:
                    row_sum.local[i] = row_sum[i]
                for i in M:
                    row_sum.local[i] += x[i, j]
                for i in M:
                    row_sum[i] = row_sum.local[i]

        Counterexample: j = 0 and j = 1 both read and write the same element of row_sum.local

        Try: j runs through a reduction: s.rfactor("j") gives each iteration its own partial result, which may then run in parallel or as vector lanes
        """,
    )


def test_refused_nests():
    s = start("blur")
    s.compute_at("rows", "blur/i")
    s.parallel("blur/i")
    refused(
        s,
        lambda: s.parallel("rows/j"),
        """
        parallel('rows/j') is refused: i and j would be parallel loops one inside the other without being perfectly nested
          AT

            parallel for i in H:    # <-- here
                rows = global f32[3, W] at [i, 0]
                for i' in 3:
                    for j in W:    # <-- here
                        rows[i + i', j] = image[i + i', j] + image[i + i', j + 1] + image[i + i', j + 2]
                for j in W:
                    blur[i, j] = rows[i, j] + rows[i + 1, j] + rows[i + 2, j]

        Try: keep one of them serial, or reorder until they stand directly one inside the other (or fuse them first, and make the one loop parallel)
        """,
    )
    s = start("add", N=8)
    s.reorder("j", "i")
    s.vectorize("j")
    refused(
        s,
        lambda: s.parallel("i"),
        """
        parallel('i') is refused: i stands inside the vectorized loop j
          AT

            vectorized for j in 8:    # <-- here
                for i in M:    # <-- here
                    add[i, j] = A[i, j] + B[i, j]

        Try: make an outer loop parallel
        """,
    )
    s = start("add")
    s.parallel("i")
    refused(
        s,
        lambda: s.parallel("i"),
        """
        parallel('i') is refused: parallel needs a serial loop, and i is parallel
          AT

            parallel for i in M:    # <-- here
                for j in N:
                    add[i, j] = A[i, j] + B[i, j]

        Try: one choice a loop: s.undo() takes back the last step
        """,
    )
