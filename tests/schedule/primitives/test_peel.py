"""peel: the full blocks without guards, the rest apart."""

# ruff: noqa: E501 - printed programs

from tests.schedule.checks import accepts, compiles, each, prints, refused, start


def test_program_after():
    s = start("double")
    outer, _ = s.split("i", 6)
    main, rest = s.peel(outer)
    assert (main.name, main.extent, rest.name) == ("i.o", "N // 6", "i.o.rest")
    assert main == outer
    prints(
        s,
        """
        for i.o in N // 6:
            for i.i in 6:
                double[6 * i.o + i.i] = x[6 * i.o + i.i] * 2
        for i.o.rest in -(N // 6) + (N + 5) // 6:
            for i.i in 6:
                double[6 * i.o.rest + i.i + 6 * (N // 6)] = x[6 * i.o.rest + i.i + 6 * (N // 6)] * 2  # if 6 * i.o.rest + i.i + 6 * (N // 6) < N
        """,
    )


def test_a_reduction_is_begun_before_both_parts():
    s = accepts("row_sum", lambda s: s.peel(s.split("j", 4)[0]))
    prints(
        s,
        """
        for i in M:
            row_sum[i] = 0
            for j.o in N // 4:
                for j.i in 4:
                    row_sum[i] += x[i, 4 * j.o + j.i]
            for j.o.rest in -(N // 4) + (N + 3) // 4:
                for j.i in 4:
                    row_sum[i] += x[i, 4 * j.o.rest + j.i + 4 * (N // 4)]  # if 4 * j.o.rest + j.i + 4 * (N // 4) < N
        """,
    )


@each(
    "name",
    "loop",
    """
    matmul:i matmul:k argmax:j argmax:i running_sum:j running_sum:i ordered:j gather_rows:j
    sum_and_squares:linear/j triangular:i any_all:every/j half_sum:half_sum/i
    """,
)
def test_every_kind_of_stage(name, loop):
    accepts(name, lambda s: s.peel(s.split(loop, 4)[0]), (0, 1, 3, 4, 5, 9))


def test_a_predicate_is_a_tail_too():
    s = accepts("triangular", lambda s: s.peel("j"), (0, 1, 2, 5))
    prints(
        s,
        """
        for i in N:
            triangular[i] = 0
            for j in i + 1:
                triangular[i] += x[i, j]  # if j < i + 1
            for j.rest in N - i - 1:
                triangular[i] += x[i, i + j.rest + 1]  # if j.rest < 0
        """,
    )


def test_both_parts_can_be_scheduled_further():
    def steps(s):
        outer, _ = s.split("j", 4)
        s.peel(outer)
        s.split("i", 3)
        s.unroll("add/j.i#2")
        s.split("j.o", 2)

    accepts("add", steps, (0, 1, 4, 5, 9))


def test_two_tails_one_after_the_other():
    def steps(s):
        s.tile(["i", "j"], [2, 4])
        s.peel("i.o")
        s.peel("j.o#1")
        s.peel("j.o#2")

    accepts("add", steps, (0, 1, 2, 5))


def test_every_part_of_a_peeled_nest_is_begun_once():
    def steps(s):
        s.reorder("k", "j")
        s.tile(["k", "j"], [3, 4])
        s.peel("j.o")
        s.peel("k.o")

    accepts("matmul", steps, (0, 1, 4, 5, 9))


def test_compiled():
    compiles("matmul", lambda s: s.peel(s.split("k", 4)[0]))
    compiles("double", lambda s: s.peel(s.split("i", 8)[0]))


def test_refused_without_a_tail():
    s = start("double")
    refused(
        s,
        lambda: s.peel("i"),
        """
        peel('i') is refused: no guard depends on i: it has no tail
          AT

            for i in N:    # <-- here
                double[i] = x[i] * 2

        Try: the outer loop of a split whose factor does not divide the extent
        """,
    )
    s = start("double", N=16)
    outer, _ = s.split("i", 8)
    refused(
        s,
        lambda: s.peel(outer),
        """
        peel('i.o') is refused: no guard depends on i.o: it has no tail
          AT

            for i.o in 2:    # <-- here
                for i.i in 8:
                    double[8 * i.o + i.i] = x[8 * i.o + i.i] * 2

        Try: the outer loop of a split whose factor does not divide the extent
        """,
    )


