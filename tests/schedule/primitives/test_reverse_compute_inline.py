"""reverse_compute_inline: the loops of what is read, the values of what reads it."""

# ruff: noqa: E501 - printed programs

import numpy as np
import pytest

import tensorlang as tl
from tests.schedule.checks import accepts, compiles, prints, start
from tests.schedule.operators import M, N


def test_program_after():
    def steps(s):
        s.compute_inline("first")
        s.split("second/i", 4)
        s.reverse_compute_inline("chain")

    s = accepts("chain", steps, (0, 1, 5))
    prints(
        s,
        """
        for i.o in (N + 3) // 4:
            for i.i in 4:
                chain[4 * i.o + i.i] = (x[4 * i.o + i.i] + 1) * 2 - (x[4 * i.o + i.i] + 1)  # if 4 * i.o + i.i < N
        """,
    )
    compiles("chain", steps, (0, 1, 5))


@tl.compute
def turned(x: tl.i32[M, N]):
    twice = tl.tensor(x[i, j] * 2 for i in M for j in N)
    return tl.tensor(twice[i, j] + i - 3 * j for j in N for i in M)


def test_transposed_elements():
    s = tl.schedule(turned)
    s.tile(["twice/i", "twice/j"], [2, 3])
    s.reverse_compute_inline("turned")
    assert s.verify().ok
    x = np.arange(35, dtype=np.int32).reshape(5, 7)
    np.testing.assert_array_equal(tl.compile(s)(x), turned.reference(x))


@tl.compute
def narrow(x: tl.f16[N]):
    third = tl.tensor(x[i] / 3 for i in N)
    return tl.tensor(third[i] * 3 - x[i] for i in N)


def test_each_stage_still_rounds():
    s = tl.schedule(narrow)
    s.reverse_compute_inline("narrow")
    x = np.arange(50, dtype=np.float16)
    np.testing.assert_array_equal(tl.compile(s)(x), narrow.reference(x))


@pytest.mark.parametrize(
    ("operator", "stage", "claim"),
    [
        ("mean", "mean", "mean.sum is complete only after its last step"),
        ("matmul", "matmul", "matmul is no elementwise stage"),
        ("blur", "blur", "blur reads no stage element by element"),
        ("two_outputs", "plus", "shared is read by other stages too"),
        ("double", "double", "double reads no stage element by element"),
    ],
)
def test_refused(operator, stage, claim):
    s = start(operator)
    before = s.program
    with pytest.raises(tl.ScheduleError, match=claim):
        s.reverse_compute_inline(stage)
    assert s.program is before


def test_after_peeling():
    def steps(s):
        s.compute_inline("first")
        outer, _ = s.split("second/i", 4)
        s.peel(outer)
        s.reverse_compute_inline("chain")

    accepts("chain", steps, (0, 1, 5))


def test_refused_after_copies():
    s = start("chain")
    s.compute_inline("first")
    s.cache_read("second")
    with pytest.raises(tl.ScheduleError, match="second is read by other stages too"):
        s.reverse_compute_inline("chain")
