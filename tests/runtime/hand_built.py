"""Definitions built by hand, for tests that need no tracing."""

from tensorlang.dtypes import f32, f64
from tensorlang.ir.affine import Var, affine
from tensorlang.ir.definition import Axis, Combiner, Definition, Scalar, Stage, Tensor
from tensorlang.ir.expr import Call, Const, Load, Placeholder, ScalarRef


def sum_combiner(dtype):
    left, right = Placeholder("a", dtype), Placeholder("b", dtype)
    return Combiner(
        "sum", (left,), (right,), (Call("add", (left, right), dtype),), (Const(0, dtype),)
    )


def matmul(dtype=f32, **fields) -> Definition:
    m, n, k = Var("M"), Var("N"), Var("K")
    a = Tensor("A", (affine(m), affine(k)), dtype)
    b = Tensor("B", (affine(k), affine(n)), dtype)
    c = Tensor("C", (affine(m), affine(n)), dtype)
    i, j, l = Var("i"), Var("j"), Var("k")  # noqa: E741
    value = Call("mul", (Load(a, (affine(i), affine(l))), Load(b, (affine(l), affine(j)))), dtype)
    stage = Stage(
        (c,),
        (Axis(i, affine(m)), Axis(j, affine(n))),
        (value,),
        (Axis(l, affine(k)),),
        sum_combiner(dtype),
    )
    fields = {"parameters": ("A", "B"), **fields}
    return Definition("matmul", (m, k, n), (a, b), (), (stage,), (c,), **fields)


def scale(dtype=f32, scalar_dtype=f64, rank=1, **fields) -> Definition:
    """Y = alpha * X, with the scalar first in the parameter list."""
    sizes = tuple(Var(f"N{axis}") for axis in range(rank))
    shape = tuple(map(affine, sizes))
    x, y = Tensor("X", shape, dtype), Tensor("Y", shape, dtype)
    alpha = Scalar("alpha", scalar_dtype)
    axes = tuple(Var(f"i{axis}") for axis in range(rank))
    load = Load(x, tuple(map(affine, axes)))
    stage = Stage(
        (y,),
        tuple(Axis(axis, extent) for axis, extent in zip(axes, shape, strict=True)),
        (Call("mul", (ScalarRef(alpha), load), dtype),),
    )
    fields = {"parameters": ("alpha", "X"), **fields}
    return Definition("scale", sizes, (x,), (alpha,), (stage,), (y,), **fields)
