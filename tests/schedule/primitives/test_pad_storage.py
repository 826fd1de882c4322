"""pad_storage: rows set apart, elements where they were told."""

import pytest

import tensorlang as tl
from tests.schedule.checks import accepts, compiles, prints, start


def test_program_after():
    s = start("blur")
    s.pad_storage("rows", 1, 16)
    assert "rows = global f32[H + 2, W] laid out (i, j) -> (i, j) of [H + 2, W + 16]" in str(s)
    prints(s, str(tl.Schedule.from_json(s.to_json())).partition("\n")[2])


@pytest.mark.parametrize(("axis", "by"), [(0, 1), (1, 1), (1, 16)])
def test_values_stay(axis, by):
    accepts("blur", lambda s: s.pad_storage("rows", axis, by), (0, 1, 2, 5))
    compiles("blur", lambda s: s.pad_storage("rows", axis, by), (0, 1, 2, 5))


def test_on_top_of_a_layout():
    def steps(s):
        s.cache_read("B")
        s.layout("B.local", lambda k, n: (n // 4, k, n % 4))
        s.pad_storage("B.local", 2, 3)

    accepts("matmul", steps, (0, 1, 5))
    compiles("matmul", steps, (0, 1, 5, 9))


def test_the_rows_are_apart_and_are_not_cleared():
    s = start("blur", H=4, W=8)
    s.pad_storage("rows", 1, 8)
    text = tl.compile(s).source("loops")
    assert "rows = global f32[96]\n" in text


def test_refused():
    s = start("blur")
    for step, claim in (
        (lambda: s.pad_storage("image", 1, 1), "image belongs to the caller"),
        (lambda: s.pad_storage("rows", 2, 1), "rows has no axis 2"),
        (lambda: s.pad_storage("rows", 1, 0), "0 is no number of places"),
        (lambda: s.pad_storage("rows", 1, -4), "-4 is no number of places"),
    ):
        with pytest.raises(tl.ScheduleError, match=claim):
            step()
