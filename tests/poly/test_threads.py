"""Races of threads and mistakes with barriers, made on purpose: each is refused, with its case."""

import re
from collections.abc import Callable
from dataclasses import replace

import pytest

import tensorlang as tl
from tensorlang.ir.affine import Var, affine
from tensorlang.ir.program import Barrier, For, Program, Seq, Stmt
from tensorlang.ir.walk import computes_of, rewrite, sequence
from tensorlang.poly.proof import prove
from tensorlang.schedule.place_inits import place_inits
from tests import kernels

SMALL: dict[str, Callable[[], tl.Schedule]] = {
    "add": lambda: kernels.vector_add(8),
    "softmax": lambda: kernels.row_softmax(8),
    "matmul": lambda: kernels.tiled_matmul((8, 8, 4), (4, 4), vector=1),
    "transpose": lambda: kernels.padded_transpose(4),
}


@pytest.mark.parametrize("name", SMALL)
def test_kernels_are_proved(name: str) -> None:
    evidence = prove(kernels.placed(SMALL[name]()))
    assert evidence.ok, str(evidence)
    assert evidence.claims[-1].name == "threads"


@pytest.mark.parametrize(
    ("name", "number"),
    [*[("softmax", n) for n in range(4)], ("matmul", 0), ("matmul", 1), ("transpose", 0)],
)
def test_no_barrier_is_superfluous(name: str, number: int) -> None:
    evidence = prove(kernels.without_barrier(kernels.placed(SMALL[name]()), number))
    assert not evidence.ok
    assert evidence.claims[-1].name == "threads"
    found = evidence.counterexample
    assert found is not None
    assert found.refuted
    assert "with no barrier between them" in found.reason
    threads = [access.split(":")[0] for access in found.accesses]
    assert len(set(threads)) == 2


def refusal(program: Program) -> str:
    """Return the proof's counterexample, without the statement at its end."""
    evidence = prove(program)
    assert not evidence.ok
    assert evidence.claims[-1].name == "threads", str(evidence)
    return str(evidence.counterexample).split("\nin:")[0]


def test_reading_before_the_copy_is_complete() -> None:
    program = kernels.placed(kernels.padded_transpose(4, M=4, N=4))
    assert refusal(kernels.without_barrier(program, 0)) == (
        "two threads of a block touch one element of A.shared with no barrier between them\n"
        "loops:  j.o = 0, i.o = 0, i = 0, j = 1, j.o' = 0, i.o' = 0, j.i' = 1, i.i' = 0\n"
        "        thread (1, 0, 0): the copy of A in A.shared[i=0, j=1] writes A.shared[0, 1]\n"
        "        thread (0, 1, 0): transpose[j=1, i=0] reads A.shared[0, 1]"
    )


def test_overwriting_what_slower_threads_still_read() -> None:
    """The next iteration's copy must wait, though it writes other elements of the tensor."""
    program = kernels.placed(SMALL["matmul"]())
    text = refusal(kernels.without_barrier(program, 0))
    assert "two threads of a block touch one element of B.shared" in text
    assert re.search(r"thread \(\d, \d, 0\): the copy of B in B.shared\[.*\] writes", text)
    assert re.search(r"thread \(\d, \d, 0\): the update matmul\[.*\] reads B.shared", text)
    first, second = (int(re.search(rf"k\.o{mark} = (\d)", text)[1]) for mark in ("", "'"))
    assert first == second + 1


def move_barrier(program: Program, change: Callable[[For], Stmt], variable: str) -> Program:
    """Take the last barrier out, and change the first loop of this name."""
    program = kernels.without_barrier(program, kernels.barriers(program) - 1)
    done: list[Stmt] = []

    def visit(stmt: Stmt) -> Stmt:
        if isinstance(stmt, For) and str(stmt.variable) == variable and not done:
            done.append(stmt)
            return change(stmt)
        return stmt

    return replace(program, body=rewrite(program.body, visit))


def test_a_barrier_that_only_some_threads_reach() -> None:
    program = move_barrier(
        kernels.placed(kernels.padded_transpose(4)),
        lambda loop: replace(loop, body=sequence(Barrier(), loop.body)),
        "j.i",
    )
    assert refusal(program) == (
        "a barrier stands inside thread.y loop j.i, where not all threads of a block arrive"
    )


