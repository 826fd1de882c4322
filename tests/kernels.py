"""Four kernels scheduled for a GPU, and how tests run and break them.

Tile sizes are arguments, so that the interpreter can run small ones.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

import tensorlang as tl
from tensorlang.interpreter import run_lowered, run_program
from tensorlang.ir.affine import Var, evaluate
from tensorlang.ir.program import Barrier, Program, Seq, Stmt
from tensorlang.ir.walk import iterate, map_children, sequence
from tensorlang.lower.pipeline import lower
from tensorlang.schedule.place_barriers import place_barriers
from tensorlang.schedule.place_inits import place_inits

M, N, K = tl.dims("M N K")


@tl.compute
def add(A: tl.f32[N], B: tl.f32[N]):
    return tl.tensor(A[i] + B[i] for i in N)


@tl.compute
def softmax(X: tl.f32[M, N]):
    top = tl.tensor(tl.max(X[i, j] for j in N) for i in M)
    e = tl.tensor(tl.exp(X[i, j] - top[i]) for i in M for j in N)
    total = tl.tensor(tl.sum(e[i, j] for j in N) for i in M)
    return tl.tensor(e[i, j] / total[i] for i in M for j in N)


@tl.compute
def matmul(A: tl.f32[M, K], B: tl.f32[K, N]):
    return tl.tensor(tl.sum(A[i, k] * B[k, j] for k in K) for i in M for j in N)


@tl.compute
def transpose(A: tl.f32[M, N]):
    return tl.tensor(A[i, j] for j in N for i in M)


def vector_add(threads: int = 256, **sizes: int) -> tl.Schedule:
    """One element a thread, a tail in the last block."""
    s = tl.schedule(add, **sizes)
    (i,) = s.loops
    block, thread = s.split(i, threads)
    s.bind(block, "block.x")
    s.bind(thread, "thread.x")
    return s


def row_softmax(threads: int = 256, **sizes: int) -> tl.Schedule:
    """One block a row: partial results in shared memory, combined by the first thread."""
    s = tl.schedule(softmax, **sizes)
    s.compute_inline("e")
    i, j = s.loops
    s.compute_at("total", i)
    s.compute_at("top", i)
    outer, thread = s.split(j, threads)
    s.reorder(thread, outer)
    s.bind(i, "block.x")
    s.bind(thread, "thread.x")
    for name in ("top", "total"):
        _, lane = s.split(s[name].loops[-1], threads)
        partial = s.rfactor(lane)
        outer, thread = partial.loops[-2:]
        s.reorder(thread, outer)
        s.bind(thread, "thread.x")
        s.cache_write(partial, at=thread, scope="local")
    return s


def tiled_matmul(
    block: tuple[int, int, int] = (64, 64, 16),
    tile: tuple[int, int] = (4, 4),
    vector: int = 4,
    swap: bool = False,
    **sizes: int,
) -> tl.Schedule:
    """Tiles of A and B in shared memory, a tile of C in the registers of each thread.

    ``vector`` > 1 needs N and K to be multiples of it. ``swap`` gives the result's elements to
    other threads than those that computed them: a mistake.
    """
    s = tl.schedule(matmul, **sizes)
    if vector > 1 and not sizes:
        s.assume(N % vector == 0)
        s.assume(K % vector == 0)
    i, j, k = s.loops
    by, bi = s.split(i, block[0])
    bx, bj = s.split(j, block[1])
    ko, ki = s.split(k, block[2])
    ty, ii = s.split(bi, tile[0])
    tx, jj = s.split(bj, tile[1])
    s.reorder(by, bx, ko, ty, tx, ki, ii, jj)
    s.bind(by, "block.y")
    s.bind(bx, "block.x")
    written = s.cache_write("matmul", at=bx, scope="local")
    copies = [s.cache_read(name, at=ko, scope="shared") for name in "AB"]
    s.bind(ty, "thread.y")
    s.bind(tx, "thread.x")
    s.unroll(ii)
    if vector > 1:
        s.vectorize(jj)
    row, column = written.loops
    wy, wi = s.split(row, tile[0])
    wx, wj = s.split(column, tile[1])
    s.reorder(wy, wx, wi, wj)
    s.bind(wy, "thread.x" if swap else "thread.y")
    s.bind(wx, "thread.y" if swap else "thread.x")
    if vector > 1:
        s.vectorize(wj)
    for copy in copies:
        row, column = copy.loops
        if vector > 1:
            column, lanes = s.split(column, vector)
            s.vectorize(lanes)
        _, threads = s.split(s.fuse(row, column), block[0] * block[1] // (tile[0] * tile[1]))
        y, x = s.split(threads, block[1] // tile[1])
        s.bind(y, "thread.y")
        s.bind(x, "thread.x")
    return s


def padded_transpose(tile: int = 32, **sizes: int) -> tl.Schedule:
    """A tile in shared memory, whose rows are one element apart more than they are long."""
    s = tl.schedule(transpose, **sizes)
    j, i = s.loops
    jo, ji = s.split(j, tile)
    io, ii = s.split(i, tile)
    s.reorder(jo, io, ji, ii)
    s.bind(jo, "block.y")
    s.bind(io, "block.x")
    copy = s.cache_read("A", at=io, scope="shared")
    s.bind(ji, "thread.y")
    s.bind(ii, "thread.x")
    row, column = copy.loops
    s.bind(row, "thread.y")
    s.bind(column, "thread.x")
    s.layout(copy, lambda i, j: (tile + 1) * i + j)
    return s


KERNELS: Mapping[str, Callable[..., tl.Schedule]] = {
    "add": vector_add,
    "softmax": row_softmax,
    "matmul": tiled_matmul,
    "transpose": padded_transpose,
}


def placed(s: tl.Schedule) -> Program:
    """Return the program with inits and barriers: what is proved and interpreted."""
    return place_barriers(place_inits(s.program))


def barriers(program: Program) -> int:
    """Return how many barriers stand in a program."""
    return sum(isinstance(stmt, Barrier) for stmt in iterate(program.body))


def without_barrier(program: Program, number: int) -> Program:
    """Return a program without its barrier of this number, in the order of the text."""
    gone = [stmt for stmt in iterate(program.body) if isinstance(stmt, Barrier)][number]

    def visit(stmt: Stmt) -> Stmt:
        if isinstance(stmt, Seq):
            return sequence(*[visit(child) for child in stmt.stmts if child is not gone])
        return map_children(stmt, visit)

    return replace(program, body=visit(program.body))


def arguments(program: Program, sizes: Mapping[str, int]) -> tuple[dict[Any, Any], dict[Var, int]]:
    """Return arrays for the inputs of a program, and the values of its sizes."""
    definition = program.definition
    values = {size: sizes[size.name] for size in definition.sizes}
    random = np.random.default_rng(0)
    arrays = {
        tensor: random.standard_normal([evaluate(form, values) for form in tensor.shape]).astype(
            np.float32
        )
        for tensor in definition.inputs
    }
    return arrays, values


def check_interpreted(s: tl.Schedule, sizes: Mapping[str, int]) -> None:
    """Compare the program, with its barriers and lowered, with the definition's own evaluation."""
    program = placed(s)
    arrays, values = arguments(program, sizes)
    (output,) = program.definition.outputs
    expected = s.operator.reference(*arrays.values())
    found = run_program(program, arrays, values)[output]
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    lowered = lower(s.program)
    (flat,) = run_lowered(
        lowered, list(arrays.values()), [], [values[size] for size in lowered.sizes]
    )
    np.testing.assert_allclose(flat.reshape(expected.shape), expected, rtol=1e-4, atol=1e-5)
