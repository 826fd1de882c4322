"""split: every tail, every kind of stage, sizes around the factor; what it refuses."""

# ruff: noqa: E501 - printed programs

import numpy as np
import pytest

import tensorlang as tl
from tests.schedule.checks import accepts, compiles, each, prints, refused, start
from tests.schedule.operators import N, cube, double


def test_program_before_and_after():
    s = start("double")
    prints(
        s,
        """
        for i in N:
            double[i] = x[i] * 2
        """,
    )
    outer, inner = s.split("i", 6)
    assert (outer.name, outer.extent, inner.name, inner.extent) == (
        "i.o",
        "(N + 5) // 6",
        "i.i",
        "6",
    )
    prints(
        s,
        """
        for i.o in (N + 5) // 6:
            for i.i in 6:
                double[6 * i.o + i.i] = x[6 * i.o + i.i] * 2  # if 6 * i.o + i.i < N
        """,
    )


def test_a_fixed_extent_that_the_factor_divides_needs_no_guard():
    s = accepts("double", lambda s: s.split("i", 4), N=8)
    prints(
        s,
        """
        for i.o in 2:
            for i.i in 4:
                double[4 * i.o + i.i] = x[4 * i.o + i.i] * 2
        """,
    )


def test_a_second_split_adds_only_the_guard_that_it_needs():
    s = start("double")
    outer, _ = s.split("i", 4)
    s.split(outer, 3)
    prints(
        s,
        """
        for i.o.o in (N + 11) // 12:
            for i.o.i in 3:
                for i.i in 4:
                    double[i.i + 12 * i.o.o + 4 * i.o.i] = x[i.i + 12 * i.o.o + 4 * i.o.i] * 2  # if i.i + 12 * i.o.o + 4 * i.o.i < N
        """,
    )


@pytest.mark.parametrize("factor", [1, 2, 3, 8, 100])
@pytest.mark.parametrize("tail", ["auto", "guard", "peel", "mask", "exact"])
def test_tails(tail, factor):
    accepts("double", lambda s: s.split("i", factor, tail=tail))


@pytest.mark.parametrize("extent", [0, 1, 7, 8, 9])
def test_fixed_extents(extent):
    accepts("double", lambda s: s.split("i", 8), N=extent)


def test_exact_is_a_condition_at_the_call():
    s = start("double")
    s.split("i", 8, tail="exact")
    prints(
        s,
        """
        assume N % 8 == 0
        for i.o in N // 8:
            for i.i in 8:  # tail=exact
                double[8 * i.o + i.i] = x[8 * i.o + i.i] * 2
        """,
    )
    (condition,) = s.program.conditions
    assert condition.equality
    assert condition.message == ("N must be a multiple of 8, as split(i, 8, tail='exact') promised")
    s = start("double")
    s.assume(N % 8 == 0)
    s.split("i", 8)
    assert "if" not in str(s)


def test_padding_is_accepted_where_only_private_storage_sees_it():
    def steps(s):
        s.split("matmul/i", 4)
        s.cache_write("matmul", at="i.o", scope="global")
        s.split("matmul.write/j", 3)
        s.split("matmul.write/i", 3)

    accepts("matmul", steps)


@each(
    "name",
    "loop",
    """
    matmul:k matmul:i total:i grand_total:j conv2d_stride1_pad1:r argmax:j argmax:i
    sum_and_squares:linear/j triangular:i triangular:j band:i band:j ordered:j running_sum:j
    running_sum:i scan_line:sums/j gather:k gather:i gather_rows:j half_sum:acc/j any_all:some/j
    positive:j
    """,
)
def test_every_kind_of_stage(name, loop):
    sizes = (0, 1, 2, 3, 4) if name.startswith("conv") else (0, 1, 3, 4, 5)
    accepts(name, lambda s: s.split(loop.replace("acc/", "half_sum.acc/"), 4), sizes)


