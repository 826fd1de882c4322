"""compute_inline: a map is substituted into its readers."""

# ruff: noqa: E501 - printed programs

import tensorlang as tl
from tests.schedule.checks import accepts, compiles, each, prints, refused, start


def test_program_after():
    s = start("softmax")
    s.compute_inline("e")
    prints(
        s,
        """
        top = global f32[M]
        total = global f32[M]
        for i in M:
            for j in N:
                top[i] = max(top[i]; X[i, j])
        for i in M:
            for j in N:
                total[i] += exp(X[i, j] - top[i])
        for i in M:
            for j in N:
                softmax[i, j] = exp(X[i, j] - top[i]) / total[i]
        """,
    )
    assert "e" not in [stage.name for stage in s.stages]


@each(
    "name",
    "stage",
    """
    chain:first chain:second blur:rows smooth:h every_second:pairs two_outputs:shared
    conv2d_stride1_pad1:p
    """,
)
def test_maps(name, stage):
    accepts(name, lambda s: s.compute_inline(stage), (0, 1, 2, 4))


def test_one_after_the_other():
    s = accepts("chain", lambda s: (s.compute_inline("first"), s.compute_inline("second")))
    prints(
        s,
        """
        for i in N:
            chain[i] = (x[i] + 1) * 2 - (x[i] + 1)
        """,
    )
    accepts("chain", lambda s: (s.compute_inline("second"), s.compute_inline("first")))


def test_loops_of_the_stage_and_of_its_reader_do_not_matter():
    def steps(s):
        s.split("rows/i", 4)
        s.parallel("rows/i.o")
        s.tile(["blur/i", "blur/j"], [2, 3])
        s.compute_inline("rows")

    accepts("blur", steps, (0, 1, 2, 5))


def test_each_use_is_rounded_as_before():
    n = tl.dim("N")

    @tl.compute
    def halves(x: tl.f32[n]):
        half = tl.tensor(tl.cast(x[i], tl.f16) * 3 for i in n)
        return tl.tensor(tl.cast(half[i], tl.f32) + 1 for i in n)

    s = tl.schedule(halves)
    s.compute_inline("half")
    assert s.verify().ok
    prints(
        s,
        """
        for i in N:
            halves[i] = f32(f16(f32(f16(x[i])) * 3)) + 1
        """,
    )


def test_compiled():
    compiles("blur", lambda s: s.compute_inline("rows"))


def test_refused():
    s = start("softmax")
    refused(
        s,
        lambda: s.compute_inline("softmax"),
        """
        compute_inline('softmax') is refused: softmax is an output, which the caller sees whole
          AT

        Try: compute_inline a stage that only other stages read; reverse_compute_at moves a consumer
        """,
    )
    refused(
        s,
        lambda: s.compute_inline("total"),
        """
        compute_inline('total') is refused: total is a reduction, and has no expression to put in its place
          AT

        Try: s.compute_at("total", ...) computes it inside a loop of its reader
        """,
    )
    s = start("scan_line")
    refused(
        s,
        lambda: s.compute_inline("sums"),
        """
        compute_inline('sums') is refused: sums is a scan, and has no expression to put in its place
          AT

        Try: s.compute_at("sums", ...) computes it inside a loop of its reader
        """,
    )


def test_refused_through_copies():
    s = start("chain")
    s.cache_read("first", at="second/i")
    refused(
        s,
        lambda: s.compute_inline("first"),
        """
        compute_inline('first') is refused: first.local copies first
          AT

            first = global f32[N]
            second = global f32[N]
            for i in N:
                first[i] = x[i] + 1
            for i in N:
                first.local = global f32[1] at [i]
                first.local[i] = first[i]    # <-- here
                second[i] = first.local[i] * 2
            for i in N:
                chain[i] = second[i] - first[i]

        Try: inline before cache_read
        """,
    )
    s = start("blur")
    s.cache_read("image", at="rows/i")
    refused(
        s,
        lambda: s.compute_inline("rows"),
        """
        compute_inline('rows') is refused: rows is computed through copies
          AT

            rows = global f32[H + 2, W]
            for i in H + 2:
                image.local = global f32[1, W + 2] at [i, 0]
                for j in W + 2:
                    image.local[i, j] = image[i, j]
                for j in W:
                    rows[i, j] = image.local[i, j] + image.local[i, j + 1] + image.local[i, j + 2]    # <-- here
            for i in H:
                for j in W:
                    blur[i, j] = rows[i, j] + rows[i + 1, j] + rows[i + 2, j]

        Try: inline before cache_read and cache_write
        """,
    )


def test_refused_where_what_it_reads_is_not_there():
    s = start("softmax")
    s.compute_at("top", "e/i")
    refused(
        s,
        lambda: s.compute_inline("e"),
        """
        compute_inline('e') is refused: e reads top, which lives inside other loops only
          AT

        Try: compute_inline before top is moved, or s.compute_root("top") first
        """,
    )


def test_an_index_is_no_place_for_an_expression():
    n, k = tl.dims("N K")

    @tl.compute
    def shifted(x: tl.f32[n], table: tl.i64[k]):
        place = tl.tensor(table[i] + 1 for i in k)
        return tl.tensor(x[place[i]] for i in k)

    s = tl.schedule(shifted)
    refused(
        s,
        lambda: s.compute_inline("place"),
        """
        compute_inline('place') is refused: shifted uses place as an index
          AT

            place = global i64[K]
            for i in K:
                place[i] = table[i] + 1
            for i in K:
                shifted[i] = x[int(place[i])]    # <-- here

        Try: s.compute_at("place", ...), or leave it where it is
        """,
    )
