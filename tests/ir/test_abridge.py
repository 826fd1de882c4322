"""Text of expressions whose tree is far larger than their graph."""

import time

from hypothesis import given
from hypothesis import strategies as st

from tensorlang.dtypes import f32, i64
from tensorlang.ir.abridge import abridged
from tensorlang.ir.affine import Var, affine
from tensorlang.ir.definition import Tensor
from tensorlang.ir.expr import Call, Load, index_from_value
from tensorlang.ir.printer import format_expr

I, N = Var("i"), Var("N")  # noqa: E741
X = Tensor("X", (affine(N),), f32)
T = Tensor("T", (affine(N),), i64)


def doubled(times):
    expr = Load(X, (affine(I),))
    for _ in range(times):
        expr = Call("add", (expr, expr), f32)
    return expr


@given(st.integers(0, 10))
def test_what_fits_is_left_alone(times):
    expr = doubled(times)
    assert abridged(expr) is expr
    assert format_expr(expr).count("X[i]") == 2**times


@given(st.integers(13, 3_000))
def test_text_stays_short_however_often_nodes_are_shared(times):
    text = format_expr(doubled(times))
    assert len(text) < 100_000
    assert "..." in text


@given(st.integers(100, 5_000))
def test_a_deep_chain_shows_its_last_steps(depth):
    expr = Load(X, (affine(I),))
    for step in range(depth):
        expr = Call("mul", (Call("exp", (expr,), f32), Load(X, (affine(I) + step,))), f32)
    text = format_expr(expr)
    assert text.endswith(f" * X[i + {depth - 1}]")
    assert "(...)" in text or "... *" in text


def test_values_inside_indices_count():
    value = Load(T, (affine(I),))
    for _ in range(14):
        index = index_from_value(Call("mul", (value, value), i64))
        value = Load(T, (index,))
    start = time.perf_counter()
    assert format_expr(value) == "T[...]"
    assert time.perf_counter() - start < 10