def test_fused_loops_split_into_pieces():
    def steps(s):
        s.split(s.fuse("i", "j"), 4)

    s = accepts("add", steps)
    prints(
        s,
        """
        for i.j.o in (M * N + 3) // 4:
            for i.j.i = (i, j) in (M, N)[4 * i.j.o : + 4]:
                add[i, j] = A[i, j] + B[i, j]
        """,
    )
    accepts("add", steps, M=3, N=5)
    accepts("matmul", lambda s: s.split(s.fuse("j", "k"), 3), N=2, K=3)


def test_after_other_steps():
    def steps(s):
        s.reorder("k", "i", "j")
        outer, inner = s.split("i", 4)
        s.reorder(outer, "k")
        s.cache_write("matmul", at=outer, scope="global")
        s.split(inner, 3)
        s.split("matmul.write/j", 2)
        s.split("k", 3)

    accepts("matmul", steps, (0, 1, 4, 5))


def test_compiled():
    compiles("matmul", lambda s: (s.split("i", 4), s.split("j", 8, tail="peel"), s.split("k", 3)))


def test_refused_factors():
    s = start("double")
    refused(
        s,
        lambda: s.split("i", 0),
        """
        split('i', 0) is refused: the factor 0 is not a positive number of iterations
          AT

            for i in N:    # <-- here
                double[i] = x[i] * 2

        Try: a factor of 1 or more
        """,
    )
    for factor in (-3, 2.0, True, "4"):
        with pytest.raises(tl.ScheduleError, match="is not a positive number of iterations"):
            s.split("i", factor)


def test_integers_of_numpy_are_factors():
    s = start("double")
    s.split("i", np.int64(4))
    assert s.trace[0].arguments == ("i", 4)
    assert type(s.trace[0].arguments[1]) is int
    tl.Schedule.from_json(s.to_json())


@pytest.mark.parametrize(("size", "parts", "blocks"), [(0, 3, 0), (1, 3, 1), (5, 4, 3), (12, 4, 4)])
def test_parts_give_the_least_factor_of_at_most_so_many_blocks(size, parts, blocks):
    s = start("double", N=size)
    outer, _ = s.split("i", parts=parts)
    assert outer.extent == str(blocks)
    assert s.to_python().splitlines()[1] == f"s.split('i', parts={parts})"
    accepts("double", lambda s: s.split("i", parts=parts), N=size)


def test_parts_follow_the_size_in_a_replay():
    s = start("double", N=12)
    s.split("i", parts=4)
    assert s.replay(N=40).loops[1].extent == "10"


def test_refused_parts():
    s = start("double")
    refused(
        s,
        lambda: s.split("i", parts=4),
        """
        split('i', parts=4) is refused: parts= needs a constant number of iterations to divide, and i has N
          AT

            for i in N:    # <-- here
                double[i] = x[i] * 2

        Try: a factor, or fixed sizes: tl.schedule(op, N=1024)
        """,
    )
    for parts in (0, 2.5, True):
        with pytest.raises(tl.ScheduleError, match="is no number of parts"):
            start("double", N=8).split("i", parts=parts)
    for given in ({}, {"factor": 4, "parts": 2}):
        with pytest.raises(TypeError, match="split takes a factor or parts="):
            start("double", N=8).split("i", **given)


def test_refused_tails():
    s = start("double", N=10)
    refused(
        s,
        lambda: s.split("i", 4, tail="exact"),
        """
        split('i', 4, tail='exact') is refused: 4 does not divide the extent 10 of i
          AT

            for i in 10:    # <-- here
                double[i] = x[i] * 2

        Counterexample: the last block would hold 2 of 4 iterations

        Try: a divisor of 10, or another tail: "auto" guards the last block
        """,
    )
    refused(
        s,
        lambda: s.split("i", 4, tail="round"),
        """
        split('i', 4, tail='round') is refused: there is no tail 'round'
          AT

        Try: one of auto, guard, peel, mask, shift, pad, exact
        """,
    )
    refused(
        s,
        lambda: s.split("i", 4, tail="pad"),
        """
        split('i', 4, tail='pad') is refused: iterations of i beyond 10 would be seen outside
          AT

            for i in 10:    # <-- here
                double[i] = x[i] * 2

        Counterexample: an access leaves the storage of double
        loops:  i.o = 2, i.i = 2
                double[i=10] writes double[10]
                the storage holds [0 <= . < 10]
        in:     double[4 * i.o + i.i] = x[4 * i.o + i.i] * 2

        Try: tail="guard", or give the padded iterations private storage first (cache_write)
        """,
    )