def test_refused_with_several_tails():
    s = start("double")
    outer, inner = s.split("i", 6)
    s.split(inner, 4)
    outer, _ = s.split(outer, 3)
    refused(
        s,
        lambda: s.peel(outer),
        """
        peel('i.o.o') is refused: the full iterations of i.o.o cannot be counted
          AT

            for i.o.o in (N + 17) // 18:    # <-- here
                for i.o.i in 3:
                    for i.i.o in 2:
                        for i.i.i in 4:
                            double[4 * i.i.o + i.i.i + 18 * i.o.o + 6 * i.o.i] = x[4 * i.i.o + i.i.i + 18 * i.o.o + 6 * i.o.i] * 2  # if 4 * i.i.o + i.i.i + 18 * i.o.o + 6 * i.o.i < N and 4 * i.i.o + i.i.i < 6

        Counterexample: an access leaves the storage of double
        sizes:  N = 0
        loops:  i.o.o.rest = 0, i.o.i = 0, i.i.o = 0, i.i.i = 0
                double[i=-18] writes double[-18]
                the storage holds [0 <= . < 0]
        in:     double[18 * i.o.o.rest + 6 * i.o.i + 4 * i.i.o + i.i.i + 18 * ((N + 16) // 18) - 18] = x[18 * i.o.o.rest + 6 * i.o.i + 4 * i.i.o + i.i.i + 18 * ((N + 16) // 18) - 18] * 2  # if 18 * i.o.o.rest + 6 * i.o.i + 4 * i.i.o + i.i.i + 18 * ((N + 16) // 18) < N + 18 and 4 * i.i.o + i.i.i < 6

        Try: peel the outer loop of a split before either of its loops is split again
        """,
    )


def test_refused_with_storage_or_fused_loops_inside():
    s = start("matmul")
    outer, _ = s.split("i", 4)
    s.cache_read("A", at=outer)
    refused(
        s,
        lambda: s.peel(outer),
        """
        peel('i.o') is refused: A.local is allocated inside i.o
          AT

            for i.o in (M + 3) // 4:    # <-- here
                A.local = global f32[4, K] at [4 * i.o, 0]
                for i in 4:
                    for j in K:
                        A.local[4 * i.o + i, j] = A[4 * i.o + i, j]  # if 4 * i.o + i < M
                for i.i in 4:
                    for j in N:
                        for k in K:
                            matmul[4 * i.o + i.i, j] += A.local[4 * i.o + i.i, k] * B[k, j]  # if 4 * i.o + i.i < M

        Try: peel before compute_at, cache_read, cache_write and fuse
        """,
    )
    s = start("matmul")
    outer, _ = s.split("i", 4)
    s.fuse("j", "k")
    refused(
        s,
        lambda: s.peel(outer),
        """
        peel('i.o') is refused: a loop is fused inside i.o
          AT

            for i.o in (M + 3) // 4:    # <-- here
                for i.i in 4:
                    for j.k = (j, k) in (N, K):
                        matmul[4 * i.o + i.i, j] += A[4 * i.o + i.i, k] * B[k, j]  # if 4 * i.o + i.i < M

        Try: peel before compute_at, cache_read, cache_write and fuse
        """,
    )
    s = start("double")
    outer, _ = s.split("i", 4)
    s.parallel(outer)
    refused(
        s,
        lambda: s.peel(outer),
        """
        peel('i.o') is refused: peel needs a serial loop, and i.o is parallel
          AT

            parallel for i.o in (N + 3) // 4:    # <-- here
                for i.i in 4:
                    double[4 * i.o + i.i] = x[4 * i.o + i.i] * 2  # if 4 * i.o + i.i < N

        Try: peel first, and choose how the resulting loops run afterwards
        """,
    )
