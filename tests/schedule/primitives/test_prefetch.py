"""prefetch: boxes asked for ahead of time, of which no value depends."""

# ruff: noqa: E501 - printed programs

import re

import numpy as np
import pytest

import tensorlang as tl
from tensorlang.interpreter.run import run_program
from tensorlang.ir.affine import evaluate
from tensorlang.ir.lowered import PrefetchLine
from tensorlang.ir.program import For, If
from tensorlang.ir.walk import children_of, iterate
from tensorlang.lower.pipeline import lower
from tests.schedule.checks import accepts, compiles, prints, refused, start


def tiled(s):
    outer, inner = s.split("j", 16)
    s.reorder(outer, "i", "k", inner)
    s.vectorize(inner)


def panels(s):
    tiled(s)
    s.cache_read("B")
    s.layout("B.local", lambda k, n: (n // 16, k, n % 16))


def lines(s, **sizes):
    """Return the addresses of the prefetches of the lowered program at ``sizes``."""
    found = []

    def visit(stmt, values):
        if isinstance(stmt, PrefetchLine):
            found.append((stmt.buffer.name, evaluate(stmt.offset, values)))
        elif isinstance(stmt, For):
            for value in range(evaluate(stmt.extent, values)):
                visit(stmt.body, {**values, stmt.variable: value})
        elif isinstance(stmt, If) and min(evaluate(form, values) for form in stmt.condition) < 0:
            if stmt.otherwise is not None:
                visit(stmt.otherwise, values)
        else:
            for child in (stmt.then,) if isinstance(stmt, If) else children_of(stmt):
                visit(child, values)

    program = lower(s.program)
    visit(program.body, {size: sizes[size.name] for size in program.sizes})
    return found


def test_program_after():
    s = start("matmul")
    tiled(s)
    s.prefetch("B", at="k", ahead=4, locality=2)
    prints(
        s,
        """
        for j.o in (N + 15) // 16:
            for i in M:
                for k in K:
                    prefetch B[k + 4, 16 * j.o : + 16]  # locality=2
                    vectorized for j.i in 16:
                        matmul[i, 16 * j.o + j.i] += A[i, k] * B[k, 16 * j.o + j.i]  # if 16 * j.o + j.i < N
        """,
    )
    assert str(s.trace[-1]) == "prefetch('B', at='k', ahead=4, locality=2)"
    assert str(tl.Schedule.from_json(s.to_json())) == str(s)


@pytest.mark.parametrize(
    ("tensor", "at", "along", "ahead"),
    [("B", "k", None, 1), ("B", "k", "j.o", 2), ("A", "i", None, 1), ("A", "k", None, 16)],
)
def test_values_stay(tensor, at, along, ahead):
    def steps(s):
        tiled(s)
        s.prefetch(tensor, at=at, along=along, ahead=ahead)

    accepts("matmul", steps, (0, 1, 3, 17))
    compiles("matmul", steps, (0, 1, 17, 40))


def test_one_line_of_a_panel():
    s = start("matmul")
    panels(s)
    s.prefetch("B.local", at="k", along="j.o")
    found = lines(s, M=1, N=32, K=3)
    assert found == [("B.local", 48 + 16 * n) for n in range(6)]
    compiles("matmul", lambda s: (panels(s), s.prefetch("B.local", at="k", along="j.o")))


def test_rows_that_follow_one_another_are_one_range():
    s = start("add")
    s.split("i", 2)
    s.prefetch("A", at="i.o")
    assert lines(s, M=2, N=20) == [("A", 40), ("A", 56), ("A", 72)]


def test_a_panel_is_cut_into_its_blocks():
    s = start("matmul")
    outer, inner = s.split("j", 32)
    s.reorder(outer, "i", "k", inner)
    s.cache_read("B")
    s.layout("B.local", lambda k, n: (n // 16, k, n % 16))
    s.prefetch("B.local", at="k")
    assert lines(s, M=1, N=32, K=2) == [("B.local", n) for n in (16, 48, 32, 64)]


def test_a_line_holds_fewer_wide_elements():
    s = start("column_sum")  # float64
    s.prefetch("x", at="j")
    with pytest.raises(AssertionError):  # one element of each row, a row apart
        assert lines(s, M=3, N=2) == []
    s = start("transpose")  # int64
    s.reorder("i", "j")
    s.prefetch("A", at="i")
    assert lines(s, M=1, N=20) == [("A", 20), ("A", 28), ("A", 36)]


def test_machine_code():
    s = start("matmul")
    tiled(s)
    s.prefetch("B", at="k", ahead=8)
    f = tl.compile(s, target="cpu")
    assert re.search(
        r"call void @llvm\.prefetch\.p0\(ptr .*, i32 0, i32 3, i32 1\)", f.source("llvm")
    )


def test_lines_of_a_result_are_asked_for_to_be_written():
    s = start("double")
    s.prefetch("double", at="i", ahead=16)
    assert "prefetch double[i + 16]" in str(s)
    assert re.search(
        r"call void @llvm\.prefetch\.p0\(ptr .*, i32 1, i32 3, i32 1\)",
        tl.compile(s).source("llvm"),
    )
    compiles("double", lambda s: s.prefetch("double", at="i", ahead=16))


def test_far_behind_the_end():
    s = start("double")
    outer, inner = s.split("i", 8)
    s.vectorize(inner)
    s.prefetch("x", at=outer, ahead=1 << 40)
    x = np.arange(100, dtype=np.float32)
    np.testing.assert_array_equal(tl.compile(s)(x), 2 * x)


def test_the_interpreter_runs_both_grammars():
    s = start("double")
    s.prefetch("x", at="i", ahead=3)
    x = np.arange(5, dtype=np.float32)
    program = s.program
    sizes = {program.definition.sizes[0]: 5}
    (found,) = run_program(program, {program.definition.inputs[0]: x}, sizes).values()
    np.testing.assert_array_equal(found, 2 * x)
    assert any(isinstance(stmt, PrefetchLine) for stmt in iterate(lower(program).body))


def test_later_steps():
    def steps(s):
        s.prefetch("A", at="i")
        s.split("i", 4, tail="peel")
        s.parallel("i.o")
        s.unroll("i.i")

    accepts("add", steps, (0, 1, 5))
    compiles("add", steps)


def test_refused():
    s = start("matmul")
    tiled(s)
    refused(
        s,
        lambda: s.prefetch("B", at="i"),
        """
        prefetch('B', at='i', ahead=1) is refused: each iteration of i uses the same box of B
          AT

            for j.o in (N + 15) // 16:
                for i in M:    # <-- here
                    for k in K:
                        vectorized for j.i in 16:
                            matmul[i, 16 * j.o + j.i] += A[i, k] * B[k, 16 * j.o + j.i]  # if 16 * j.o + j.i < N

        Try: a loop that moves through the tensor
        """,
    )


def claim(s, step):
    with pytest.raises(tl.ScheduleError) as caught:
        step(s)
    return str(caught.value).splitlines()[0].partition(" is refused: ")[2]


def test_refused_claims():
    s = start("matmul")
    tiled(s)
    assert claim(s, lambda s: s.prefetch("matmul", at="k")) == (
        "each iteration of k uses the same box of matmul"
    )
    other = start("chain")
    assert claim(other, lambda s: s.prefetch("x", at="second/i")) == (
        "nothing inside i reads or writes x"
    )
    assert claim(s, lambda s: s.prefetch("B", at="k", ahead=0)) == "0 steps ahead"
    assert claim(s, lambda s: s.prefetch("B", at="k", locality=4)) == "locality=4"
    assert claim(s, lambda s: s.prefetch("B", at="i", along="k")) == "k is no loop around i"
    assert claim(s, lambda s: s.prefetch("B", at="j.i")).startswith("prefetch would place storage")
    s.cache_read("B", at="i")
    assert claim(s, lambda s: s.prefetch("B.local", at="j.o")) == (
        "B.local is allocated inside j.o, anew in each iteration"
    )
    s = start("blur", H=8, W=8)
    s.compute_at("rows", "blur/i", scope="local")
    assert claim(s, lambda s: s.prefetch("rows", at="blur/j")) == (
        "rows is kept in registers, not in memory"
    )


def test_steps_that_would_lose_it_are_refused():
    s = start("chain")
    s.prefetch("first", at="second/i", ahead=8)
    lost = "first is prefetched, and the step takes away the loop or the storage"
    assert claim(s, lambda s: s.compute_inline("first")) == lost
    assert claim(s, lambda s: s.compute_at("first", "second/i")) == ("chain reads first outside i")
    s = start("every_second")
    s.prefetch("pairs", at="every_second/i")
    lost = lost.replace("first", "pairs")
    assert claim(s, lambda s: s.compute_at("pairs", "every_second/i")) == lost
    s = start("add")
    s.split("j", 4)
    s.prefetch("A", at="j.o")
    assert claim(s, lambda s: s.vectorize("j.o")) != ""
    s = start("add", M=4, N=8)
    s.prefetch("A", at="j")
    assert claim(s, lambda s: s.vectorize("i")) == "A is prefetched inside i, once for each lane"
