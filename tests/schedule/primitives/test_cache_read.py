"""cache_read: what one iteration reads is copied first."""

# ruff: noqa: E501 - printed programs

from tests.schedule.checks import accepts, compiles, each, prints, refused, start


def test_program_after():
    s = start("matmul")
    copy = s.cache_read("B", at="i")
    assert copy.name == "B.local"
    prints(
        s,
        """
        for i in M:
            B.local = global f32[K, N]
            for i' in K:
                for j in N:
                    B.local[i', j] = B[i', j]
            for j in N:
                for k in K:
                    matmul[i, j] += A[i, k] * B.local[k, j]
        """,
    )


def test_the_box_that_an_iteration_reads_is_clipped():
    def steps(s):
        outer, _ = s.split("j", 4)
        s.cache_read("B", at=outer)

    s = accepts("matmul", steps, (0, 1, 3, 4, 5))
    prints(
        s,
        """
        for i in M:
            for j.o in (N + 3) // 4:
                B.local = global f32[K, 4] at [0, 4 * j.o]
                for i' in K:
                    for j in 4:
                        B.local[i', 4 * j.o + j] = B[i', 4 * j.o + j]  # if 4 * j.o + j < N
                for j.i in 4:
                    for k in K:
                        matmul[i, 4 * j.o + j.i] += A[i, k] * B.local[k, 4 * j.o + j.i]  # if 4 * j.o + j.i < N
        """,
    )


def test_at_the_outermost_level():
    s = accepts("matmul", lambda s: s.cache_read("A"), (0, 1, 2, 5))
    prints(
        s,
        """
        A.local = global f32[M, K]
        for i in M:
            for j in K:
                A.local[i, j] = A[i, j]
        for i in M:
            for j in N:
                for k in K:
                    matmul[i, j] += A.local[i, k] * B[k, j]
        """,
    )
    accepts("chain", lambda s: s.cache_read("first"), (0, 1, 2, 5))


@each(
    "name",
    "tensor",
    "loop",
    """
    blur:image:rows/i blur:rows:blur/i smooth:x:h/i smooth:h:smooth/i
    every_second:pairs:every_second/i argmax:x:i triangular:x:i triangular:x:j band:x:i
    running_sum:x:i gather:doubled:gather/k gather:table:gather/k gather_rows:x:k
    half_sum:x:half_sum.acc/i transpose:A:j softmax:e:total/i
    """,
)
def test_every_kind_of_reader(name, tensor, loop):
    accepts(name, lambda s: s.cache_read(tensor, at=loop), (0, 1, 2, 5))


def test_scopes_and_copies_of_copies():
    def steps(s):
        _, j, k, *_ = s.tile(["i", "j", "k"], [2, 3, 2])
        outer = s.cache_read("A", at=j, scope="shared")
        s.cache_read(outer, at=k, scope="local")
        s.cache_read("B", at=k, scope="local")

    s = accepts("matmul", steps, (0, 1, 2, 5))
    assert [stage.name for stage in s.stages] == ["matmul", "A.shared", "A.shared.local", "B.local"]


def test_copies_are_scheduled_like_any_stage():
    def steps(s):
        copy = s.cache_read("B", at="i")
        s.split(copy.loops[1], 4)
        assert [loop.name for loop in copy.loops] == ["i", "j.o", "j.i"]
        s.reorder("B.local/j.o", "B.local/i")
        s.parallel("matmul/i")

    accepts("matmul", steps, (0, 1, 4, 5))


def test_fused_loops():
    accepts("matmul", lambda s: s.cache_read("A", at=s.fuse("i", "j")), (0, 1, 3))
    accepts("matmul", lambda s: s.cache_read("A", at=s.fuse("i", "j")), (0, 1, 3), N=4)

    def piece(s):
        _, inner = s.split(s.fuse("i", "j"), 3)
        s.cache_read("A", at=inner)

    accepts("matmul", piece, (0, 1, 3))


def test_of_a_tile_that_is_kept_in_part():
    """A block of 2 * 3 reads a tile of 5: the copy stays within what there is."""

    def steps(s):
        block, _ = s.split("i", 5)
        s.cache_write("row_sum", at=block)
        s.split("row_sum.write/i", 3)
        s.cache_read("row_sum.local", at=s["row_sum.write"].loops[1], scope="local")

    s = accepts("row_sum", steps, (0, 1, 5, 6))
    assert s.verify().ok


