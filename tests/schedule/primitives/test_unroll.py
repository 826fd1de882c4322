"""unroll: the body written out, always legal, within reason."""

# ruff: noqa: E501 - printed programs

import pytest

from tests.schedule.checks import accepts, compiles, each, prints, refused, start


def test_program_after():
    s = start("row_sum", N=4)
    s.unroll("j")
    prints(
        s,
        """
        for i in M:
            unrolled for j in 4:
                row_sum[i] += x[i, j]
        """,
    )
    s = start("row_sum")
    s.unroll("j", factor=4)
    prints(
        s,
        """
        for i in M:
            for j.o in (N + 3) // 4:
                unrolled for j.i in 4:
                    row_sum[i] += x[i, 4 * j.o + j.i]  # if 4 * j.o + j.i < N
        """,
    )
    assert [str(step) for step in s.trace] == ["unroll('j', factor=4)"]


@each(
    "name",
    "loop",
    """
    double:i matmul:k matmul:i argmax:j running_sum:j ordered:j gather:gather/k triangular:j
    band:j sum_and_squares:linear/j total:i
    """,
)
def test_every_kind_of_stage(name, loop):
    accepts(name, lambda s: s.unroll(loop, factor=3), (0, 1, 2, 3, 4))


@pytest.mark.parametrize("extent", [0, 1, 5])
def test_fixed_extents(extent):
    accepts("matmul", lambda s: s.unroll("k"), (0, 1, 3), K=extent)


def test_nested():
    def steps(s):
        s.unroll("i", factor=2)
        s.unroll("j", factor=3)
        s.unroll("k", factor=2)

    accepts("matmul", steps, (0, 1, 4, 5))


def test_a_fused_loop_of_fixed_sizes():
    accepts("add", lambda s: s.unroll(s.fuse("i", "j")), M=2, N=3)


def test_the_pieces_of_a_fused_loop():
    def steps(s):
        s.unroll(s.split(s.fuse("j", "k"), 5)[0])

    accepts("matmul", steps, (0, 1, 3), N=3, K=4)
    compiles("matmul", steps, N=3, K=4)


def test_compiled():
    compiles("matmul", lambda s: (s.unroll("i", factor=2), s.unroll("k", factor=3)))


def test_refused():
    s = start("row_sum")
    refused(
        s,
        lambda: s.unroll("j"),
        """
        unroll('j') is refused: unroll needs a constant number of iterations, and j has N
          AT

            for i in M:
                for j in N:    # <-- here
                    row_sum[i] += x[i, j]

        Try: split first: outer, inner = s.split("j", 4); s.unroll(inner)
        """,
    )
    refused(
        s,
        lambda: s.unroll("j", factor=0),
        """
        unroll('j', factor=0) is refused: the factor 0 is not a positive number of iterations
          AT

            for i in M:
                for j in N:    # <-- here
                    row_sum[i] += x[i, j]

        Try: a factor of 1 or more
        """,
    )
    s = start("row_sum", M=100, N=100)
    s.unroll("j")
    refused(
        s,
        lambda: s.unroll("i"),
        """
        unroll('i') is refused: unrolling i would write out 10000 statements
          AT

            for i in 100:    # <-- here
                unrolled for j in 100:
                    row_sum[i] += x[i, j]

        Try: s.split("i", 8) first, then unroll the inner loop
        """,
    )
    refused(
        s,
        lambda: s.unroll("j"),
        """
        unroll('j') is refused: unroll needs a serial loop, and j is unrolled
          AT

            for i in 100:
                unrolled for j in 100:    # <-- here
                    row_sum[i] += x[i, j]

        Try: one choice a loop: s.undo() takes back the last step
        """,
    )


def test_a_factor_is_refused_as_a_whole():
    s = start("add")
    fused = s.fuse("i", "j")
    refused(
        s,
        lambda: s.unroll(fused, factor=4),
        """
        unroll('i.j', factor=4) is refused: unroll needs a loop over one variable, and i.j runs over (i, j)
          AT

            for i.j = (i, j) in (M, N):    # <-- here
                add[i, j] = A[i, j] + B[i, j]

        Try: unroll before fuse; loops of one stage's axes fuse to one variable if the sizes are fixed: tl.schedule(op, N=1024)
        """,
    )
    s = start("row_sum")
    refused(
        s,
        lambda: s.unroll("j", factor=5000),
        """
        unroll('j', factor=5000) is refused: unrolling j.i would write out 5000 statements
          AT

            for i in M:
                for j in N:    # <-- here
                    row_sum[i] += x[i, j]

        Try: a smaller factor
        """,
    )