def test_exact_on_an_extent_that_no_call_can_check():
    s = start("triangular")
    s.peel("j")
    refused(
        s,
        lambda: s.split("triangular/j", 4, tail="exact"),
        """
        split('triangular/j', 4, tail='exact') is refused: the extent i + 1 of j changes with i, and no call can check what it is
          AT

            for i in N:
                triangular[i] = 0
                for j in i + 1:    # <-- here
                    triangular[i] += x[i, j]  # if j < i + 1
                for j.rest in N - i - 1:
                    triangular[i] += x[i, i + j.rest + 1]  # if j.rest < 0

        Try: another tail: "auto" guards the last block
        """,
    )


def test_parts_share_the_kind():
    """Blocks on threads, lanes within blocks, everything written out."""

    def steps(s):
        s.parallel("i")
        s.vectorize("j")
        s.split("i", 4)
        s.split("j", 4)

    s = accepts("add", steps, (0, 1, 5, 9), N=8)
    prints(
        s,
        """
        parallel for i.o in (M + 3) // 4:
            for i.i in 4:
                for j.o in 2:
                    vectorized for j.i in 4:
                        add[4 * i.o + i.i, 4 * j.o + j.i] = A[4 * i.o + i.i, 4 * j.o + j.i] + B[4 * i.o + i.i, 4 * j.o + j.i]  # if 4 * i.o + i.i < M
        """,
    )
    compiles("add", steps, N=10)
    s = accepts("add", lambda s: [s.unroll("j"), s.split("j", 3)], (0, 1, 5), N=8)
    assert [loop.kind for loop in s.loops] == ["serial", "unrolled", "unrolled"]
    s = accepts("add", lambda s: [s.parallel(s.fuse("i", "j")), s.split("i.j", 3)], (0, 1, 5))
    assert str(s.program).count("parallel") == 1


def test_refused_kinds():
    s = start("add", N=8)
    s.parallel("i")
    s.parallel("j")
    refused(
        s,
        lambda: s.split("i", 4),
        """
        split('i', 4) is refused: the parallel loops i and j run as one, and the blocks of i would stand between them
          AT

            parallel for i in M:    # <-- here
                parallel for j in 8:    # <-- here
                    add[i, j] = A[i, j] + B[i, j]

        Try: split first, and choose how the resulting loops run afterwards
        """,
    )
    s = start("add", N=8)
    s.vectorize("j")
    refused(
        s,
        lambda: s.split("j", 16),
        """
        split('j', 16) is refused: j has 8 lanes, and blocks of 16 would have more
          AT

            for i in M:
                vectorized for j in 8:    # <-- here
                    add[i, j] = A[i, j] + B[i, j]

        Try: a factor of 8 or less
        """,
    )


