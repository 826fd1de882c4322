"""stream: the same values, past the caches."""

import numpy as np
import pytest

import tensorlang as tl
from tests.schedule.checks import accepts, compiles, prints, refused, start


def vectors(s, lanes=8):
    _, inner = s.split("i", lanes)
    s.vectorize(inner)
    s.stream("double")


def test_program_after():
    s = start("double")
    vectors(s)
    prints(
        s,
        """
            # double is written past the caches
            for i.o in (N + 7) // 8:
                vectorized for i.i in 8:
                    double[8 * i.o + i.i] = x[8 * i.o + i.i] * 2  # if 8 * i.o + i.i < N
        """,
    )
    assert str(tl.Schedule.from_json(s.to_json())) == str(s)


@pytest.mark.parametrize("lanes", [2, 3, 4, 8, 16, 64])
def test_values_stay(lanes):
    accepts("double", lambda s: vectors(s, lanes), (0, 1, 9, 17))
    compiles("double", lambda s: vectors(s, lanes), (0, 1, 9, 130))


@pytest.mark.parametrize("offset", [0, 1, 3, 4, 8])
def test_results_at_any_address(offset):
    s = start("double")
    vectors(s)
    x = np.arange(100, dtype=np.float32)
    out = np.zeros(120, np.float32)
    tl.compile(s)(x, out=out[offset : offset + 100])
    np.testing.assert_array_equal(out[offset : offset + 100], 2 * x)
    assert not out[:offset].any()
    assert not out[offset + 100 :].any()


def test_threads_end_with_a_fence():
    s = start("double")
    vectors(s)
    s.parallel("i.o")
    text = tl.compile(s, target="cpu -mcpu=haswell").source("llvm")
    (body,) = (
        part for part in text.split("\n}") if "@tensorlang_double.parallel1(ptr noalias" in part
    )
    assert "!nontemporal !0" in body
    assert body.rstrip().splitlines()[-2:] == ["  call void @llvm.x86.sse.sfence()", "  ret void"]
    s.undo()
    s.undo()
    assert "nontemporal" not in tl.compile(s, target="cpu").source("llvm")


def test_a_panel_of_the_program():
    def steps(s):
        s.cache_read("A")
        _, inner = s.split("A.local/j", 8)
        s.vectorize(inner)
        s.stream("A.local")

    accepts("add", steps, (0, 1, 9))
    compiles("add", steps, (0, 1, 9, 40))


def test_a_tile_that_is_copied_out():
    def steps(s):
        _, inner = s.split("j", 8)
        s.reorder("i", "j.o", "k", inner)
        s.cache_write("matmul", at="j.o")
        s.vectorize(inner)
        s.stream("matmul")

    accepts("matmul", steps, (0, 1, 9))
    compiles("matmul", steps, (0, 1, 9, 17))


def test_refused():
    refused(
        start("matmul"),
        lambda: start("matmul").stream("matmul"),
        """
        stream('matmul') is refused: matmul is accumulated in place, and each step reads the last one's result
          AT

        Try: s.cache_write("matmul", at=...) accumulates in registers, and writes once
        """,  # noqa: E501
    )
    s = start("double")
    s.stream("double")
    for step, claim in (
        (lambda: s.stream("double"), "double is streamed already"),
        (lambda: s.stream("x"), "nothing writes x"),
    ):
        with pytest.raises(tl.ScheduleError, match=claim):
            step()
    s = start("blur", H=4, W=8)
    s.compute_at("rows", "blur/i", scope="local")
    with pytest.raises(tl.ScheduleError, match="rows does not lie in memory but is local"):
        s.stream("rows")
