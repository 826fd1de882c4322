"""Small definitions and scheduled programs, written out by hand."""

from tensorlang.dtypes import bool_, f32, i64
from tensorlang.ir.affine import Var, affine
from tensorlang.ir.definition import Axis, Combiner, Definition, Stage, Tensor
from tensorlang.ir.expr import Call, Const, IndexValue, Load, Placeholder, Select
from tensorlang.ir.program import Alloc, Compute, For, Program, Seq


def call(function, *args):
    dtype = bool_ if function in ("lt", "le", "gt", "ge", "eq", "ne") else args[0].dtype
    return Call(function, args, dtype)


def index_value(form):
    return IndexValue(affine(form), i64)


def less(left, right):
    return call("lt", index_value(left), index_value(right))


def combiner(name, function, identity, dtype):
    left, right = Placeholder("a", dtype), Placeholder("b", dtype)
    return Combiner(
        name, (left,), (right,), (call(function, left, right),), (Const(identity, dtype),)
    )


def axes(*pairs):
    return tuple(Axis(variable, affine(extent)) for variable, extent in pairs)


def definition(inputs, stages, outputs, sizes, **more):
    return Definition("f", tuple(sizes), tuple(inputs), (), tuple(stages), tuple(outputs), **more)


def program(op, body):
    return Program(op, op.stages, body)


def loops(pairs, body):
    """Loops around ``body``: (variable, extent) or (variable, extent, kind), outermost first."""
    for variable, extent, *kind in reversed(pairs):
        body = For(variable, affine(extent), kind[0] if kind else "serial", body)
    return body


def naive(stage):
    """Return the loops of a stage with its init placed, all with fresh variables."""

    def nest(part, stage_axes):
        fresh = [Var(axis.variable.name) for axis in stage_axes]
        mapping = dict(zip([axis.variable for axis in stage_axes], fresh, strict=True))
        from tensorlang.ir.affine import substitute

        guard = stage.predicate if part == "update" else ()
        compute = Compute(
            stage,
            tuple(map(affine, fresh)),
            tuple(substitute(form, mapping) for form in guard),
            part=part,
        )
        pairs = [
            (variable, substitute(axis.extent, mapping))
            for variable, axis in zip(fresh, stage_axes, strict=True)
        ]
        return loops(pairs, compute)

    if stage.combiner is None:
        return nest("whole", stage.axes)
    return Seq((nest("init", stage.axes), nest("update", stage.all_axes)))


def naive_program(op):
    body = Seq(tuple(map(naive, op.stages)))
    for stage in op.stages:
        for tensor in stage.tensors:
            if tensor not in op.outputs:
                zeros = tuple(affine(0) for _ in tensor.shape)
                body = Alloc(tensor, zeros, tensor.shape, "global", body)
    return program(op, body)


class Matmul:
    """C[i, j] = sum over k of A[i, k] * B[k, j]."""

    def __init__(self, dtype=f32):
        self.m, self.n, self.k = m, n, k = Var("M"), Var("N"), Var("K")
        self.a = Tensor("A", (affine(m), affine(k)), dtype)
        self.b = Tensor("B", (affine(k), affine(n)), dtype)
        self.c = Tensor("C", (affine(m), affine(n)), dtype)
        i, j, r = Var("i"), Var("j"), Var("k")
        product = call(
            "mul",
            Load(self.a, (affine(i), affine(r))),
            Load(self.b, (affine(r), affine(j))),
        )
        self.stage = Stage(
            (self.c,), axes((i, m), (j, n)), (product,), axes((r, k)),
            combiner("sum", "add", 0, dtype),
        )  # fmt: skip
        self.definition = definition((self.a, self.b), (self.stage,), (self.c,), (m, n, k))

    def sizes(self, m, n, k):
        return {self.m: m, self.n: n, self.k: k}

    def init(self, *binding, **more):
        return Compute(self.stage, tuple(map(affine, binding)), part="init", **more)

    def update(self, *binding, **more):
        return Compute(self.stage, tuple(map(affine, binding)), part="update", **more)


class Map:
    """Y[i] = X[i] + 1, or any other value of x and the axis."""

    def __init__(self, value=None, dtype=f32, name="Y"):
        self.n = Var("N")
        self.x = Tensor("X", (affine(self.n),), dtype)
        self.y = Tensor(name, (affine(self.n),), dtype)
        self.i = Var("i")
        load = Load(self.x, (affine(self.i),))
        body = call("add", load, Const(1, dtype)) if value is None else value(self)
        self.stage = Stage((self.y,), axes((self.i, self.n)), (body,))
        self.definition = definition((self.x,), (self.stage,), (self.y,), (self.n,))

    def compute(self, binding, **more):
        return Compute(self.stage, (affine(binding),), **more)


def where(condition, then, otherwise):
    return Select(condition, then, otherwise, then.dtype)
