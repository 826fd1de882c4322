import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorlang.dtypes import bool_, f32, f64, i32, i64
from tensorlang.ir.affine import Var, affine, evaluate
from tensorlang.ir.definition import Scalar, Stage, Tensor
from tensorlang.ir.expr import Bitcast, Call, Cast, Const, IndexValue, Load, ScalarRef, Select
from tensorlang.ir.lowered import Allocate, Buffer, FlatLoad, LoweredProgram, Store
from tensorlang.ir.printer import (
    format_combiner,
    format_condition,
    format_definition,
    format_expr,
    format_lowered,
    format_program,
    format_stmt,
)
from tensorlang.ir.program import Alloc, Compute, For, Fused, If, Layout, Run, Seq
from tests.interpreter.programs import Matmul, axes, combiner, definition, loops, naive_program
from tests.ir.forms import LOOPS, SIZES, assignments, linear, quasi_affine

I, J, K = LOOPS  # noqa: E741
M, N = SIZES
i, j, k, m, n = map(affine, (I, J, K, M, N))
X = Tensor("X", (m, n), i64)

BINARY = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "floordiv": lambda a, b: a // b,
    "mod": lambda a, b: a % b,
    "pow": lambda a, b: a**b,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "shl": lambda a, b: a << b,
    "shr": lambda a, b: a >> b,
}
COMPARE = {
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
}
UNARY = {"neg": lambda a: -a, "not": lambda a: ~a}


class Elements:
    """X[a, b] as a number that depends on both indices."""

    def __getitem__(self, index):
        return (3 * index[0] + 5 * index[1]) % 7 - 3


def leaves():
    return st.one_of(
        st.integers(-4, 4).map(lambda c: (Const(c, i64), lambda v: c)),
        quasi_affine().map(lambda f: (IndexValue(f.index, i64), f.value)),
        st.tuples(linear(), linear()).map(
            lambda p: (
                Load(X, (p[0].index, p[1].index)),
                lambda v: Elements()[p[0].value(v), p[1].value(v)],
            )
        ),
    )


def binary(name, a, b):
    return Call(name, (a[0], b[0]), i64), lambda v: BINARY[name](a[1](v), b[1](v))


def unary(name, a):
    return Call(name, (a[0],), i64), lambda v: UNARY[name](a[1](v))


def comparison(name, a, b):
    return Call(name, (a[0], b[0]), bool_), lambda v: COMPARE[name](a[1](v), b[1](v))


def select(name, a, b):
    condition = comparison(name, a, b)
    return (
        Select(condition[0], a[0], b[0], i64),
        lambda v: a[1](v) if condition[1](v) else b[1](v),
    )


def exprs():
    return st.recursive(
        leaves(),
        lambda inner: st.one_of(
            st.builds(binary, st.sampled_from(sorted(BINARY)), inner, inner),
            st.builds(comparison, st.sampled_from(sorted(COMPARE)), inner, inner),
            st.builds(select, st.sampled_from(sorted(COMPARE)), inner, inner),
            st.builds(unary, st.sampled_from(sorted(UNARY)), inner),
        ),
        max_leaves=6,
    )


@given(exprs(), assignments(-3, 3, (1, 4)))
def test_printed_expressions_are_python(pair, values):
    expr, expected = pair
    names = {v.name: value for v, value in values.items()} | {
        "X": Elements(),
        "where": lambda c, a, b: a if c else b,
        "min": min,
    }
    try:
        value = expected(values)
    except (ArithmeticError, ValueError, TypeError, MemoryError):
        return  # no value, or too large a one
    if isinstance(value, complex):
        return
    assert eval(format_expr(expr), {}, names) == value


@given(linear(), assignments())
def test_printed_conditions_are_python(form, values):
    names = {v.name: value for v, value in values.items()}
    assert eval(format_condition(form.index), {}, names) == (evaluate(form.index, values) >= 0)


