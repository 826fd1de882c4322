"""cache_write: computed into a copy, written back; copied in where something is continued."""

# ruff: noqa: E501 - printed programs

from tests.schedule.checks import accepts, compiles, each, prints, refused, start


def test_program_after():
    s = start("matmul")
    outer, inner = s.split("i", 4)
    s.reorder(outer, "j", "k", inner)
    back = s.cache_write("matmul", at="j")
    assert back.name == "matmul.write"
    assert [loop.name for loop in back.loops] == ["i"]
    prints(
        s,
        """
        for i.o in (M + 3) // 4:
            for j in N:
                matmul.local = local f32[4, 1] at [4 * i.o, j]
                for k in K:
                    for i.i in 4:
                        matmul.local[4 * i.o + i.i, j] += A[4 * i.o + i.i, k] * B[k, j]  # if 4 * i.o + i.i < M
                for i in 4:
                    matmul[4 * i.o + i, j] = matmul.local[4 * i.o + i, j]  # if 4 * i.o + i < M
        """,
    )


def test_inside_the_reduction_the_copy_is_filled_first():
    s = accepts("matmul", lambda s: s.cache_write("matmul", at=s.split("k", 4)[0]), (0, 1, 4, 5))
    prints(
        s,
        """
        for i in M:
            for j in N:
                for k.o in (K + 3) // 4:
                    matmul.local = local f32[1, 1] at [i, j]
                    matmul.local[i, j] = matmul[i, j]
                    for k.i in 4:
                        matmul.local[i, j] += A[i, 4 * k.o + k.i] * B[4 * k.o + k.i, j]  # if 4 * k.o + k.i < K
                    matmul[i, j] = matmul.local[i, j]
        """,
    )


def test_accumulators_that_may_pass_through_many_copies():
    """Where N = 0, what goes into each copy comes out unchanged."""
    accepts(
        "grand_total", lambda s: s.cache_write("grand_total", at="i"), ({"M": 20, "N": 0}, 0, 3)
    )
    accepts(
        "conv2d_stride1_pad1", lambda s: s.cache_write("conv2d", at="c", scope="global"), (1, 2)
    )


def test_nested_copies_of_an_accumulator():
    def steps(s):
        s.reorder("i", "k", "j")
        s.cache_write("matmul", at="i", scope="global")
        s.cache_write("matmul", at=s.split("k", 2)[0], scope="global")

    s = accepts("matmul", steps, (0, 1, 2, 5))
    prints(
        s,
        """
        for i in M:
            matmul.local = global f32[1, N] at [i, 0]
            for k.o in (K + 1) // 2:
                matmul.local.local = global f32[1, N] at [i, 0]
                for j in N:
                    matmul.local.local[i, j] = matmul.local[i, j]
                for k.i in 2:
                    for j in N:
                        matmul.local.local[i, j] += A[i, 2 * k.o + k.i] * B[2 * k.o + k.i, j]  # if 2 * k.o + k.i < K
                for j in N:
                    matmul.local[i, j] = matmul.local.local[i, j]
            for j in N:
                matmul[i, j] = matmul.local[i, j]
        """,
    )


def test_the_copy_that_fills_an_accumulator_can_be_cached():
    def steps(s):
        s.reorder("k", "i", "j")
        s.cache_write("matmul", at="k", scope="global")
        s.cache_write("matmul.local", at="matmul.local/i", scope="global")

    accepts("matmul", steps, (0, 1, 2, 5))


def test_the_copy_back_can_be_cached_too():
    def steps(s):
        s.reorder("k", "i", "j")
        back = s.cache_write("matmul", at="k", scope="global")
        s.cache_write(back, at=s.split("matmul.write/i", 2)[0], scope="global")

    accepts("matmul", steps, (0, 1, 2, 5))


@each(
    "name",
    "stage",
    "loop",
    """
    double:double:i add:add:i argmax:argmax:i argmax:argmax:j sum_and_squares:linear:linear/i
    triangular:triangular:i triangular:triangular:j band:band:i ordered:ordered:j
    gather_rows:gather_rows:k total:total:i softmax:e:e/i half_sum:half_sum:half_sum/i
    two_outputs:shared:shared/i any_all:every:every/i
    """,
)
def test_every_kind_of_stage(name, stage, loop):
    accepts(name, lambda s: s.cache_write(stage, at=loop, scope="global"), (0, 1, 2, 5))


