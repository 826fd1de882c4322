import copy
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorlang.dtypes import bool_, f32, f64, i32, i64
from tensorlang.ir.affine import affine, evaluate, substitute
from tensorlang.ir.definition import Tensor
from tensorlang.ir.expr import (
    Bitcast,
    Call,
    Cast,
    Const,
    IndexValue,
    Load,
    Placeholder,
    Select,
    affine_conditions,
    children,
    expr_variables,
    index_from_value,
    iterate,
    loads_of,
    negated_conditions,
    structural_key,
    value_atom,
)
from tensorlang.ir.lowered import BoundsCheck, Buffer, FlatLoad
from tensorlang.ir.printer import format_expr
from tensorlang.ir.walk import map_indices, replace_placeholders, rewrite_expr, substitute_in_expr
from tests.ir.forms import LOOPS, SIZES, assignments, linear, quasi_affine

I, J, K = LOOPS  # noqa: E741
i, j = affine(I), affine(J)
X = Tensor("X", (affine(8), affine(8)), f64)
TABLE = Tensor("table", (affine(8),), i64)


def load(*indices):
    return Load(X, tuple(map(affine, indices)))


@st.composite
def dags(draw):
    """A random expression over f64 in which nodes are shared."""
    nodes = [load(form.index, 0) for form in draw(st.lists(linear(), min_size=1, max_size=3))]
    nodes.append(Const(draw(st.integers(-3, 3)) / 2, f64))
    for _ in range(draw(st.integers(0, 8))):
        a, b = draw(st.sampled_from(nodes)), draw(st.sampled_from(nodes))
        kind = draw(st.sampled_from(["add", "mul", "neg", "select", "cast"]))
        if kind == "select":
            nodes.append(Select(Call("lt", (a, b), bool_), a, b, f64))
        elif kind == "cast":
            nodes.append(Cast(Cast(a, f32), f64))
        else:
            nodes.append(Call(kind, (a,) if kind == "neg" else (a, b), f64))
    return nodes[-1]


def doubled(times):
    """An expression of ``times`` nodes with 2 ** times paths."""
    value = load(I, J)
    for _ in range(times):
        value = Call("add", (value, value), f64)
    return value


def chain(length):
    value = load(I, J)
    for _ in range(length):
        value = Call("neg", (value,), f64)
    return value


@given(dags())
def test_iteration_visits_each_node_once_operands_first(expr):
    order = list(iterate(expr))
    assert len({id(node) for node in order}) == len(order)
    position = {id(node): number for number, node in enumerate(order)}
    assert order[-1] is expr
    for node in order:
        assert all(position[id(child)] < position[id(node)] for child in children(node))


@given(dags())
def test_copies_are_built_alike(expr):
    rebuilt = rewrite_expr(expr, lambda node: copy.copy(node))
    assert rebuilt is not expr
    assert structural_key(rebuilt) == structural_key(expr)
    assert rebuilt == expr
    assert rewrite_expr(expr, lambda node: node) is expr


@given(dags(), dags())
def test_keys_are_equal_exactly_for_equal_expressions(left, right):
    assert (structural_key(left) == structural_key(right)) == (left == right)


def test_sharing_does_not_show_in_keys():
    once = load(I, J)
    shared = Call("add", (once, once), f64)
    apart = Call("add", (load(I, J), load(I, J)), f64)
    assert structural_key(shared) == structural_key(apart)


def test_keys_tell_dtypes_and_tensors_apart():
    other = Tensor("X", X.shape, f64)
    assert structural_key(load(I, J)) != structural_key(Load(other, (i, j)))
    assert structural_key(Const(1.0, f32)) != structural_key(Const(1.0, f64))
    assert structural_key(Cast(load(I, J), f32)) != structural_key(Bitcast(load(I, J), f32))
    one, two = Buffer("b", f64, affine(4)), Buffer("b", f64, affine(4))
    assert structural_key(FlatLoad(one, i)) != structural_key(FlatLoad(two, i))
    assert structural_key(FlatLoad(one, i)) != structural_key(FlatLoad(one, j))


@pytest.mark.parametrize("make", [lambda: doubled(400), lambda: chain(3000)])
def test_walks_are_linear_and_not_recursive(make):
    expr = make()
    count = len(list(iterate(expr)))
    assert count <= 3001
    visited = []
    rewritten = rewrite_expr(expr, lambda node: visited.append(node) or node)
    assert len(visited) == count
    assert rewritten is expr
    moved = substitute_in_expr(expr, {I: j + 1})
    assert len(list(iterate(moved))) == count
    assert len(structural_key(expr).rows) == count
    assert expr_variables(moved) == {J}
    assert len(loads_of(expr)) == 1


@given(dags(), st.dictionaries(st.sampled_from(LOOPS), quasi_affine(), max_size=2))
def test_substitution_reaches_every_index(expr, replacements):
    mapping = {v: form.index for v, form in replacements.items()}
    moved = substitute_in_expr(expr, mapping)
    for old, new in zip(loads_of(expr), loads_of(moved), strict=True):
        assert new.indices == tuple(substitute(index, mapping) for index in old.indices)


