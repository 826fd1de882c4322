"""Definitions made by hand: the operators whose programs the proof is tested on."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tensorlang.dtypes import DType, bool_, f32, i64
from tensorlang.ir.affine import Affine, AffineLike, Var, affine
from tensorlang.ir.definition import Axis, Combiner, Condition, Definition, Stage, Tensor
from tensorlang.ir.expr import (
    Call,
    Const,
    Expr,
    IndexValue,
    Load,
    Placeholder,
    Select,
    index_from_value,
)


def tensor(name: str, *shape: AffineLike, dtype: DType = f32) -> Tensor:
    return Tensor(name, tuple(affine(extent) for extent in shape), dtype)


def axes(**extents: AffineLike) -> tuple[Axis, ...]:
    return tuple(Axis(Var(name), affine(extent)) for name, extent in extents.items())


def at(source: Tensor, *indices: AffineLike) -> Load:
    return Load(source, tuple(affine(index) for index in indices))


def add(left: Expr, right: Expr) -> Expr:
    return Call("add", (left, right), f32)


def mul(left: Expr, right: Expr) -> Expr:
    return Call("mul", (left, right), f32)


def number(index: AffineLike) -> Expr:
    return IndexValue(affine(index), i64)


def compare(function: str, left: AffineLike, right: AffineLike) -> Expr:
    return Call(function, (number(left), number(right)), bool_)


def where(condition: Expr, then: Expr, otherwise: Expr) -> Expr:
    return Select(condition, then, otherwise, then.dtype)


ZERO = Const(0.0, f32)


def combiner(name: str, function: str, identity: float, ordered: bool = False) -> Combiner:
    left, right = Placeholder("a", f32), Placeholder("b", f32)
    result = Call(function, (left, right), f32)
    return Combiner(name, (left,), (right,), (result,), (Const(identity, f32),), ordered)


def sum_() -> Combiner:
    return combiner("sum", "add", 0.0)


def max_() -> Combiner:
    return combiner("max", "maximum", float("-inf"))


def define(
    name: str,
    sizes: Sequence[Var],
    inputs: Sequence[Tensor],
    stages: Sequence[Stage],
    outputs: Sequence[Tensor] | None = None,
    conditions: Sequence[Condition] = (),
) -> Definition:
    return Definition(
        name,
        tuple(sizes),
        tuple(inputs),
        (),
        tuple(stages),
        tuple(outputs or stages[-1].tensors),
        tuple(conditions),
    )


def map_stage(
    target: Tensor, value: Callable[..., Expr], names: str = "ijxy", extents: object = None
) -> Stage:
    variables = [Var(name) for name, _ in zip(names, target.shape, strict=False)]
    stage_axes = tuple(Axis(v, extent) for v, extent in zip(variables, target.shape, strict=True))
    return Stage((target,), stage_axes, (value(*map(affine, variables)),))


def reduce_stage(
    target: Tensor,
    over: dict[str, AffineLike],
    value: Callable[..., Expr],
    combine: Combiner | None = None,
    predicate: Callable[..., tuple[Affine, ...]] | None = None,
    names: str = "ijxy",
) -> Stage:
    data = tuple(Axis(Var(name), extent) for name, extent in zip(names, target.shape, strict=False))
    reduction = axes(**over)
    variables = [affine(axis.variable) for axis in data + reduction]
    forms = predicate(*variables) if predicate else ()
    return Stage((target,), data, (value(*variables),), reduction, combine or sum_(), tuple(forms))


# --- operators -------------------------------------------------------------------------------


def matmul(m: int | None = None, n: int | None = None, k: int | None = None) -> Definition:
    size_m, size_n, size_k = Var("M"), Var("N"), Var("K")
    extent_m, extent_n, extent_k = (
        affine(var if fixed is None else fixed)
        for var, fixed in ((size_m, m), (size_n, n), (size_k, k))
    )
    a, b = tensor("A", extent_m, extent_k), tensor("B", extent_k, extent_n)
    c = tensor("C", extent_m, extent_n)
    stage = reduce_stage(c, {"k": extent_k}, lambda i, j, k: mul(at(a, i, k), at(b, k, j)))
    sizes = [var for var, fixed in ((size_m, m), (size_k, k), (size_n, n)) if fixed is None]
    return define("matmul", sizes, (a, b), (stage,))


def softmax() -> Definition:
    m, n = Var("M"), Var("N")
    x = tensor("X", m, n)
    top, e = tensor("top", m), tensor("softmax/e", m, n)
    total, out = tensor("total", m), tensor("softmax", m, n)
    stages = (
        reduce_stage(top, {"j": n}, lambda i, j: at(x, i, j), max_()),
        map_stage(e, lambda i, j: Call("sub", (at(x, i, j), at(top, i)), f32)),
        reduce_stage(total, {"j": n}, lambda i, j: at(e, i, j)),
        map_stage(out, lambda i, j: Call("div", (at(e, i, j), at(total, i)), f32)),
    )
    return define("softmax", (m, n), (x,), stages)


def blur() -> Definition:
    h, w = Var("H"), Var("W")
    image = tensor("image", affine(h) + 2, affine(w) + 2)
    rows, out = tensor("rows", affine(h) + 2, w), tensor("blur", h, w)

    def across(i: Affine, j: Affine) -> Expr:
        return add(add(at(image, i, j), at(image, i, j + 1)), at(image, i, j + 2))

    def down(i: Affine, j: Affine) -> Expr:
        return add(add(at(rows, i, j), at(rows, i + 1, j)), at(rows, i + 2, j))

    return define("blur", (h, w), (image,), (map_stage(rows, across), map_stage(out, down)))


def padded_stencil() -> Definition:
    """A lazy halo: ``where`` keeps the loads inside the tensor."""
    n = Var("N")
    x, h, out = tensor("x", n), tensor("h", n), tensor("out", n)

    def value(source: Tensor) -> Callable[[Affine], Expr]:
        def around(i: Affine) -> Expr:
            left = where(compare("gt", i, 0), at(source, i - 1), ZERO)
            inside = Call("and", (compare("ge", i + 1, 0), compare("lt", i + 1, n)), bool_)
            return add(add(left, at(source, i)), where(inside, at(source, i + 1), ZERO))

        return around

    stages = (map_stage(h, value(x)), map_stage(out, value(h)))
    return define("padded_stencil", (n,), (x,), stages)


def cumulative_sum() -> Definition:
    m, n = Var("M"), Var("N")
    x, out = tensor("x", m, n), tensor("cumsum", m, n)

    def value(i: Affine, j: Affine) -> Expr:
        previous = where(compare("gt", j, 0), at(out, i, j - 1), ZERO)
        return add(previous, at(x, i, j))

    return define("cumsum", (m, n), (x,), (map_stage(out, value),))


def argmax() -> Definition:
    m, n = Var("M"), Var("N")
    x = tensor("x", m, n)
    best, where_ = tensor("argmax.value", m), tensor("argmax", m, dtype=i64)
    left = (Placeholder("v", f32), Placeholder("i", i64))
    right = (Placeholder("w", f32), Placeholder("j", i64))
    greater = Call("gt", (right[0], left[0]), bool_)
    result = (
        Select(greater, right[0], left[0], f32),
        Select(greater, right[1], left[1], i64),
    )
    combine = Combiner("argmax", left, right, result, (Const(float("-inf"), f32), Const(0, i64)))
    i, j = Var("i"), Var("j")
    stage = Stage(
        (best, where_),
        (Axis(i, affine(m)),),
        (at(x, i, j), number(j)),
        (Axis(j, affine(n)),),
        combine,
    )
    return define("argmax", (m, n), (x,), (stage,), (where_,))


def triangular() -> Definition:
    """Row sums of the lower triangle: a reduction with a predicate."""
    n = Var("N")
    x, out = tensor("x", n, n), tensor("sums", n)
    stage = reduce_stage(out, {"k": n}, lambda i, k: at(x, i, k), predicate=lambda i, k: (i - k,))
    return define("triangular", (n,), (x,), (stage,))


def gather() -> Definition:
    n, k = Var("N"), Var("K")
    x, table = tensor("x", n), tensor("table", k, dtype=i64)
    doubled, out = tensor("doubled", n), tensor("gathered", k)
    stages = (
        map_stage(doubled, lambda i: add(at(x, i), at(x, i))),
        map_stage(out, lambda i: at(doubled, index_from_value(at(table, i)))),
    )
    return define("gather", (n, k), (x, table), stages)


def ordered_sum() -> Definition:
    n, k = Var("N"), Var("K")
    x, out = tensor("x", n, k), tensor("s", n)
    stage = reduce_stage(
        out, {"k": k}, lambda i, k: at(x, i, k), combiner("custom", "add", 0.0, ordered=True)
    )
    return define("ordered", (n, k), (x,), (stage,))


def stencil_chain(length: int = 3) -> Definition:
    """Each stage sums nine neighbours of the one before; shapes shrink by two."""
    h, w = Var("H"), Var("W")
    current = tensor("x", affine(h) + 2 * length, affine(w) + 2 * length)
    inputs, stages = (current,), []
    for step in range(1, length + 1):
        rest = 2 * (length - step)
        target = tensor(f"t{step}", affine(h) + rest, affine(w) + rest)

        def value(i: Affine, j: Affine, source: Tensor = current) -> Expr:
            result: Expr = at(source, i, j)
            for di in range(3):
                for dj in range(3):
                    if di or dj:
                        result = add(result, at(source, i + di, j + dj))
            return result

        stages.append(map_stage(target, value))
        current = target
    return define("chain", (h, w), inputs, stages)


def row_sums_of_squares() -> Definition:
    """A map that can be inlined into a reduction."""
    m, n = Var("M"), Var("N")
    x, squares, out = tensor("x", m, n), tensor("squares", m, n), tensor("norm", m)
    stages = (
        map_stage(squares, lambda i, j: mul(at(x, i, j), at(x, i, j))),
        reduce_stage(out, {"k": n}, lambda i, k: at(squares, i, k)),
    )
    return define("norm", (m, n), (x,), stages)


def flatten() -> Definition:
    """A reshape from two axes to one, of a tensor that a stage makes."""
    m, n = Var("M"), Var("N")
    x, doubled = tensor("x", m, n), tensor("doubled", m, n)
    flat = tensor("flat", affine(m) * n)
    stages = (
        map_stage(doubled, lambda i, j: add(at(x, i, j), at(x, i, j))),
        map_stage(flat, lambda i: at(doubled, i // affine(n), i % affine(n))),
    )
    return define("flatten", (m, n), (x,), stages)


def unflatten() -> Definition:
    m, n = Var("M"), Var("N")
    x, out = tensor("x", affine(m) * n), tensor("out", m, n)
    stage = map_stage(out, lambda i, j: at(x, i * n + j))
    return define("unflatten", (m, n), (x,), (stage,))