def test_refused_loops():
    s = start("add")
    s.bind("i", "block.x")
    refused(
        s,
        lambda: s.split("i", 4),
        """
        split('i', 4) is refused: split needs a serial loop, and i is block.x
          AT

            block.x for i in M:    # <-- here
                for j in N:
                    add[i, j] = A[i, j] + B[i, j]

        Try: split first, and choose how the resulting loops run afterwards
        """,
    )
    s = start("add")
    fused = s.fuse("i", "j")
    refused(
        s,
        lambda: s.split(fused, 4, tail="mask"),
        """
        split('i.j', 4, tail='mask') is refused: a fused loop over several variables has no tail 'mask'
          AT

            for i.j = (i, j) in (M, N):    # <-- here
                add[i, j] = A[i, j] + B[i, j]

        Try: tail="auto"
        """,
    )
    outer, inner = s.split(fused, 4)
    refused(
        s,
        lambda: s.split(inner, 2),
        """
        split('i.j.i', 2) is refused: i.j.i is a piece of a fused loop already
          AT

            for i.j.o in (M * N + 3) // 4:
                for i.j.i = (i, j) in (M, N)[4 * i.j.o : + 4]:    # <-- here
                    add[i, j] = A[i, j] + B[i, j]

        Try: fix the sizes (tl.schedule(op, N=1024)), or split before fusing
        """,
    )
    refused(
        s,
        lambda: s.split(outer, 2),
        """
        split('i.j.o', 2) is refused: i.j.o runs over pieces of a fused loop, and nothing may stand between it and i.j.i
          AT

            for i.j.o in (M * N + 3) // 4:    # <-- here
                for i.j.i = (i, j) in (M, N)[4 * i.j.o : + 4]:    # <-- here
                    add[i, j] = A[i, j] + B[i, j]

        Try: split before the fused loop is split; or fix the sizes: tl.schedule(op, N=1024)
        """,
    )


def test_a_loop_of_another_schedule():
    other = tl.schedule(cube)
    s = tl.schedule(double)
    refused(
        s,
        lambda: s.split(other.loops[0], 2),
        """
        split('a', 2) is refused: a is a loop of another schedule
          AT

        Try: a loop of this one: double/i
        """,
    )
    refused(
        s,
        lambda: s.split(3, 2),
        """
        split(3, 2) is refused: 3 is no loop
          AT

        Try: a handle from s.loops or a split, or a path such as "i"
        """,
    )


# --- the shifted block ------------------------------------------------------------------------


@pytest.mark.parametrize("factor", [1, 2, 3, 8])
def test_shift(factor):
    accepts("double", lambda s: s.split("i", factor, tail="shift"))
    accepts("blur", lambda s: s.split("rows/i", factor, tail="shift"), (0, 1, 5, 9))
    compiles("add", lambda s: s.split("j", factor, tail="shift"), (0, 1, 5, 9))


def test_a_recurrence_computes_the_same_again():
    accepts("scan_line", lambda s: s.split("sums/j", 4, tail="shift"), (0, 1, 5, 9))


@pytest.mark.parametrize("extent", [0, 1, 7, 8, 9, 16])
def test_shift_of_fixed_extents(extent):
    accepts("double", lambda s: s.split("i", 8, tail="shift"), N=extent)


def test_shifted_vectors_are_full():
    def steps(s):
        _, inner = s.split("i", 8, tail="shift")
        s.vectorize(inner)

    s = accepts("double", steps, N=20)
    prints(
        s,
        """
        for i.o in 3:
            vectorized for i.i in 8:  # tail=shift
                double[i.i + min(8 * i.o, 12)] = x[i.i + min(8 * i.o, 12)] * 2
        """,
    )
    compiles("double", steps, (0, 1, 7, 8, 9, 15, 100))
    assert "mask" not in tl.compile(s).source("llvm")


def test_shift_refused():
    s = start("matmul")
    refused(
        s,
        lambda: s.split("i", 4, tail="shift"),
        """
        split('i', 4, tail='shift') is refused: the shifted block would combine into matmul again
          AT

            for i in M:    # <-- here
                for j in N:
                    for k in K:
                        matmul[i, j] += A[i, k] * B[k, j]    # <-- here

        Try: another tail, or split the loops of a copy: cache_write("matmul", ...)
        """,
    )
    with pytest.raises(tl.ScheduleError, match="combine into matmul again"):
        s.split("k", 4, tail="shift")


def test_shifted_blocks_are_not_independent():
    s = start("double")
    outer, _ = s.split("i", 8, tail="shift")
    with pytest.raises(tl.ScheduleError, match=r"iterations of i\.o are not independent"):
        s.parallel(outer)