def test_compiled():
    compiles("matmul", lambda s: s.cache_read("B", at=s.split("j", 4)[0]))


def test_refused_tensors():
    s = start("softmax")
    refused(
        s,
        lambda: s.cache_read("X", at="softmax/i"),
        """
        cache_read('X', at='softmax/i') is refused: nothing inside i reads X
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
                for j in N:
                    total[i] += e[i, j]
            for i in M:    # <-- here
                for j in N:
                    softmax[i, j] = e[i, j] / total[i]

        Try: a tensor that the loop's body reads, by the name it has there
        """,
    )
    refused(
        s,
        lambda: s.cache_read("Q", at="softmax/i"),
        """
        cache_read('Q', at='softmax/i') is refused: there is no tensor 'Q'
          AT

        Try: one of X, top, e, total, softmax
        """,
    )
    s = start("running_sum")
    refused(
        s,
        lambda: s.cache_read("running_sum", at="i"),
        """
        cache_read('running_sum', at='i') is refused: running_sum is written inside i, after it would be copied
          AT

            for i in M:    # <-- here
                for j in N:
                    running_sum[i, j] = where(j > 0, running_sum[i, j - 1] + x[i, j], 0 + x[i, j])    # <-- here

        Try: a loop that only reads the tensor, further in
        """,
    )


def test_refused_where_there_is_no_storage():
    s = start("blur")
    s.compute_at("rows", "blur/i")
    refused(
        s,
        lambda: s.cache_read("rows", at="blur/i"),
        """
        cache_read('rows', at='blur/i') is refused: rows is written inside i, after it would be copied
          AT

            for i in H:    # <-- here
                rows = global f32[3, W] at [i, 0]
                for i' in 3:
                    for j in W:
                        rows[i + i', j] = image[i + i', j] + image[i + i', j + 1] + image[i + i', j + 2]    # <-- here
                for j in W:
                    blur[i, j] = rows[i, j] + rows[i + 1, j] + rows[i + 2, j]

        Try: a loop that only reads the tensor, further in
        """,
    )
    refused(
        s,
        lambda: s.cache_read("rows"),
        """
        cache_read('rows') is refused: rows has no storage yet where its copy would begin
          AT

        Try: a loop inside that storage, given as at=
        """,
    )


def test_refused_places_and_scopes():
    s = start("matmul")
    refused(
        s,
        lambda: s.cache_read("A", at="i", scope="local"),
        """
        cache_read('A', at='i', scope='local') is refused: the copy of A has the extents (1, K), and registers need constant ones
          AT

            for i in M:    # <-- here
                for j in N:
                    for k in K:
                        matmul[i, j] += A[i, k] * B[k, j]

        Try: split the loops so that one iteration touches a constant box, or fix the sizes
        """,
    )
    refused(
        s,
        lambda: s.cache_read("A", at="i", scope="texture"),
        """
        cache_read('A', at='i', scope='texture') is refused: there is no scope 'texture'
          AT

        Try: "global", "shared" or "local" (registers)
        """,
    )
    outer, _ = s.split(s.fuse("i", "j"), 4)
    refused(
        s,
        lambda: s.cache_read("A", at=outer),
        """
        cache_read('A', at='i.j.o') is refused: i.j.o runs over pieces of a fused loop, and nothing may stand between it and i.j.i
          AT

            for i.j.o in (M * N + 3) // 4:    # <-- here
                for i.j.i = (i, j) in (M, N)[4 * i.j.o : + 4]:    # <-- here
                    for k in K:
                        matmul[i, j] += A[i, k] * B[k, j]

        Try: cache_read before the fused loop is split; or fix the sizes: tl.schedule(op, N=1024)
        """,
    )
    s = start("add", N=8)
    s.vectorize("j")
    refused(
        s,
        lambda: s.cache_read("A", at="j"),
        """
        cache_read('A', at='j') is refused: cache_read would place storage inside the vectorized loop j, once for each lane
          AT

            for i in M:
                vectorized for j in 8:    # <-- here
                    add[i, j] = A[i, j] + B[i, j]

        Try: a loop around it, or cache_read before vectorize
        """,
    )
