"""compute_root: back to the outermost level."""

# ruff: noqa: E501 - printed programs

from tests.schedule.checks import accepts, compiles, prints, refused, start


def test_it_undoes_compute_at():
    s = start("blur")
    before = str(s)
    s.compute_at("rows", "blur/i")
    s.compute_root("rows")
    prints(
        s,
        """
        rows = global f32[H + 2, W]
        for i in H + 2:
            for j in W:
                rows[i, j] = image[i, j] + image[i, j + 1] + image[i, j + 2]
        for i in H:
            for j in W:
                blur[i, j] = rows[i, j] + rows[i + 1, j] + rows[i + 2, j]
        """,
    )
    assert str(s) == before


def test_a_chain_moves_back_in_order():
    def steps(s):
        for stage in ("total", "e", "top"):
            s.compute_at(stage, "softmax/i")
        for stage in ("top", "e", "total"):
            s.compute_root(stage)

    accepts("softmax", steps, (0, 1, 2, 5))


def test_a_stage_that_is_there_already():
    accepts("blur", lambda s: s.compute_root("rows"), (0, 1, 2))
    accepts("sum_and_squares", lambda s: s.compute_root("linear"), (0, 1, 2))


def test_a_scan_and_a_reduction():
    def scan(s):
        s.compute_at("sums", "scan_line/j")
        s.compute_root("sums")

    accepts("scan_line", scan, (0, 1, 5))

    def reduction(s):
        s.compute_at("mean.sum", "mean/i")
        s.compute_root("mean.sum")

    accepts("mean", reduction, (0, 1, 5))


def test_compiled():
    compiles("blur", lambda s: (s.compute_at("rows", "blur/i"), s.compute_root("rows")))


def test_refused():
    s = start("softmax")
    for stage in ("total", "e", "top"):
        s.compute_at(stage, "softmax/i")
    refused(
        s,
        lambda: s.compute_root("total"),
        """
        compute_root('total') is refused: total reads e, which lives inside other loops only
          AT

        Try: compute_root before e is moved, or s.compute_root("e") first
        """,
    )
    s = start("blur")
    s.compute_at("rows", "blur/i")
    s.fuse(*s["rows"].loops)
    refused(
        s,
        lambda: s.compute_root("rows"),
        """
        compute_root('rows') is refused: the loops of rows have been scheduled already, by more than split, tile, reorder, vectorize, parallel and unroll, and compute_root cannot take them along
          AT

            for i in H:
                rows = global f32[3, W] at [i, 0]
                for i.j = (i', j) in (3, W):    # <-- here
                    rows[i + i', j] = image[i + i', j] + image[i + i', j + 1] + image[i + i', j + 2]
                for j in W:
                    blur[i, j] = rows[i, j] + rows[i + 1, j] + rows[i + 2, j]

        Try: compute_root first, then the other steps
        """,
    )
    s = start("softmax")
    s.compute_inline("e")
    refused(
        s,
        lambda: s.compute_root("e"),
        """
        compute_root('e') is refused: there is no stage 'e'
          AT

        Try: one of top, total, softmax
        """,
    )


def test_outputs():
    s = start("softmax")
    before = s.program
    s.compute_root("softmax")
    assert s.program is before

    def back(s):
        s.reverse_compute_at("mean", "mean.sum/i")
        s.compute_root("mean")

    assert str(accepts("mean", back, (0, 1, 5))) == str(start("mean"))


def test_a_stage_that_is_there_keeps_its_loops():
    def steps(s):
        s.split("rows/i", 4)
        s.compute_root("rows")

    s = accepts("blur", steps, (0, 1, 5))
    assert "i.i in 4" in str(s)
