"""vectorize: a constant number of independent iterations become lanes."""

# ruff: noqa: E501 - printed programs

import pytest

from tests.schedule.checks import accepts, compiles, each, prints, refused, start


def test_program_after():
    s = start("double")
    _, inner = s.split("i", 8)
    s.vectorize(inner)
    prints(
        s,
        """
        for i.o in (N + 7) // 8:
            vectorized for i.i in 8:
                double[8 * i.o + i.i] = x[8 * i.o + i.i] * 2  # if 8 * i.o + i.i < N
        """,
    )


@each(
    "name",
    "loop",
    """
    double:i add:j transpose:i positive:j matmul:j row_sum:i argmax:i triangular:i band:i
    running_sum:i gather:gather/k gather_rows:k ordered:i smooth:smooth/i half_sum:half_sum/i
    add_scalar:i
    """,
)
def test_every_kind_of_stage(name, loop):
    accepts(name, lambda s: s.vectorize(s.split(loop, 4)[1]), (0, 1, 3, 4, 5))


@pytest.mark.parametrize("extent", [0, 1, 7, 16])
def test_fixed_extents(extent):
    accepts("add", lambda s: s.vectorize("j"), (0, 1, 3), N=extent)


@pytest.mark.parametrize("tail", ["auto", "guard", "peel", "mask", "exact"])
def test_tails(tail):
    accepts("double", lambda s: s.vectorize(s.split("i", 4, tail=tail)[1]))


def test_loops_inside_and_around():
    def steps(s):
        outer, inner = s.split("i", 4)
        s.parallel(outer)
        s.vectorize(inner)  # with the loops over j and k inside

    accepts("matmul", steps, (0, 1, 4, 5))


def test_lanes_of_an_rfactor():
    def steps(s):
        _, lane = s.split("total/i", 4)
        s.rfactor(lane)
        s.vectorize(lane)

    accepts("total", steps)


def test_compiled():
    compiles("double", lambda s: s.vectorize(s.split("i", 8)[1]))
    compiles("matmul", lambda s: s.vectorize(s.split("j", 8)[1]))


def test_refused_extents():
    s = start("double")
    refused(
        s,
        lambda: s.vectorize("i"),
        """
        vectorize('i') is refused: vectorize needs a constant number of iterations, and i has N
          AT

            for i in N:    # <-- here
                double[i] = x[i] * 2

        Try: split first: outer, inner = s.split("i", 16); s.vectorize(inner)
        """,
    )
    s = start("double", N=1000)
    refused(
        s,
        lambda: s.vectorize("i"),
        """
        vectorize('i') is refused: 1000 lanes of 32 bits are more than sixteen vector registers hold
          AT

            for i in 1000:    # <-- here
                double[i] = x[i] * 2

        Try: s.split("i", 64) first, then vectorize the inner loop
        """,
    )
    s = start("add")
    fused = s.fuse("i", "j")
    refused(
        s,
        lambda: s.vectorize(fused),
        """
        vectorize('i.j') is refused: vectorize needs a loop over one variable, and i.j runs over (i, j)
          AT

            for i.j = (i, j) in (M, N):    # <-- here
                add[i, j] = A[i, j] + B[i, j]

        Try: vectorize before fuse; loops of one stage's axes fuse to one variable if the sizes are fixed: tl.schedule(op, N=1024)
        """,
    )


def test_refused_pieces():
    s = start("matmul", M=2, N=3, K=4)
    outer, _ = s.split(s.fuse("j", "k"), 4)
    refused(
        s,
        lambda: s.vectorize(outer),
        """
        vectorize('j.k.o') is refused: j.k.o runs over pieces of a fused loop, and nothing may stand between it and j.k.i
          AT

            for i in 2:
                for j.k.o in 3:    # <-- here
                    for j.k.i = (j, k) in (3, 4)[4 * j.k.o : + 4]:    # <-- here
                        matmul[i, j] += A[i, k] * B[k, j]

        Try: vectorize before the fused loop is split; or fix the sizes: tl.schedule(op, N=1024)
        """,
    )


def test_refused_dependences():
    s = start("row_sum", N=8)
    refused(
        s,
        lambda: s.vectorize("j"),
        """
        vectorize('j') is refused: vectorize j would let two iterations combine into one element at once
          AT

            for i in M:
                for j in 8:    # <-- here
                    row_sum[i] += x[i, j]

        Counterexample: j = 0 and j = 1 both read and write the same element of row_sum

        Try: j runs through a reduction: s.rfactor("j") gives each iteration its own partial result, which may then run in parallel or as vector lanes
        """,
    )
    s = start("running_sum", N=8)
    refused(
        s,
        lambda: s.vectorize("j"),
        """
        vectorize('j') is refused: iterations of j are not independent
          AT

            for i in M:
                for j in 8:    # <-- here
                    running_sum[i, j] = where(j > 0, running_sum[i, j - 1] + x[i, j], 0 + x[i, j])

        Counterexample: two iterations of serial loop j touch one element of running_sum
        sizes:  M = 1
        loops:  i = 0, j = 6, j' = 7
                running_sum[i=0, j=6] writes running_sum[0, 6]
                running_sum[i=0, j=7] reads running_sum[0, 6]
        in:     running_sum[i, j] = where(j > 0, running_sum[i, j - 1] + x[i, j], 0 + x[i, j])

        Try: vectorize a loop that carries no dependence
        """,
    )


def test_refused_nests():
    s = start("add", M=4, N=8)
    s.vectorize("j")
    refused(
        s,
        lambda: s.vectorize("i"),
        """
        vectorize('i') is refused: i and the vectorized loop j would be nested
          AT

            for i in 4:    # <-- here
                vectorized for j in 8:    # <-- here
                    add[i, j] = A[i, j] + B[i, j]

        Try: vectorize one loop of a nest, the one along contiguous memory
        """,
    )
    refused(
        s,
        lambda: s.vectorize("j"),
        """
        vectorize('j') is refused: vectorize needs a serial loop, and j is vectorized
          AT

            for i in 4:
                vectorized for j in 8:    # <-- here
                    add[i, j] = A[i, j] + B[i, j]

        Try: one choice a loop: s.undo() takes back the last step
        """,
    )
    s = start("blur", H=4)
    s.compute_at("rows", "blur/i")
    refused(
        s,
        lambda: s.vectorize("blur/i"),
        """
        vectorize('blur/i') is refused: rows is allocated inside i, once for each lane
          AT

            for i in 4:    # <-- here
                rows = global f32[3, W] at [i, 0]
                for i' in 3:
                    for j in W:
                        rows[i + i', j] = image[i + i', j] + image[i + i', j + 1] + image[i + i', j + 2]
                for j in W:
                    blur[i, j] = rows[i, j] + rows[i + 1, j] + rows[i + 2, j]

        Try: vectorize the loops of the stages inside instead
        """,
    )