@pytest.mark.parametrize(
    ("form", "text"),
    [
        (m - 1 - i * 6 - j, "6 * i + j < M"),
        (i - j, "j < i + 1"),
        (i, "i >= 0"),
        (-i, "i < 1"),
        (i - 3, "i - 3 >= 0"),
        (affine(0), "0 >= 0"),
        (affine(-2), "-2 >= 0"),
    ],
)
def test_conditions_as_people_write_them(form, text):
    assert format_condition(form) == text


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (Const(2.0, f32), "2"),
        (Const(0.5, f32), "0.5"),
        (Const(-math.inf, f32), "-inf"),
        (Const(math.nan, f32), "nan"),
        (Const(True, bool_), "True"),
        (Call("exp", (Const(1.5, f32),), f32), "exp(1.5)"),
        (Cast(IndexValue(i + 1, i64), f32), "f32(i + 1)"),
        (Bitcast(Const(1, i32), f32), "bitcast(1, f32)"),
        (ScalarRef(Scalar("alpha", f32)), "alpha"),
        (FlatLoad(Buffer("x", f32, n), i * 4), "x[4 * i]"),
        (Load(Tensor("s", (), f32), ()), "s[()]"),
        (Call("mul", (IndexValue(i + 1, i64), Const(2, i64)), i64), "(i + 1) * 2"),
        (Call("mul", (IndexValue(affine(Var("i.o")), i64), Const(-2, i64)), i64), "i.o * -2"),
        (Call("pow", (Const(-2, i64), Const(2, i64)), i64), "(-2) ** 2"),
        (Call("fma", (Const(1, f64),) * 3, f64), "fma(1, 1, 1)"),
    ],
)
def test_text_of_expressions(expr, text):
    assert format_expr(expr) == text


def lines(stmt):
    return "\n".join(format_stmt(stmt))


def test_a_naive_matmul():
    op = Matmul()
    assert format_program(naive_program(op.definition)) == (
        "def f(A: f32[M, K], B: f32[K, N]) -> f32[M, N]:\n"
        "    for i in M:\n"
        "        for j in N:\n"
        "            C[i, j] = 0\n"
        "    for i in M:\n"
        "        for j in N:\n"
        "            for k in K:\n"
        "                C[i, j] += A[i, k] * B[k, j]"
    )
    assert format_definition(op.definition) == (
        "def f(A: f32[M, K], B: f32[K, N]) -> f32[M, N]:\n"
        "    C[i < M, j < N] = sum(A[i, k] * B[k, j] for k < K)"
    )
    assert format_combiner(op.stage.combiner) == "(a), (b) -> a + b"


def test_every_statement():
    op = Matmul()
    local, p, q = Tensor("C.local", op.c.shape, f32), Var("p"), Var("q")
    guard = (affine(op.m) - 1 - i,)
    update = op.update(i, j, k, guard=guard, via=((op.c, local),))
    layout = Layout((p, q), (affine(q), affine(p)), (affine(6), affine(8)))
    box = Alloc(local, (i * 8, affine(0)), (affine(8), affine(6)), "local", update, layout)
    assert lines(For(I, n, "parallel", box, "guard", (("ahead", 2),))) == (
        "parallel for i in N:  # tail=guard, ahead=2\n"
        "    C.local = local f32[8, 6] at [8 * i, 0] laid out (p, q) -> (q, p)\n"
        "    C.local[i, j] += A[i, k] * B[k, j]  # if i < M"
    )
    c = Var("c")
    run = Fused(Var("f"), (I, J), (m, n), "serial", Seq(()), Run(c, Var("o"), 4))
    assert lines(run) == "for f = (i, j) in (M, N)[4 * c : + 4]:\n    pass"
    y = Buffer("y", f32, n)
    t = Buffer("t", f32, affine(8), "local")
    store = Store(((y, i), (t, affine(0))), (Const(1.0, f32), FlatLoad(t, affine(1))))
    both = Allocate(t, If((i - 1,), store, Seq(())), zeroed=True)
    assert lines(both) == (
        "t = local f32[8]  # zeroed\nif i - 1 >= 0:\n    y[i], t[0] = 1, t[1]\nelse:\n    pass"
    )
    program = LoweredProgram("f", (N,), (Scalar("alpha", f32),), (), (y,), both)
    assert format_lowered(program).splitlines()[0] == "def f(y: f32[N], alpha: f32, N):"


def test_marks_follow_their_line():
    op = Matmul()
    init = op.init(i, j)
    text = "\n".join(format_stmt(loops([(I, op.m)], init), mark=lambda s: "  <--" * (s is init)))
    assert text == "for i in M:\n    C[i, j] = 0  <--"


def test_reductions_with_other_combiners_and_predicates():
    x, y, r = Tensor("X", (n,), f32), Tensor("Y", (), f32), Var("k")
    top = combiner("max", "maximum", -math.inf, f32)
    load = Load(x, (affine(r),))
    stage = Stage((y,), (), (load,), axes((r, n)), top, predicate=(affine(3) - r,))
    op = definition((x,), (stage,), (y,), (N,))
    assert format_definition(op).splitlines()[1] == "    Y[()] = max(X[k] for k < N if k < 4)"
    assert lines(Compute(stage, (i,), part="update")) == "Y[()] = max(Y[()]; X[i])"
    assert lines(Compute(stage, (), part="init")) == "Y[()] = -inf"
