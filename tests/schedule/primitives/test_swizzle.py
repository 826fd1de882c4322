"""swizzle: rotated blocks, one place an element."""

import pytest

import tensorlang as tl
from tensorlang.ir.affine import evaluate
from tensorlang.schedule.tree import find_alloc
from tests.schedule.checks import accepts, compiles, start


@pytest.mark.parametrize("bits", [1, 2, 3])
def test_values_stay(bits):
    accepts("blur", lambda s: s.swizzle("rows", 1, bits), (0, 1, 2, 5))
    compiles("blur", lambda s: s.swizzle("rows", 1, bits), (0, 1, 2, 5, 9))


def test_columns_lie_in_different_banks():
    s = start("softmax", M=8, N=8)
    s.swizzle("e", 1, 2)
    (stage,) = (stage for stage in s.program.stages if stage.name == "e")
    layout = find_alloc(s.program.body, stage.tensor).layout

    def place(*position):
        values = dict(zip(layout.variables, position, strict=True))
        return tuple(evaluate(index, values) for index in layout.indices)

    assert [place(row, 1)[1] % 4 for row in range(4)] == [1, 2, 3, 0]
    assert len({place(row, column) for row in range(8) for column in range(8)}) == 64


def test_with_vectors():
    def steps(s):
        s.swizzle("e", 1, 2)
        _, inner = s.split("e/j", 4)
        s.vectorize(inner)

    accepts("softmax", steps, (0, 1, 5))
    compiles("softmax", steps, (1, 5, 9))


def test_refused():
    s = start("blur")
    for step, claim in (
        (lambda: s.swizzle("image", 1, 2), "image belongs to the caller"),
        (lambda: s.swizzle("rows", 2, 2), "rows has no axis 2"),
        (lambda: s.swizzle("rows", 0, 2), "no axis of rows stands before axis 0"),
        (lambda: s.swizzle("rows", 1, 0), "0 bits of a position"),
        (lambda: s.swizzle("rows", 1, 11), "11 bits of a position"),
    ):
        with pytest.raises(tl.ScheduleError, match=claim):
            step()
    s.swizzle("rows", 1, 2)
    with pytest.raises(tl.ScheduleError, match="rows has a layout already"):
        s.swizzle("rows", 1, 2)


@pytest.mark.parametrize(
    "lay_out",
    [
        lambda s: s.swizzle("t", 1, 3),
        lambda s: s.pad_storage("t", 1, 3),
        lambda s: s.storage_fold("t", 0, 2),
        lambda s: s.layout("t", lambda i, j: (j, i)),
    ],
    ids=["swizzle", "pad_storage", "storage_fold", "layout"],
)
def test_a_box_that_changes_with_a_loop_is_not_laid_out(lay_out):
    N = tl.dim("N")

    @tl.compute
    def op(x: tl.f32[N]):
        t = tl.tensor(x[0] * (i + j) for i in tl.range(2) for j in tl.range(2))
        return tl.tensor(t[k % 2, k % 2] + t[0, 0] for k in N)

    s = tl.schedule(op)
    s.compute_at("t", "op/k")
    with pytest.raises(tl.ScheduleError, match="the box of t has a shape that changes with k"):
        lay_out(s)
