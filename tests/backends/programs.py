"""Small lowered programs that several tests compile."""

from __future__ import annotations

from collections.abc import Sequence

from tensorlang.dtypes import DType
from tensorlang.ir.affine import Affine, AffineLike, Var, affine
from tensorlang.ir.expr import Call, Const, Expr
from tensorlang.ir.lowered import Allocate, Buffer, FlatLoad, LoweredProgram, Store
from tensorlang.ir.program import For, If, LoopKind, Seq, Stmt


def buffer(name: str, dtype: DType, size: AffineLike, **options: object) -> Buffer:
    return Buffer(name, dtype, affine(size), **{"alignment": dtype.bits // 8, **options})


def store(target: Buffer, offset: AffineLike, value: Expr) -> Store:
    return Store(((target, affine(offset)),), (value,))


def load(source: Buffer, offset: AffineLike) -> FlatLoad:
    return FlatLoad(source, affine(offset))


def call(function: str, *args: Expr) -> Call:
    return Call(function, args, args[0].dtype)


def loop(variable: Var, extent: AffineLike, body: Stmt, kind: LoopKind = "serial") -> For:
    return For(variable, affine(extent), kind, body)


def seq(*stmts: Stmt) -> Stmt:
    return stmts[0] if len(stmts) == 1 else Seq(stmts)


def program(
    body: Stmt,
    sizes: Sequence[Var] = (),
    inputs: Sequence[Buffer] = (),
    outputs: Sequence[Buffer] = (),
    **options: object,
) -> LoweredProgram:
    return LoweredProgram(
        str(options.pop("name", "test")),
        tuple(sizes),
        tuple(options.pop("scalars", ())),  # type: ignore[arg-type]
        tuple(inputs),
        tuple(outputs),
        body,
        **options,
    )


def lanes_over(
    size: Affine | Var, lanes: int, make: object, kind: LoopKind = "serial", mask: bool = True
) -> Stmt:
    """Return a loop over vectors of ``lanes``, masked at the end; ``make(i)`` is the body."""
    outer, inner = Var("o"), Var("i")
    index = affine(outer) * lanes + inner
    body = make(index)  # type: ignore[operator]
    if mask:
        body = If((affine(size) - 1 - index,), body)
    chunks = (affine(size) + (lanes - 1)) // lanes
    return loop(outer, chunks, loop(inner, lanes, body, "vectorized"), kind)


def matmul_tile(
    dtype: DType, rows: int, lanes: int, vectors: int, fixed: tuple[int, int, int]
) -> LoweredProgram:
    """Return ``C = A @ B`` for sizes that the tile divides, with the tile in a local buffer.

    B is packed: panels of ``lanes * vectors`` columns, all of k contiguous.
    """
    m, n, k = fixed
    columns = lanes * vectors
    a, b = buffer("A", dtype, m * k), buffer("B", dtype, k * n)
    c = buffer("C", dtype, m * n)
    tile = buffer("tile", dtype, rows * columns, scope="local", alignment=64)
    io, jo, kk = Var("io"), Var("jo"), Var("k")

    def each(make: object) -> list[Stmt]:
        stmts: list[Stmt] = []
        for row in range(rows):
            for vector in range(vectors):
                variable = Var("lane")
                stmts.append(
                    loop(variable, lanes, make(row, vector, variable), "vectorized")  # type: ignore[operator]
                )
        return stmts

    def clear(row: int, vector: int, variable: Var) -> Stmt:
        return store(tile, affine(variable) + row * columns + vector * lanes, Const(0.0, dtype))

    def update(row: int, vector: int, variable: Var) -> Stmt:
        place = affine(variable) + row * columns + vector * lanes
        left = load(a, (affine(io) * rows + row) * k + kk)
        right = load(
            b, affine(jo) * (columns * k) + affine(kk) * columns + vector * lanes + variable
        )
        return store(tile, place, call("add", load(tile, place), call("mul", left, right)))

    def copy(row: int, vector: int, variable: Var) -> Stmt:
        place = affine(variable) + row * columns + vector * lanes
        target = (affine(io) * rows + row) * n + affine(jo) * columns + vector * lanes + variable
        return store(c, target, load(tile, place))

    body = Allocate(tile, seq(*each(clear), loop(kk, k, seq(*each(update))), *each(copy)))
    nest = loop(io, m // rows, loop(jo, n // columns, body))
    return program(nest, (), (a, b), (c,), name=f"tile_{rows}x{columns}")