def test_a_barrier_before_what_it_should_come_after() -> None:
    program = move_barrier(
        kernels.placed(kernels.padded_transpose(4)), lambda loop: sequence(Barrier(), loop), "i"
    )
    text = refusal(program)
    assert "the copy of A in A.shared[i=0, j=1] writes A.shared[0, 1]" in text


def test_a_barrier_that_may_never_be_reached() -> None:
    """In a loop over K it runs K times, perhaps none."""
    program = kernels.placed(kernels.row_softmax(8))
    size = program.definition.sizes[1]
    number = iter(range(10))

    def visit(stmt: Stmt) -> Stmt:
        if not isinstance(stmt, Seq):
            return stmt
        children = [
            For(Var("never"), affine(size), "serial", child)
            if isinstance(child, Barrier) and next(number) == 0
            else child
            for child in stmt.stmts
        ]
        return Seq(tuple(children))

    text = refusal(replace(program, body=rewrite(program.body, visit)))
    assert "N = 0" in text
    assert "thread (0, 0, 0): the update top[i=0" in text


def test_registers_that_another_thread_reads() -> None:
    program = kernels.placed(
        kernels.tiled_matmul((8, 8, 4), (4, 4), vector=1, swap=True, M=8, N=8, K=4)
    )
    text = refusal(program)
    assert text.startswith(
        "two threads touch one element of matmul.local, which lies in registers: no thread sees "
        "those of another\n"
    )
    assert re.search(r"thread \(1, 0, 0\): .* writes matmul.local", text)
    assert re.search(r"thread \(0, 1, 0\): .* reads matmul.local", text)


def test_threads_that_add_into_one_element() -> None:
    program = kernels.placed(kernels.tiled_matmul((8, 8, 4), (4, 4), vector=1))

    def visit(stmt: Stmt) -> Stmt:
        is_inner = isinstance(stmt, For) and str(stmt.variable) == "k.i"
        return replace(stmt, kind="thread.z") if is_inner else stmt

    evidence = prove(replace(program, body=rewrite(program.body, visit)))
    assert not evidence.ok
    assert "thread.z loop k.i touch one element of matmul.local" in str(evidence)


def test_blocks_that_share_an_element() -> None:
    N = tl.dim("N")

    @tl.compute
    def total(x: tl.f32[N]):
        return tl.sum(x[i] for i in N)

    s = tl.schedule(total)
    outer, _ = s.split("i", 8)
    program = kernels.placed(s)

    def visit(stmt: Stmt) -> Stmt:
        is_outer = isinstance(stmt, For) and stmt.variable is outer.variable
        return replace(stmt, kind="block.x") if is_outer else stmt

    evidence = prove(replace(program, body=rewrite(program.body, visit)))
    assert not evidence.ok
    assert "block.x loop i.o touch one element of total" in str(evidence)


def test_barriers_change_nothing_else() -> None:
    """A program with threads keeps its instances; barriers are all that is added."""
    program = place_inits(SMALL["matmul"]().program)
    placed = kernels.placed(SMALL["matmul"]())
    assert len(computes_of(program.body)) == len(computes_of(placed.body))
    assert kernels.barriers(program) == 0


def nested_copy() -> tl.Schedule:
    """A row that the threads along x copy, made by each thread along y: none sees the others'."""
    M, N = tl.dims("M N")

    @tl.compute
    def mirrored(x: tl.f32[M, N]):
        return tl.tensor(x[i, N - 1 - j] for i in M for j in N)

    s = tl.schedule(mirrored, M=4, N=4)
    i, j = s.loops
    s.bind(i, "thread.y")
    copy = s.cache_read("x", at=i, scope="shared")
    s.bind(j, "thread.x")
    s.bind(copy.loops[-1], "thread.x")
    return s


def test_storage_of_one_thread_that_others_read() -> None:
    text = refusal(kernels.placed(nested_copy()))
    assert (
        "two threads touch one element of x.shared, which is made inside a loop of threads" in text
    )
