"""compute_at: a stage inside a loop of its readers, over what they read there."""

# ruff: noqa: E501 - printed programs

from contextlib import suppress

from hypothesis import given, settings
from hypothesis import strategies as st

import tensorlang as tl
from tests.schedule.checks import accepts, agrees, compiles, prints, refused, sizes_of, start
from tests.schedule.operators import BY_NAME


def test_a_stencil_per_row_and_per_strip():
    s = accepts("blur", lambda s: s.compute_at("rows", "blur/i"), (0, 1, 2, 5))
    prints(
        s,
        """
        for i in H:
            rows = global f32[3, W] at [i, 0]
            for i' in 3:
                for j in W:
                    rows[i + i', j] = image[i + i', j] + image[i + i', j + 1] + image[i + i', j + 2]
            for j in W:
                blur[i, j] = rows[i, j] + rows[i + 1, j] + rows[i + 2, j]
        """,
    )

    def strips(s):
        outer, _ = s.split("blur/i", 4)
        s.compute_at("rows", outer)

    s = accepts("blur", strips, (0, 1, 3, 4, 5))
    prints(
        s,
        """
        for i.o in (H + 3) // 4:
            rows = global f32[6, W] at [4 * i.o, 0]
            for i in 6:
                for j in W:
                    rows[4 * i.o + i, j] = image[4 * i.o + i, j] + image[4 * i.o + i, j + 1] + image[4 * i.o + i, j + 2]  # if 4 * i.o + i < H + 2
            for i.i in 4:
                for j in W:
                    blur[4 * i.o + i.i, j] = rows[4 * i.o + i.i, j] + rows[4 * i.o + i.i + 1, j] + rows[4 * i.o + i.i + 2, j]  # if 4 * i.o + i.i < H
        """,
    )


def test_a_tile_of_both_axes():
    def steps(s):
        loops = s.tile(["blur/i", "blur/j"], [2, 3])
        s.compute_at("rows", loops[1])

    accepts("blur", steps, (0, 1, 2, 5))


def test_halos_stop_at_the_ends():
    def steps(s):
        outer, _ = s.split("smooth/i", 4)
        s.compute_at("h", outer)

    s = accepts("smooth", steps)
    prints(
        s,
        """
        for i.o in (N + 3) // 4:
            h = global f32[5] at [4 * i.o]
            for i in 5:
                h[4 * i.o + i] = where((4 * i.o + i) > 0, x[4 * i.o + i - 1], 0) + x[4 * i.o + i]  # if 4 * i.o + i < N
            for i.i in 4:
                smooth[4 * i.o + i.i] = h[4 * i.o + i.i] + where((4 * i.o + i.i + 1) < N, h[4 * i.o + i.i + 1], 0)  # if 4 * i.o + i.i < N
        """,
    )


def test_strided_reads():
    accepts("every_second", lambda s: s.compute_at("pairs", "every_second/i"), (0, 1, 2, 5))
    accepts(
        "conv2d_stride2_pad0",
        lambda s: s.compute_at("p", "conv2d/y"),
        ({"B": 1, "C": 2, "H": 5, "W": 4, "F": 2, "R": 3, "S": 2}, 0, 1, 2),
    )


def test_rows_of_a_softmax_consumers_first():
    def steps(s):
        for stage in ("total", "e", "top"):
            s.compute_at(stage, "softmax/i")

    s = accepts("softmax", steps, (0, 1, 2, 5))
    prints(
        s,
        """
        for i in M:
            total = global f32[1] at [i]
            e = global f32[1, N] at [i, 0]
            top = global f32[1] at [i]
            for j in N:
                top[i] = max(top[i]; X[i, j])
            for j in N:
                e[i, j] = exp(X[i, j] - top[i])
            for j in N:
                total[i] += e[i, j]
            for j in N:
                softmax[i, j] = e[i, j] / total[i]
        """,
    )


def test_reductions_with_a_predicate_or_a_tuple():
    accepts("sum_and_squares", lambda s: s.compute_at("linear", "sum_and_squares/i"), (0, 1, 2, 5))
    accepts("mean", lambda s: s.compute_at("mean.sum", "mean/i"), (0, 1, 2, 5))
    accepts(
        "half_sum", lambda s: s.compute_at("half_sum.acc", s.split("half_sum/i", 4)[0]), (0, 1, 5)
    )