def test_a_recurrence_keeps_what_it_reads_of_itself():
    s = accepts(
        "running_sum", lambda s: s.cache_write("running_sum", at="i", scope="global"), (0, 1, 5)
    )
    prints(
        s,
        """
        for i in M:
            running_sum.local = global f32[1, N] at [i, 0]
            for j in N:
                running_sum.local[i, j] = where(j > 0, running_sum.local[i, j - 1] + x[i, j], 0 + x[i, j])
            for j in N:
                running_sum[i, j] = running_sum.local[i, j]
        """,
    )

    def blocks(s):
        outer, _ = s.split("j", 3)
        s.cache_write("running_sum", at=outer, scope="global")

    s = accepts("running_sum", blocks, (0, 1, 2, 3, 5))
    prints(
        s,
        """
        for i in M:
            for j.o in (N + 2) // 3:
                running_sum.local = global f32[1, 4] at [i, 3 * j.o - 1]
                for j in 4:
                    running_sum.local[i, 3 * j.o + j - 1] = running_sum[i, 3 * j.o + j - 1]  # if 3 * j.o + j - 1 >= 0 and 3 * j.o + j < N + 1
                for j.i in 3:
                    running_sum.local[i, 3 * j.o + j.i] = where((3 * j.o + j.i) > 0, running_sum.local[i, 3 * j.o + j.i - 1] + x[i, 3 * j.o + j.i], 0 + x[i, 3 * j.o + j.i])  # if 3 * j.o + j.i < N
                for j in 4:
                    running_sum[i, 3 * j.o + j - 1] = running_sum.local[i, 3 * j.o + j - 1]  # if 3 * j.o + j - 1 >= 0 and 3 * j.o + j < N + 1
        """,
    )


def test_a_box_with_holes_is_filled_first():
    """One iteration of i.i writes every fourth element of the box."""

    def steps(s):
        s.split("i", 4)
        s.reorder("i.i", "i.o")
        s.cache_write("double", at="i.i", scope="global")

    s = accepts("double", steps)
    prints(
        s,
        """
        for i.i in 4:
            double.local = global f32[4 * ((N + 3) // 4) - 3] at [i.i]
            for i in 4 * ((N + 3) // 4) - 3:
                double.local[i.i + i] = double[i.i + i]  # if i.i + i < N
            for i.o in (N + 3) // 4:
                double.local[4 * i.o + i.i] = x[4 * i.o + i.i] * 2  # if 4 * i.o + i.i < N
            for i in 4 * ((N + 3) // 4) - 3:
                double[i.i + i] = double.local[i.i + i]  # if i.i + i < N
        """,
    )


def test_a_diagonal_is_no_box():
    def steps(s):
        s.fuse("i", "j")
        s.cache_write("add", at=s.split("i.j", 5)[0], scope="global")

    accepts("add", steps, (0, 1, 4), N=4)


def test_a_triangle_keeps_its_padding():
    def steps(s):
        s.rfactor("j")
        s.cache_write("triangular.rf", at="triangular.rf/j", scope="global")

    accepts("triangular", steps, (0, 1, 2, 5))


def test_after_peel():
    def steps(s):
        s.peel(s.split("j", 4)[0])
        s.cache_write("row_sum", at="i", scope="global")

    accepts("row_sum", steps, (0, 1, 4, 5))


def test_compiled():
    def steps(s):
        outer, inner = s.split("i", 4)
        lanes = s.split("j", 8)
        s.reorder(outer, lanes[0], "k", inner, lanes[1])
        s.cache_write("matmul", at=lanes[0])

    compiles("matmul", steps)
    compiles(
        "running_sum", lambda s: s.cache_write("running_sum", at=s.split("j", 3)[0], scope="global")
    )


def test_the_copy_of_a_tuple():
    s = start("argmax")
    back = s.cache_write("argmax", at="i", scope="global")
    assert back.name == "argmax.value.write"
    assert [stage.name for stage in s.stages] == [
        "argmax.value",
        "argmax.value.write",
        "argmax.write",
    ]