@given(dags())
def test_pickle_keeps_structure_and_sharing(expr):
    # the variables first, so that their order, in which terms are printed, stays
    _, copied, tensor = pickle.loads(pickle.dumps(((*LOOPS, *SIZES), expr, X)))
    assert len(list(iterate(copied))) == len(list(iterate(expr)))
    assert all(node.tensor is tensor for node in loads_of(copied))
    assert format_expr(copied) == format_expr(expr)


def test_indices_inside_data_are_substituted():
    gathered = Load(X, (index_from_value(Load(TABLE, (i + 1,))), j))
    assert expr_variables(gathered) == {I, J}
    moved = substitute_in_expr(gathered, {I: j * 2})
    assert expr_variables(moved) == {J}
    assert format_expr(moved) == "X[int(table[2 * j + 1]), j]"
    assert [node.tensor for node in loads_of(moved)] == [TABLE, X]


def test_flat_loads_are_mapped_with_their_checks():
    buffer = Buffer("x", f64, affine(64))
    inner = FlatLoad(Buffer("table", i64, affine(8)), i)
    index = affine(value_atom(inner))
    node = FlatLoad(buffer, index * 8 + J, (BoundsCheck(index, affine(8), 0),))
    moved = map_indices(node, lambda form: substitute(form, {I: affine(3)}))
    assert expr_variables(moved) == {J}
    assert moved.checks[0].index == affine(value_atom(FlatLoad(inner.buffer, affine(3))))


def test_placeholders_are_replaced():
    a, b = Placeholder("a", f64), Placeholder("b", f64)
    total = Call("add", (a, b), f64)
    replaced = replace_placeholders(total, {a: load(I, J), b: Const(1.0, f64)})
    assert format_expr(replaced) == "X[i, j] + 1"


# --- indices from values -------------------------------------------------------------------------


def test_linear_arithmetic_on_data_is_linear():
    element = Load(TABLE, (i,))
    atom = affine(value_atom(element))
    two, one = Const(2, i64), Const(1, i64)
    doubled_element = Call("mul", (element, two), i64)
    assert index_from_value(Call("add", (doubled_element, one), i64)) == atom * 2 + 1
    assert index_from_value(Call("mul", (two, element), i64)) == atom * 2
    assert index_from_value(Call("sub", (element, IndexValue(j, i64)), i64)) == atom - j
    assert index_from_value(Cast(Const(5, i32), i64)) == affine(5)


def test_narrow_arithmetic_may_wrap_and_stays_as_it_is():
    narrow = Tensor("narrow", (affine(8),), i32)
    element = Load(narrow, (i,))
    product = Cast(Call("mul", (element, Const(2, i32)), i32), i64)
    index = index_from_value(product)
    assert index == affine(value_atom(product))
    assert index != affine(value_atom(element)) * 2
    # a plain element does not wrap
    assert index_from_value(Cast(element, i64)) == affine(value_atom(element))


@given(quasi_affine(), assignments())
def test_an_index_as_value_and_back(form, values):
    index = index_from_value(IndexValue(form.index, i64))
    assert evaluate(index, values) == form.value(values)


# --- conditions ----------------------------------------------------------------------------------

COMPARISONS = {
    "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
    "eq": np.equal, "ne": np.not_equal,
}  # fmt: skip


@st.composite
def conditions(draw, depth=2):
    """A condition over indices, and the function that decides it."""
    kind = draw(st.sampled_from(["compare"] * 3 + ["and", "or", "not"] if depth else ["compare"]))
    if kind == "compare":
        name = draw(st.sampled_from(sorted(COMPARISONS)))
        left, right = draw(linear()), draw(linear())
        expr = Call(name, (IndexValue(left.index, i64), IndexValue(right.index, i64)), bool_)
        return expr, lambda v: bool(COMPARISONS[name](left.value(v), right.value(v)))
    first, decide_first = draw(conditions(depth - 1))
    if kind == "not":
        return Call("not", (first,), bool_), lambda v: not decide_first(v)
    second, decide_second = draw(conditions(depth - 1))
    expr = Call(kind, (first, second), bool_)
    if kind == "and":
        return expr, lambda v: decide_first(v) and decide_second(v)
    return expr, lambda v: decide_first(v) or decide_second(v)


@given(conditions(), assignments(-5, 5))
def test_affine_conditions_hold_exactly_where_the_condition_does(condition, values):
    expr, decide = condition
    forms = affine_conditions(expr)
    if forms is not None:
        assert all(evaluate(form, values) >= 0 for form in forms) == decide(values)
    forms = negated_conditions(expr)
    if forms is not None:
        assert all(evaluate(form, values) >= 0 for form in forms) == (not decide(values))


def test_conditions_on_data_are_not_affine():
    data = Call("lt", (load(I, J), Const(1.0, f64)), bool_)
    assert affine_conditions(data) is None
    assert negated_conditions(data) is None
    both = Call("and", (data, Call("lt", (IndexValue(i, i64), Const(3, i64)), bool_)), bool_)
    assert affine_conditions(both) is None


def test_a_fractional_literal_is_no_index():
    half = Call("lt", (IndexValue(i, i64), Const(0.5, f64)), bool_)
    assert affine_conditions(half) is None
