"""Definitions and schedules made by hand, for the tests of the passes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tensorlang.dtypes import DType, bool_, f32, i64
from tensorlang.ir.affine import ZERO, Affine, Var, affine
from tensorlang.ir.definition import Axis, Combiner, Definition, Stage, Tensor
from tensorlang.ir.expr import (
    Call,
    Const,
    Expr,
    IndexValue,
    Load,
    Placeholder,
    Select,
    index_from_value,
    loads_of,
)
from tensorlang.ir.interval import bounds
from tensorlang.ir.program import Alloc, Compute, For, Fused, Program, Run, Stmt
from tensorlang.ir.walk import (
    computes_of,
    map_children,
    rewrite,
    sequence,
    substitute_in_stmt,
)
from tensorlang.source import SourceLocation


def combiner_of(name: str, dtype: DType) -> Combiner:
    left, right = Placeholder("a", dtype), Placeholder("b", dtype)
    function = {"sum": "add", "max": "maximum", "prod": "mul"}[name]
    start = {"sum": 0, "prod": 1, "max": float("-inf")}[name]
    value = float(start) if dtype.kind == "float" else int(start)
    return Combiner(
        name,
        (left,),
        (right,),
        (Call(function, (left, right), dtype),),
        (Const(value, dtype),),
    )


def mul(a: Expr, b: Expr) -> Expr:
    return Call("mul", (a, b), a.dtype)


def add(a: Expr, b: Expr) -> Expr:
    return Call("add", (a, b), a.dtype)


def tensor(name: str, *shape: Affine | Var | int, dtype: DType = f32) -> Tensor:
    return Tensor(name, tuple(map(affine, shape)), dtype)


def axes(**extents: Affine | Var | int) -> tuple[Axis, ...]:
    return tuple(Axis(Var(name), affine(extent)) for name, extent in extents.items())


def load(source: Tensor, *indices: Affine | Var | int) -> Load:
    return Load(source, tuple(map(affine, indices)))


def matmul(dtype: DType = f32, m: int | None = None, n: int | None = None, k: int | None = None):
    M = Var("M") if m is None else affine(m)
    N = Var("N") if n is None else affine(n)
    K = Var("K") if k is None else affine(k)
    A, B, C = tensor("A", M, K, dtype=dtype), tensor("B", K, N, dtype=dtype), None
    C = tensor("C", M, N, dtype=dtype)
    i, j, kk = axes(i=M, j=N, k=K)
    value = mul(load(A, i.variable, kk.variable), load(B, kk.variable, j.variable))
    stage = Stage((C,), (i, j), (value,), (kk,), combiner_of("sum", dtype))
    sizes = tuple(size for size in (M, K, N) if isinstance(size, Var))
    return Definition("matmul", sizes, (A, B), (), (stage,), (C,))


def row_sum(dtype: DType = f32):
    M, N = Var("M"), Var("N")
    A, S = tensor("A", M, N, dtype=dtype), tensor("S", M, dtype=dtype)
    i, j = axes(i=M, j=N)
    value = load(A, i.variable, j.variable)
    stage = Stage((S,), (i,), (value,), (j,), combiner_of("sum", dtype))
    return Definition("row_sum", (M, N), (A,), (), (stage,), (S,))


def softmax_like(dtype: DType = f32):
    """Subtract the maximum of each row."""
    M, N = Var("M"), Var("N")
    X, T, Y = tensor("X", M, N, dtype=dtype), tensor("top", M, dtype=dtype), None
    Y = tensor("Y", M, N, dtype=dtype)
    i, j = axes(i=M, j=N)
    top = Stage((T,), (i,), (load(X, i.variable, j.variable),), (j,), combiner_of("max", dtype))
    i, j = axes(i=M, j=N)
    value = Call("sub", (load(X, i.variable, j.variable), load(T, i.variable)), dtype)
    return Definition("center", (M, N), (X,), (), (top, Stage((Y,), (i, j), (value,))), (Y,))


def blur(dtype: DType = f32):
    """Two stages of three points each; the second reads the first at i, i + 1, i + 2."""
    N = Var("N")
    X, H, Y = (tensor(name, affine(N) + extra, dtype=dtype) for name, extra in
               (("X", 4), ("H", 2), ("Y", 0)))  # fmt: skip
    (i,) = axes(i=affine(N) + 2)
    v = i.variable
    first = Stage(
        (H,), (i,), (add(add(load(X, v), load(X, v + affine(1))), load(X, v + affine(2))),)
    )
    (i,) = axes(i=affine(N))
    v = i.variable
    second = Stage(
        (Y,), (i,), (add(add(load(H, v), load(H, v + affine(1))), load(H, v + affine(2))),)
    )
    return Definition("blur", (N,), (X,), (), (first, second), (Y,))


def triangle(dtype: DType = f32):
    """S[i] = sum of A[i, k] for k <= i, k < N."""
    M, N = Var("M"), Var("N")
    A, S = tensor("A", M, N, dtype=dtype), tensor("S", M, dtype=dtype)
    i, k = axes(i=M, k=N)
    stage = Stage(
        (S,),
        (i,),
        (load(A, i.variable, k.variable),),
        (k,),
        combiner_of("sum", dtype),
        (affine(i.variable) - k.variable,),
    )
    return Definition("triangle", (M, N), (A,), (), (stage,), (S,))


def band(dtype: DType = f32):
    """S[i] = sum of A[i, k] for i - 2 <= k < i + 2, k < N."""
    M, N = Var("M"), Var("N")
    A, S = tensor("A", M, N, dtype=dtype), tensor("S", M, dtype=dtype)
    i, k = axes(i=M, k=N)
    distance = affine(i.variable) - k.variable
    stage = Stage(
        (S,),
        (i,),
        (load(A, i.variable, k.variable),),
        (k,),
        combiner_of("sum", dtype),
        (distance + 1, 2 - distance),
    )
    return Definition("band", (M, N), (A,), (), (stage,), (S,))


def shift(dtype: DType = f32):
    """Y[i] = X[i - 1] where i > 0, else 0: the load is lazy."""
    N = Var("N")
    X, Y = tensor("X", N, dtype=dtype), tensor("Y", N, dtype=dtype)
    (i,) = axes(i=N)
    v = affine(i.variable)
    condition = Call("gt", (IndexValue(v, i64), Const(0, i64)), bool_)
    zero = Const(0.0 if dtype.kind == "float" else 0, dtype)
    value = Select(condition, Load(X, (v - 1,)), zero, dtype)
    return Definition("shift", (N,), (X,), (), (Stage((Y,), (i,), (value,)),), (Y,))


def through_a_stage(kind: str, dtype: DType = f32):
    """Y[i] = H[i] + H[i], where H reads X reversed, or shifted by one under a condition."""
    N = Var("N")
    X, H, Y = tensor("X", N, dtype=dtype), None, None
    extent = affine(N) if kind == "reversed" else affine(N) + 1
    H, Y = tensor("H", extent, dtype=dtype), tensor("Y", extent, dtype=dtype)
    (i,) = axes(i=extent)
    v = affine(i.variable)
    value: Expr = Load(X, (affine(N) - 1 - v,))
    if kind == "shifted":
        condition = Call("gt", (IndexValue(v, i64), Const(0, i64)), bool_)
        value = Select(condition, Load(X, (v - 1,)), Const(0.0, dtype), dtype)
    first = Stage((H,), (i,), (value,))
    (i,) = axes(i=extent)
    second = Stage((Y,), (i,), (add(load(H, i.variable), load(H, i.variable)),))
    return Definition("through", (N,), (X,), (), (first, second), (Y,))


def gather(dtype: DType = f32):
    """Y[i, j] = X[table[i], j]."""
    M, N, R = Var("M"), Var("N"), Var("R")
    X = tensor("X", R, N, dtype=dtype)
    table = tensor("table", M, dtype=i64)
    Y = tensor("Y", M, N, dtype=dtype)
    i, j = axes(i=M, j=N)
    row = index_from_value(load(table, i.variable))
    stage = Stage(
        (Y,), (i, j), (Load(X, (row, affine(j.variable))),), location=SourceLocation("user.py", 7)
    )
    return Definition("gather", (R, N, M), (X, table), (), (stage,), (Y,))


def argmax(dtype: DType = f32):
    """The maximum of each row and its index, as one stage of two tensors."""
    M, N = Var("M"), Var("N")
    X, V, P = tensor("X", M, N, dtype=dtype), tensor("V", M, dtype=dtype), None
    P = tensor("P", M, dtype=i64)
    i, j = axes(i=M, j=N)
    left = Placeholder("v", dtype), Placeholder("p", i64)
    right = Placeholder("w", dtype), Placeholder("q", i64)
    better = Call("gt", (right[0], left[0]), bool_)
    result = tuple(Select(better, r, a, a.dtype) for a, r in zip(left, right, strict=True))
    identity = (Const(float("-inf"), dtype), Const(0, i64))
    values = (load(X, i.variable, j.variable), IndexValue(affine(j.variable), i64))
    stage = Stage((V, P), (i,), values, (j,), Combiner("argmax", left, right, result, identity))
    return Definition("argmax", (M, N), (X,), (), (stage,), (V, P))


def running_sum(dtype: DType = f32):
    """Y[i, j] = X[i, j] + (Y[i, j - 1] where j > 0 else 0)."""
    M, N = Var("M"), Var("N")
    X, Y = tensor("X", M, N, dtype=dtype), tensor("Y", M, N, dtype=dtype)
    i, j = axes(i=M, j=N)
    vi, vj = affine(i.variable), affine(j.variable)
    condition = Call("gt", (IndexValue(vj, i64), Const(0, i64)), bool_)
    zero = Const(0.0 if dtype.kind == "float" else 0, dtype)
    before = Select(condition, Load(Y, (vi, vj - 1)), zero, dtype)
    stage = Stage((Y,), (i, j), (add(load(X, vi, vj), before),))
    return Definition("running_sum", (M, N), (X,), (), (stage,), (Y,))


# --- schedules --------------------------------------------------------------------------------


def naive(definition: Definition) -> Program:
    nests: list[Stmt] = []
    for stage in definition.stages:
        fresh = {variable: Var(variable.name) for variable in stage.variables}
        guard = tuple(_rename(form, fresh) for form in stage.predicate)
        nest: Stmt = Compute(stage, tuple(affine(fresh[v]) for v in stage.variables), guard)
        for axis in reversed(stage.all_axes):
            nest = For(fresh[axis.variable], axis.extent, "serial", nest)
        nests.append(nest)
    body = sequence(*nests)
    for stage in reversed(definition.stages):
        for made in stage.tensors:
            if made not in definition.outputs:
                body = Alloc(made, (ZERO,) * len(made.shape), made.shape, "global", body)
    return Program(definition, definition.stages, body)


def _rename(form: Affine, fresh: dict[Var, Var]) -> Affine:
    from tensorlang.ir.affine import substitute

    return substitute(form, fresh)


class Schedule:
    """A program that the methods rewrite; loops are found by their variable."""

    def __init__(self, definition: Definition) -> None:
        self.program = naive(definition)

    def loops(self, name: str | None = None) -> tuple[Var, ...]:
        """The variables around the last compute of the stage ``name`` (or of the program)."""
        found: list[tuple[str, tuple[Var, ...]]] = []

        def visit(stmt: Stmt, path: tuple[Var, ...]) -> None:
            match stmt:
                case For():
                    visit(stmt.body, (*path, stmt.variable))
                case Fused():
                    visit(stmt.body, path + stmt.variables)
                case Compute():
                    found.append((stmt.stage.name, path))
                case _:
                    map_children(stmt, lambda child: (visit(child, path), child)[1])

        visit(self.program.body, ())
        return [path for stage, path in found if name in (None, stage)][-1]

    def change(self, transform: Callable[[Stmt], Stmt]) -> None:
        self.program = replace(self.program, body=rewrite(self.program.body, transform))

    def at(self, variable: Var, transform: Callable[[For | Fused], Stmt]) -> None:
        def visit(stmt: Stmt) -> Stmt:
            mine = (isinstance(stmt, For) and stmt.variable is variable) or (
                isinstance(stmt, Fused) and variable in stmt.variables
            )
            return transform(stmt) if mine else stmt

        self.change(visit)

    def split(self, variable: Var, factor: int, tail: str = "auto") -> tuple[Var, Var]:
        outer, inner = Var(f"{variable}.o"), Var(f"{variable}.i")

        def transform(loop: For | Fused) -> Stmt:
            assert isinstance(loop, For)
            position = affine(outer) * factor + inner
            body = substitute_in_stmt(loop.body, {variable: position})
            if loop.extent % factor != ZERO:
                body = guarded(body, loop.extent - 1 - position)
            extent = (loop.extent + (factor - 1)) // factor
            inside = For(inner, affine(factor), "serial", body, tail)
            return For(outer, extent, loop.kind, inside)

        self.at(variable, transform)
        return outer, inner

    def reorder(self, *variables: Var) -> None:
        def visit(stmt: Stmt) -> Stmt:
            chain: list[For] = []
            inner: Stmt = stmt
            while isinstance(inner, For):
                chain.append(inner)
                inner = inner.body
            mine = {loop.variable: loop for loop in chain if loop.variable in variables}
            if len(mine) < len(variables) or chain[0].variable not in variables:
                return stmt
            order = iter(variables)
            new = [mine[next(order)] if loop.variable in mine else loop for loop in chain]
            for loop in reversed(new):
                inner = replace(loop, body=inner)
            return inner

        self.change(visit)

    def kind(self, variable: Var, kind: str) -> None:
        self.at(variable, lambda loop: replace(loop, kind=kind))

    def fuse(self, first: Var, second: Var) -> None:
        def transform(loop: For | Fused) -> Stmt:
            inner = loop.body
            assert isinstance(loop, For)
            assert isinstance(inner, For)
            assert inner.variable is second
            extents = (loop.extent, inner.extent)
            return Fused(Var(f"{first}.{second}"), (first, second), extents, loop.kind, inner.body)

        self.at(first, transform)

    def split_fused(self, variable: Var, size: int) -> tuple[Var, Var]:
        chunk, offset = Var("f.o"), Var("f.i")

        def transform(loop: For | Fused) -> Stmt:
            assert isinstance(loop, Fused)
            total = affine(1)
            for extent in loop.extents:
                total = total * extent
            piece = replace(loop, kind="serial", run=Run(chunk, offset, size), handle=offset)
            return For(chunk, (total + (size - 1)) // size, loop.kind, piece)

        self.at(variable, transform)
        return chunk, offset

    def cache_read(self, source: Tensor, at: Var, scope: str = "global") -> Stage:
        copy = Tensor(f"{source.name}.copy", source.shape, source.dtype)
        stage = copy_stage(copy, source)

        def transform(loop: For | Fused) -> Stmt:
            box = box_of(loop.body, source, write=False)
            body = redirect(loop.body, source, copy)
            nest = copy_nest(stage, box)
            origin, shape = zip(*box, strict=True)
            return replace(loop, body=Alloc(copy, origin, shape, scope, sequence(nest, body)))

        self.at(at, transform)
        self.program = replace(self.program, stages=(*self.program.stages, stage))
        return stage

    def cache_read_all(self, source: Tensor) -> Stage:
        """Copy the whole of an input before everything else."""
        copy = Tensor(f"{source.name}.copy", source.shape, source.dtype)
        stage = copy_stage(copy, source)
        box = [(ZERO, extent) for extent in source.shape]
        body = sequence(copy_nest(stage, box), redirect(self.program.body, source, copy))
        body = Alloc(copy, (ZERO,) * len(box), source.shape, "global", body)
        self.program = replace(self.program, body=body, stages=(*self.program.stages, stage))
        return stage

    def accumulate(
        self, target: Tensor, at: Var, scope: str = "local", copy_in: bool = False
    ) -> None:
        """Redirect the writes of ``target`` inside ``at`` to a copy, and copy it out at the end."""
        copy = Tensor(f"{target.name}.acc", target.shape, target.dtype)
        out, into = copy_stage(target, copy), copy_stage(copy, target)

        def transform(loop: For | Fused) -> Stmt:
            box = box_of(loop.body, target, write=True)
            body = redirect(loop.body, target, copy)
            parts = [copy_nest(into, box)] if copy_in else []
            origin, shape = zip(*box, strict=True)
            return replace(
                loop,
                body=Alloc(copy, origin, shape, scope, sequence(*parts, body, copy_nest(out, box))),
            )

        self.at(at, transform)
        self.program = replace(self.program, stages=(*self.program.stages, out, into))

    def compute_at(self, name: str, at: Var, scope: str = "global") -> None:
        stage = next(stage for stage in self.program.stages if stage.name == name)

        def drop(stmt: Stmt) -> Stmt:
            if isinstance(stmt, Alloc) and stmt.tensor is stage.tensor:
                return stmt.body
            parts = getattr(stmt, "stmts", None)
            if parts is None:
                return stmt
            return sequence(
                *(p for p in parts if any(c.stage is not stage for c in computes_of(p)))
            )

        self.change(drop)

        def transform(loop: For | Fused) -> Stmt:
            box = box_of(loop.body, stage.tensor, write=False)
            nest = copy_nest(stage, box)
            origin, shape = zip(*box, strict=True)
            return replace(
                loop, body=Alloc(stage.tensor, origin, shape, scope, sequence(nest, loop.body))
            )

        self.at(at, transform)


def copy_stage(copy: Tensor, source: Tensor) -> Stage:
    own = tuple(Axis(Var(f"a{n}"), extent) for n, extent in enumerate(source.shape))
    value = Load(source, tuple(affine(axis.variable) for axis in own))
    return Stage((copy,), own, (value,), copies=source)


def guarded(stmt: Stmt, *forms: Affine) -> Stmt:
    def visit(node: Stmt) -> Stmt:
        return replace(node, guard=node.guard + forms) if isinstance(node, Compute) else node

    return rewrite(stmt, visit)


def redirect(stmt: Stmt, source: Tensor, copy: Tensor) -> Stmt:
    def visit(node: Stmt) -> Stmt:
        if not isinstance(node, Compute):
            return node
        uses = source in node.stage.tensors or any(
            read.tensor is source for read in loads_of(*node.stage.values)
        )
        return replace(node, via=(*node.via, (source, copy))) if uses else node

    return rewrite(stmt, visit)


def copy_nest(stage: Stage, box: list[tuple[Affine, Affine]]) -> Stmt:
    """The loops that compute ``box`` (origin, shape) of a stage, clipped to its tensor."""
    variables = [Var(axis.variable.name) for axis in stage.all_axes]
    binding = [origin + v for v, (origin, _) in zip(variables, box, strict=False)]
    guard: list[Affine] = []
    for form, (origin, shape), axis in zip(binding, box, stage.axes, strict=True):
        if (origin, shape) != (ZERO, axis.extent):
            guard.append(axis.extent - 1 - form)
    reductions = variables[len(stage.axes) :]
    nest: Stmt = Compute(stage, (*binding, *map(affine, reductions)), tuple(guard))
    extents = [shape for _, shape in box] + [axis.extent for axis in stage.reduction_axes]
    for variable, extent in reversed(list(zip(variables, extents, strict=True))):
        nest = For(variable, extent, "serial", nest)
    return nest


def box_of(stmt: Stmt, target: Tensor, *, write: bool) -> list[tuple[Affine, Affine]]:
    """Origin and shape of the elements of ``target`` that ``stmt`` touches."""
    from tensorlang.ir.affine import maximum, minimum, substitute

    low: list[Affine] = []
    high: list[Affine] = []

    def visit(node: Stmt, extents: dict[Var, Affine]) -> None:
        match node:
            case For():
                visit(node.body, {**extents, node.variable: node.extent})
            case Fused():
                pairs = zip(node.variables, node.extents, strict=True)
                visit(node.body, {**extents, **dict(pairs)})
            case Compute():
                mapping = dict(zip(node.stage.variables, node.binding, strict=False))
                touched = [
                    [substitute(index, mapping) for index in read.indices]
                    for read in loads_of(*node.stage.values)
                    if read.tensor is target and not write
                ]
                if write and target in node.stage.tensors:
                    touched = [list(node.binding[: len(node.stage.axes)])]
                for indices in touched:
                    box = [bounds(index, extents) for index in indices]
                    assert all(box)
                    lows, highs = [b[0] for b in box], [b[1] for b in box]
                    low[:] = map(minimum, low, lows) if low else lows
                    high[:] = map(maximum, high, highs) if high else highs
            case _:
                map_children(node, lambda child: (visit(child, extents), child)[1])

    visit(stmt, {})
    return [(a, b - a + 1) for a, b in zip(low, high, strict=True)]


def directly_nested(stmt: Stmt, outer: Var, inner: Var) -> bool:
    """Whether the loop ``inner`` is all that the loop ``outer`` holds."""
    from tensorlang.ir.walk import iterate

    return any(
        isinstance(node, For)
        and node.variable is outer
        and isinstance(node.body, For)
        and node.body.variable is inner
        for node in iterate(stmt)
    )
