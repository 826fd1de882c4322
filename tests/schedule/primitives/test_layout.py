"""layout: owned buffers, one place an element."""

# ruff: noqa: E501 - printed programs

import numpy as np
import pytest

import tensorlang as tl
from tests.schedule.checks import accepts, compiles, prints, refused, start

MAPS = {
    "transposed": lambda i, j: (j, i),
    "panels": lambda k, n: (n // 4, k, n % 4),
    "blocks": lambda i, j: (i // 2, j // 3, i % 2, j % 3),
    "shifted": lambda i, j: (i + 1, j),
    "spread": lambda i, j: (2 * i, j),
    "skewed": lambda i, j: (i + j, j),
    "reversed": lambda i, j: (5 - i, j),
}


def test_program_after():
    s = start("matmul")
    outer, _ = s.split("j", 4)
    s.cache_read("B", at=outer)
    s.layout("B.local", lambda k, n: (n, k))
    prints(
        s,
        """
        for i in M:
            for j.o in (N + 3) // 4:
                B.local = global f32[K, 4] at [0, 4 * j.o] laid out (k, n) -> (n, k)
                for i' in K:
                    for j in 4:
                        B.local[i', 4 * j.o + j] = B[i', 4 * j.o + j]  # if 4 * j.o + j < N
                for j.i in 4:
                    for k in K:
                        matmul[i, 4 * j.o + j.i] += A[i, k] * B.local[k, 4 * j.o + j.i]  # if 4 * j.o + j.i < N
        """,
    )


@pytest.mark.parametrize("name", [name for name in MAPS if name != "reversed"])
def test_one_to_one_maps(name):
    def steps(s):
        s.cache_read("A")
        s.layout("A.local", MAPS[name])

    accepts("matmul", steps, (0, 1, 2, 5))


def test_temporaries_of_stages():
    accepts("blur", lambda s: s.layout("rows", MAPS["panels"]), (0, 1, 2, 5))
    accepts("softmax", lambda s: s.layout("e", MAPS["transposed"]), (0, 1, 2, 5))
    accepts("sum_and_squares", lambda s: s.layout("square", lambda i: (i // 2, i % 2)), (0, 1, 5))
    accepts("argmax", lambda s: s.layout("argmax.value", lambda i: i), (0, 1, 5))


def test_a_layout_as_text_of_a_saved_schedule():
    s = start("blur")
    s.layout("rows", MAPS["blocks"])
    assert [str(step) for step in s.trace] == [
        "layout('rows', lambda i, j: (i // 2, j // 3, i % 2, j % 3,))"
    ]
    again = tl.Schedule.from_json(s.to_json())
    assert str(again) == str(s)


def test_compiled():
    def steps(s):
        s.cache_read("B")
        s.layout("B.local", MAPS["panels"])

    compiles("matmul", steps)


def test_refused_buffers():
    s = start("matmul")
    refused(
        s,
        lambda: s.layout("A", MAPS["transposed"]),
        """
        layout('A', ...) is refused: A belongs to the caller, and its layout is given
          AT

        Try: s.cache_read("A", at=...) makes a copy that may be laid out
        """,
    )
    refused(
        s,
        lambda: s.layout("matmul", MAPS["transposed"]),
        """
        layout('matmul', ...) is refused: matmul belongs to the caller, and its layout is given
          AT

        Try: s.cache_write("matmul", at=...) makes a copy that may be laid out
        """,
    )
    s = start("blur")
    s.layout("rows", MAPS["transposed"])
    refused(
        s,
        lambda: s.layout("rows", MAPS["transposed"]),
        """
        layout('rows', ...) is refused: rows has a layout already
          AT

        Try: s.undo() takes it back
        """,
    )


def test_refused_maps():
    s = start("blur")
    refused(
        s,
        lambda: s.layout("rows", lambda i: (i,)),
        """
        layout('rows', ...) is refused: the map takes 1 positions, and rows has 2 axes
          AT

        Try: one argument an axis
        """,
    )
    refused(
        s,
        lambda: s.layout("rows", lambda i, j: (i, j // 2)),
        """
        layout('rows', ...) is refused: the map does not give each element of rows a place of its own
          AT

        Counterexample: the layout of rows puts two elements in one place
        sizes:  H = 0, W = 2
                positions [0, 1] and [0, 0] of the box

        Try: a one-to-one map, such as lambda k, n: (n // 16, k, n % 16)
        """,
    )
    refused(
        s,
        lambda: s.layout("rows", lambda i, j: (i + j,)),
        """
        layout('rows', ...) is refused: the map does not give each element of rows a place of its own
          AT

        Counterexample: the layout of rows puts two elements in one place
        sizes:  H = 0, W = 2
                positions [1, 0] and [0, 1] of the box

        Try: a one-to-one map, such as lambda k, n: (n // 16, k, n % 16)
        """,
    )
    refused(
        s,
        lambda: s.layout("rows", lambda i, j: (i, np.pi)),
        """
        layout('rows', ...) is refused: the layout map does not work: 3.141592653589793 is no position
          AT

        Try: a function of positions, such as lambda k, n: (n // 16, k, n % 16)
        """,
    )
    refused(
        s,
        lambda: s.layout("rows", lambda i, j: (i // 0, j)),
        """
        layout('rows', ...) is refused: the layout map does not work: an index expression is divided by zero
          AT

        Try: a function of positions, such as lambda k, n: (n // 16, k, n % 16)
        """,
    )
    refused(
        s,
        lambda: s.layout("rows", "transposed"),
        """
        layout('rows', ...) is refused: the layout map does not work: 'str' object is not callable
          AT

        Try: a function of positions, such as lambda k, n: (n // 16, k, n % 16)
        """,
    )


def test_refused_places_below_zero():
    s = start("blur")
    refused(
        s,
        lambda: s.layout("rows", lambda i, j: (i - 3, j)),
        """
        layout('rows', ...) is refused: the map does not give each element of rows a place of its own
          AT

        Counterexample: the layout of rows puts an element outside its memory
        sizes:  H = 0, W = 1
                position [0, 0] of the box

        Try: a one-to-one map, such as lambda k, n: (n // 16, k, n % 16)
        """,
    )
    refused(
        s,
        lambda: s.layout("rows", MAPS["reversed"]),
        """
        layout('rows', ...) is refused: the map does not give each element of rows a place of its own
          AT

        Counterexample: the layout of rows puts an element outside its memory
        sizes:  H = 5, W = 1
                position [6, 0] of the box

        Try: a one-to-one map, such as lambda k, n: (n // 16, k, n % 16)
        """,
    )