def test_inside_a_reduction_of_the_reader():
    accepts("conv2d_stride1_pad1", lambda s: s.compute_at("p", "conv2d/c"), (0, 1, 2))


def test_a_scan_runs_over_its_whole_axis():
    s = accepts("scan_line", lambda s: s.compute_at("sums", "scan_line/j"), (0, 1, 2, 5))
    prints(
        s,
        """
        for j in N:
            sums = global i64[N]
            for j' in N:
                sums[j'] = where(j' > 0, sums[j' - 1] + x[j' - 1], 0)
            scan_line[j] = sums[j] * 2 + x[j]
        """,
    )


def test_a_table_of_indices_needs_all():
    s = accepts("gather", lambda s: s.compute_at("doubled", "gather/k"), (0, 1, 2, 5))
    prints(
        s,
        """
        for k in K:
            doubled = global f32[N]
            for i in N:
                doubled[i] = x[i] * 2
            gather[k] = doubled[int(table[k])]
        """,
    )


def test_a_fused_loop():
    accepts("blur", lambda s: s.compute_at("rows", s.fuse("blur/i", "blur/j")), (0, 1, 2, 4))
    accepts("blur", lambda s: s.compute_at("rows", s.fuse("blur/i", "blur/j")), H=3, W=4)


def test_moved_again():
    def steps(s):
        s.compute_at("rows", "blur/i")
        s.compute_at("rows", "blur/j")
        s.compute_root("rows")
        s.compute_at("rows", "blur/i")

    accepts("blur", steps, (0, 1, 2, 5))


def test_compiled():
    compiles("blur", lambda s: s.compute_at("rows", s.split("blur/i", 4)[0]))
    compiles("softmax", lambda s: [s.compute_at(n, "softmax/i") for n in ("total", "e", "top")])


def test_loops_come_along():
    """Split, ordered, vectorized and unrolled ones: only what the box changes is made anew."""

    def steps(s):
        i_outer, i_inner = s.split("rows/i", 2)
        j_outer, j_inner = s.split("rows/j", 8)
        s.reorder(i_outer, j_outer, i_inner, j_inner)
        s.unroll(i_inner)
        s.vectorize(j_inner)
        outer, _ = s.split("blur/i", 3)
        s.compute_at("rows", outer)
        s.split(j_outer, 2)  # the handles are still good

    s = accepts("blur", steps, (0, 1, 2, 5))
    prints(
        s,
        """
        for i.o in (H + 2) // 3:
            rows = global f32[5, W] at [3 * i.o, 0]
            for i.o' in 3:
                for j.o.o in (W + 15) // 16:
                    for j.o.i in 2:
                        unrolled for i.i in 2:
                            vectorized for j.i in 8:
                                rows[i.i + 3 * i.o + 2 * i.o', j.i + 16 * j.o.o + 8 * j.o.i] = image[i.i + 3 * i.o + 2 * i.o', j.i + 16 * j.o.o + 8 * j.o.i] + image[i.i + 3 * i.o + 2 * i.o', j.i + 16 * j.o.o + 8 * j.o.i + 1] + image[i.i + 3 * i.o + 2 * i.o', j.i + 16 * j.o.o + 8 * j.o.i + 2]  # if i.i + 3 * i.o + 2 * i.o' < H + 2 and i.i + 2 * i.o' < 5 and j.i + 16 * j.o.o + 8 * j.o.i < W
            for i.i in 3:
                for j in W:
                    blur[3 * i.o + i.i, j] = rows[3 * i.o + i.i, j] + rows[3 * i.o + i.i + 1, j] + rows[3 * i.o + i.i + 2, j]  # if 3 * i.o + i.i < H
        """,
    )
    compiles("blur", steps)


def test_a_row_needs_no_loop():
    def steps(s):
        s.vectorize(s.split("e/j", 4)[1])
        s.compute_at("e", "softmax/i")

    s = start("softmax")
    s.compute_at("total", "softmax/i")
    accepts("softmax", lambda s: [s.compute_at("total", "softmax/i"), steps(s)], (0, 1, 2, 5))