def test_refused():
    s = start("softmax")
    refused(
        s,
        lambda: s.cache_write("e", at="total/i"),
        """
        cache_write('e', at='total/i') is refused: i does not hold e
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
            for i in M:    # <-- here
                for j in N:
                    total[i] += e[i, j]
            for i in M:
                for j in N:
                    softmax[i, j] = e[i, j] / total[i]

        Try: a loop around the stage
        """,
    )
    s = start("matmul")
    refused(
        s,
        lambda: s.cache_write("matmul", at="i"),
        """
        cache_write('matmul', at='i') is refused: the copy of matmul has the extents (1, N), and registers need constant ones
          AT

            for i in M:    # <-- here
                for j in N:
                    for k in K:
                        matmul[i, j] += A[i, k] * B[k, j]

        Try: split the loops so that one iteration touches a constant box, or fix the sizes
        """,
    )
    s = start("blur")
    s.compute_at("rows", "blur/i")
    refused(
        s,
        lambda: s.cache_write("rows", at="blur/i", scope="global"),
        """
        cache_write('rows', at='blur/i', scope='global') is refused: rows is allocated inside i
          AT

            for i in H:    # <-- here
                rows = global f32[3, W] at [i, 0]
                for i' in 3:
                    for j in W:
                        rows[i + i', j] = image[i + i', j] + image[i + i', j + 1] + image[i + i', j + 2]
                for j in W:
                    blur[i, j] = rows[i, j] + rows[i + 1, j] + rows[i + 2, j]

        Try: a loop inside the storage of the tensor
        """,
    )
    refused(
        s,
        lambda: s.cache_write("rows", at="rows/j", scope="cache"),
        """
        cache_write('rows', at='rows/j', scope='cache') is refused: there is no scope 'cache'
          AT

        Try: "global", "shared" or "local" (registers)
        """,
    )


def test_refused_places():
    s = start("add")
    outer, _ = s.split(s.fuse("i", "j"), 4)
    refused(
        s,
        lambda: s.cache_write("add", at=outer, scope="global"),
        """
        cache_write('add', at='i.j.o', scope='global') is refused: i.j.o runs over pieces of a fused loop, and nothing may stand between it and i.j.i
          AT

            for i.j.o in (M * N + 3) // 4:    # <-- here
                for i.j.i = (i, j) in (M, N)[4 * i.j.o : + 4]:    # <-- here
                    add[i, j] = A[i, j] + B[i, j]

        Try: cache_write before the fused loop is split; or fix the sizes: tl.schedule(op, N=1024)
        """,
    )
    s = start("add", N=8)
    s.vectorize("j")
    refused(
        s,
        lambda: s.cache_write("add", at="j"),
        """
        cache_write('add', at='j') is refused: cache_write would place storage inside the vectorized loop j, once for each lane
          AT

            for i in M:
                vectorized for j in 8:    # <-- here
                    add[i, j] = A[i, j] + B[i, j]

        Try: a loop around it, or cache_write before vectorize
        """,
    )


def test_refused_where_parallel_iterations_would_overwrite_each_other():
    s = start("double")
    s.split("i", 4)
    s.reorder("i.i", "i.o")
    s.parallel("i.i")
    refused(
        s,
        lambda: s.cache_write("double", at="i.i", scope="global"),
        """
        cache_write('double', at='i.i', scope='global') is refused: what double writes inside i.i is no box to be copied back
          AT

            parallel for i.i in 4:    # <-- here
                for i.o in (N + 3) // 4:
                    double[4 * i.o + i.i] = x[4 * i.o + i.i] * 2  # if 4 * i.o + i.i < N

        Counterexample: two iterations of parallel loop i.i touch one element of double
        sizes:  N = 8
        loops:  i.i = 0, i = 3, i.i' = 3, i' = 0
                the copy of double.local in double[i=3] writes double[3]
                the copy of double.local in double[i=3] writes double[3]
        in:     double[i.i + i] = double.local[i.i + i]  # if i.i + i < N

        Try: a loop further in or further out
        """,
    )
