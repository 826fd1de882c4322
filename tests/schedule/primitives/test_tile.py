"""tile: several splits and one reorder, refused where those are."""

# ruff: noqa: E501 - printed programs

import pytest

from tests.schedule.checks import accepts, compiles, prints, refused, start


def test_program_after():
    s = start("add")
    loops = s.tile(["i", "j"], [2, 3])
    assert [loop.name for loop in loops] == ["i.o", "j.o", "i.i", "j.i"]
    prints(
        s,
        """
        for i.o in (M + 1) // 2:
            for j.o in (N + 2) // 3:
                for i.i in 2:
                    for j.i in 3:
                        add[2 * i.o + i.i, 3 * j.o + j.i] = A[2 * i.o + i.i, 3 * j.o + j.i] + B[2 * i.o + i.i, 3 * j.o + j.i]  # if 2 * i.o + i.i < M and 3 * j.o + j.i < N
        """,
    )


@pytest.mark.parametrize("tail", ["auto", "guard", "peel", "mask", "exact"])
def test_tails(tail):
    accepts("add", lambda s: s.tile(["i", "j"], [4, 3], tail=tail))


@pytest.mark.parametrize("sizes", [(1, 1, 1), (2, 3, 4), (8, 8, 8)])
def test_a_reduction_is_tiled_with_its_data(sizes):
    accepts("matmul", lambda s: s.tile(["i", "j", "k"], sizes), (0, 1, 4, 7, 9))


def test_one_loop_and_loops_in_another_order():
    accepts("double", lambda s: s.tile(["i"], [4]))
    s = accepts("add", lambda s: s.tile(["j", "i"], [4, 2]))
    assert [loop.name for loop in s.loops] == ["j.o", "i.o", "j.i", "i.i"]


@pytest.mark.parametrize("name", ["transpose", "argmax", "triangular", "band", "gather_rows"])
def test_every_kind_of_stage(name):
    accepts(name, lambda s: s.tile([loop.variable.name for loop in s.loops], [2, 3]), (0, 1, 2, 5))


def test_rows_of_a_scan():
    accepts("running_sum", lambda s: s.tile(["i", "j"], [2, 3]), (0, 1, 2, 5))


def test_compiled():
    compiles("matmul", lambda s: s.tile(["i", "j", "k"], [4, 8, 3]))


def test_refused():
    s = start("add")
    refused(
        s,
        lambda: s.tile(["i", "j"], [2]),
        """
        tile(['i', 'j'], [2]) is refused: 2 loops are given and 1 sizes
          AT

            for i in M:    # <-- here
                for j in N:    # <-- here
                    add[i, j] = A[i, j] + B[i, j]

        Try: one size a loop: s.tile([i, j], [32, 64])
        """,
    )
    refused(
        s,
        lambda: s.tile([], []),
        """
        tile([], []) is refused: 0 loops are given and 0 sizes
          AT

        Try: one size a loop: s.tile([i, j], [32, 64])
        """,
    )
    refused(
        s,
        lambda: s.tile(["i", "i"], [2, 2]),
        """
        tile(['i', 'i'], [2, 2]) is refused: i is named twice
          AT

            for i in M:    # <-- here
                for j in N:
                    add[i, j] = A[i, j] + B[i, j]

        Try: each loop once
        """,
    )
    refused(
        s,
        lambda: s.tile(["i", "j"], [2, 0]),
        """
        tile(['i', 'j'], [2, 0]) is refused: the factor 0 is not a positive number of iterations
          AT

            for i in M:
                for j in N:    # <-- here
                    add[i, j] = A[i, j] + B[i, j]

        Try: a factor of 1 or more
        """,
    )


def test_an_order_that_a_dependence_forbids():
    s = start("ordered")
    s.split("j", 4)
    refused(
        s,
        lambda: s.tile(["j.o", "j.i"], [2, 2]),
        """
        tile(['j.o', 'j.i'], [2, 2]) is refused: the order j.o.o, j.i.o, j.o.i, j.i.i breaks a dependence
          AT

            for i in M:
                for j.o in (N + 3) // 4:
                    for j.i in 4:
                        ordered[i] = custom(ordered[i]; x[i, 4 * j.o + j.i])  # if 4 * j.o + j.i < N

        Counterexample: the ordered reduction ordered runs out of order
        sizes:  M = 1, N = 7
        loops:  i = 0, j.o.o = 0, j.i.o = 1, j.o.i = 0, j.i.i = 0, i' = 0, j.o.o' = 0, j.i.o' = 0, j.o.i' = 1, j.i.i' = 1
                the update ordered[i=0, j=2]
                continues the update ordered[i=0, j=5]
        in:     ordered[i] = custom(ordered[i]; x[i, 8 * j.o.o + 4 * j.o.i + 2 * j.i.o + j.i.i])  # if 8 * j.o.o + 4 * j.o.i + 2 * j.i.o + j.i.i < N

        Try: keep the loops that carry the dependence in their order
        """,
    )