def test_reductions_come_along():
    def steps(s):
        outer, inner = s.split("mean.sum/j", 3)
        s.reorder(outer, inner, "mean.sum/i")
        s.compute_at("mean.sum", s.split("mean/i", 2)[0])

    accepts("mean", steps, (0, 1, 2, 3, 5))

    def band(s):
        s.split(s["linear"].loops[-1], 2)
        s.compute_at("linear", "sum_and_squares/i")

    accepts("sum_and_squares", band, (0, 1, 2, 5))


def test_there_and_back():
    """Boxes of boxes: what a move made is taken apart by the next one."""

    def steps(s):
        s.split("rows/j", 4)
        s.compute_at("rows", "blur/i")
        s.split("rows/j.o", 3)
        s.compute_root("rows")
        s.compute_at("rows", s.split("blur/i", 4)[0])

    accepts("blur", steps, (0, 1, 2, 5))


@settings(max_examples=60)
@given(
    st.lists(st.sampled_from(["split 2", "split 3", "split 8", "reorder", "unroll"]), max_size=5),
    st.sampled_from(
        [("blur", "rows"), ("smooth", "h"), ("mean", "mean.sum"), ("softmax", "total")]
    ),
    st.randoms(use_true_random=False),
)
def test_any_loops_come_along(steps, which, random):
    """Whatever splits, orders and unrolled loops a stage has, it may be moved, and is right."""
    operator, stage = which
    s = start(operator)
    for step in steps:
        loops = s[stage].loops
        loop = random.choice(loops)
        if step == "reorder":
            s.reorder(*random.sample(loops, len(loops)))
        elif step != "unroll":
            factor, extent = int(step[-1]), str(loop.extent)
            if not extent.isdigit() or int(extent) % factor == 0:
                s.split(loop, factor)
        elif str(loop.extent).isdigit():
            with suppress(tl.ScheduleError):
                s.unroll(loop)
    place = s[operator].loops[0]
    if random.random() < 0.5:
        place = s.split(place, random.choice((2, 3)))[0]
    s.compute_at(stage, place)
    s.verify()
    case = BY_NAME[operator]
    for sizes in sizes_of(case, s, (0, 1, 5)):
        agrees(case, s.program, sizes)
    s.compute_root(stage)
    s.verify()


def test_refused_stages():
    s = start("blur")
    refused(
        s,
        lambda: s.compute_at("blur", "rows/i"),
        """
        compute_at('blur', 'rows/i') is refused: blur is an output, which the caller sees whole
          AT

        Try: compute_at a stage that only other stages read; reverse_compute_at moves a consumer
        """,
    )
    s.parallel("rows/i")
    s.parallel("blur/i")
    refused(
        s,
        lambda: s.compute_at("rows", "blur/i"),
        """
        compute_at('rows', 'blur/i') is refused: the parallel loop i of rows would be nested in the parallel loop i
          AT

            rows = global f32[H + 2, W]
            parallel for i in H + 2:    # <-- here
                for j in W:
                    rows[i, j] = image[i, j] + image[i, j + 1] + image[i, j + 2]
            parallel for i in H:    # <-- here
                for j in W:
                    blur[i, j] = rows[i, j] + rows[i + 1, j] + rows[i + 2, j]

        Try: compute_at first, and choose how the loops run afterwards
        """,
    )
    s = start("blur")
    s.cache_read("image", at="rows/i")
    refused(
        s,
        lambda: s.compute_at("image.local", "blur/i"),
        """
        compute_at('image.local', 'blur/i') is refused: image.local is a copy, and stays where cache_read or cache_write put it
          AT

        Try: give that step another loop
        """,
    )
    refused(
        s,
        lambda: s.compute_at("rows", "blur/i"),
        """
        compute_at('rows', 'blur/i') is refused: the loops of rows have been scheduled already, by more than split, tile, reorder, vectorize, parallel and unroll, and compute_at cannot take them along
          AT

            rows = global f32[H + 2, W]
            for i in H + 2:    # <-- here
                image.local = global f32[1, W + 2] at [i, 0]
                for j in W + 2:
                    image.local[i, j] = image[i, j]
                for j in W:    # <-- here
                    rows[i, j] = image.local[i, j] + image.local[i, j + 1] + image.local[i, j + 2]
            for i in H:
                for j in W:
                    blur[i, j] = rows[i, j] + rows[i + 1, j] + rows[i + 2, j]

        Try: compute_at first, then the other steps
        """,
    )


def test_refused_loops():
    s = start("two_outputs")
    refused(
        s,
        lambda: s.compute_at("shared", "plus/i"),
        """
        compute_at('shared', 'plus/i') is refused: minus reads shared outside i
          AT

            shared = global f32[M, N]
            for i in M:
                for j in N:
                    shared[i, j] = x[i, j] * 2
            for i in M:    # <-- here
                for j in N:
                    plus[i, j] = shared[i, j] + 1
            for i in M:
                for j in N:
                    minus[i, j] = shared[i, j] - 1    # <-- here

        Try: a loop that holds minus too, or s.compute_at("minus", ...) first
        """,
    )
    s = start("blur")
    refused(
        s,
        lambda: s.compute_at("rows", "rows/i"),
        """
        compute_at('rows', 'rows/i') is refused: blur reads rows outside i
          AT

            rows = global f32[H + 2, W]
            for i in H + 2:    # <-- here
                for j in W:
                    rows[i, j] = image[i, j] + image[i, j + 1] + image[i, j + 2]
            for i in H:
                for j in W:
                    blur[i, j] = rows[i, j] + rows[i + 1, j] + rows[i + 2, j]    # <-- here

        Try: a loop that holds blur too, or s.compute_at("blur", ...) first
        """,
    )
    s = start("blur", W=8)
    s.vectorize("blur/j")
    refused(
        s,
        lambda: s.compute_at("rows", "blur/j"),
        """
        compute_at('rows', 'blur/j') is refused: compute_at would place storage inside the vectorized loop j, once for each lane
          AT

            rows = global f32[H + 2, 8]
            for i in H + 2:
                for j in 8:
                    rows[i, j] = image[i, j] + image[i, j + 1] + image[i, j + 2]
            for i in H:
                vectorized for j in 8:    # <-- here
                    blur[i, j] = rows[i, j] + rows[i + 1, j] + rows[i + 2, j]

        Try: a loop around it, or compute_at before vectorize
        """,
    )
    s = start("blur")
    outer, _ = s.split(s.fuse("blur/i", "blur/j"), 4)
    refused(
        s,
        lambda: s.compute_at("rows", outer),
        """
        compute_at('rows', 'i.j.o') is refused: i.j.o runs over pieces of a fused loop, and nothing may stand between it and i.j.i
          AT

            rows = global f32[H + 2, W]
            for i in H + 2:
                for j in W:
                    rows[i, j] = image[i, j] + image[i, j + 1] + image[i, j + 2]
            for i.j.o in (H * W + 3) // 4:    # <-- here
                for i.j.i = (i, j) in (H, W)[4 * i.j.o : + 4]:    # <-- here
                    blur[i, j] = rows[i, j] + rows[i + 1, j] + rows[i + 2, j]

        Try: compute_at before the fused loop is split; or fix the sizes: tl.schedule(op, N=1024)
        """,
    )


def test_refused_where_what_it_reads_is_not_there():
    s = start("mean")
    s.rfactor("mean.sum/j")
    refused(
        s,
        lambda: s.compute_at("mean.sum", "mean/i"),
        """
        compute_at('mean.sum', 'mean/i') is refused: mean.sum reads mean.sum.rf, which lives inside other loops only
          AT

            mean.sum = global f32[M]
            for i in M:
                mean.sum.rf = global f32[1, N] at [i, 0]
                for j in N:
                    mean.sum.rf[i, j] += x[i, j]
                for j in N:
                    mean.sum[i] += mean.sum.rf[i, j]
            for i in M:    # <-- here
                mean[i] = mean.sum[i] / N

        Try: compute_at before mean.sum.rf is moved, or s.compute_root("mean.sum.rf") first
        """,
    )
    s = start("chain")
    s.cache_read("first", at="chain/i")
    refused(
        s,
        lambda: s.compute_at("first", "chain/i"),
        """
        compute_at('first', 'chain/i') is refused: second reads first outside i
          AT

            first = global f32[N]
            second = global f32[N]
            for i in N:
                first[i] = x[i] + 1
            for i in N:
                second[i] = first[i] * 2    # <-- here
            for i in N:    # <-- here
                first.local = global f32[1] at [i]
                first.local[i] = first[i]
                chain[i] = second[i] - first.local[i]

        Try: a loop that holds second too, or s.compute_at("second", ...) first
        """,
    )
