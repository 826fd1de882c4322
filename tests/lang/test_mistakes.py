"""Every listed mistake is caught at the user's own line, and the message says what to write."""

from __future__ import annotations

import inspect
import math
import sys
from typing import Any

import numpy as np
import pytest

import tensorlang as tl
from tensorlang.errors import DefinitionError, TensorlangError

M, N, K = tl.dims("M N K")
OTHER_N = tl.dim("N")
HERE = __file__


def if_in_comprehension(x: tl.f32[N]):
    return tl.tensor(x[i] for i in N if i > 0)


def false_if(x: tl.f32[N]):
    return tl.tensor(x[i] for i in N if N is None)


def conditional_expression(x: tl.f32[N]):
    return tl.tensor(x[i] if x[i] > 0 else 0 for i in N)


def and_(x: tl.f32[N]):
    return tl.tensor(tl.where(i > 0 and i < 3, x[i], 0) for i in N)


def chained(x: tl.f32[N]):
    return tl.tensor(tl.where(0 < i < 3, x[i], 0) for i in N)


def not_(x: tl.f32[N]):
    return tl.tensor(tl.where(not x[i] > 0, x[i], 0) for i in N)


def statement(x: tl.f32[N]):
    if N > 3:
        return x
    return x


def builtin_sum(x: tl.f32[N]):
    return tl.tensor(sum(x[i] for j in N) for i in N)


def builtin_max(x: tl.f32[N]):
    return max(x[i] for i in N)


def builtin_any(x: tl.f32[N]):
    return tl.tensor(any(x[i] > 0 for i in N) for j in N)


def builtin_range(x: tl.f32[N]):
    return tl.tensor(x[i] for i in range(N))


def list_index(x: tl.f32[N]):
    return tl.tensor(x[i] * [1, 2][i] for i in N)


def builtin_max_of_two(x: tl.f32[N]):
    return tl.tensor(max(x[i], 0) for i in N)


def builtin_combiner(x: tl.f32[N]):
    return tl.scan(max, -tl.inf, (x[i] for i in N))


def decimal_digits(x: tl.f32[N]):
    return tl.tensor(round(x[i], 2) for i in N)


def numpy_reduction(x: tl.f32[N]):
    return np.sum(x)


def numpy_accumulation(x: tl.f32[N]):
    return np.add.accumulate(x)


def assigned_element(x: tl.f32[N]):
    y = tl.tensor(x[i] for i in N)
    y[0] = 1
    return y


def length(x: tl.f32[N]):
    return tl.tensor(x[i] / len(x) for i in N)


def matrix_product(x: tl.f32[N, N]):
    return x @ x


def float_size(x: tl.f32[N]):
    return tl.tensor(x[i] for i in N / 2)


def returns_comprehension(x: tl.f32[N]):
    return (x[i] for i in N)


def rank_of_matrix(x: tl.f32[M, N]):
    return tl.tensor(x[i] for i in M)


def range_of_int(x: tl.f32[N]):
    return tl.tensor(x[i] for i in range(4))


def outer_range_of_int(x: tl.f32[N]):
    return tl.tensor(x[i] for j in range(4) for i in N)


def for_statement(x: tl.f32[N]):
    for _ in N:
        pass
    return x


def zipped(x: tl.f32[N]):
    return tl.tensor(x[i] + x[j] for i, j in zip(N, N, strict=True))


def enumerated(x: tl.f32[N]):
    return tl.tensor(x[i] + n for n, i in enumerate(N))


def list_of(x: tl.f32[N]):
    return tl.tensor(len([x[j] for j in N]) for i in N)


def unbound(x: tl.f32[N]):
    return tl.tensor(x[i] for i in N for j in K)


def unbound_value(x: tl.f32[N]):
    return tl.tensor(x[i] / K for i in N)


def two_of_one_name(x: tl.f32[N]):
    return tl.tensor(x[i] for i in OTHER_N)


def rank(x: tl.f32[N]):
    return tl.tensor(x[i, i] for i in N)


def float_index(x: tl.f32[N]):
    return tl.tensor(x[x[i]] for i in N)


def bool_index(x: tl.f32[N]):
    return tl.tensor(x[True] for i in N)


def slice_index(x: tl.f32[N]):
    return tl.tensor(x[1:][i] for i in N)


def negative_index(x: tl.f32[N]):
    return tl.tensor(x[-1] for i in N)


def same_variable(x: tl.f32[M, N]):
    return tl.tensor(x[i, i] for i in M for i in N)


def iterated_tensor(x: tl.f32[N]):
    return tl.tensor(a for a in x)


def whole_tensor(x: tl.f32[N]):
    return tl.tensor(x for i in N)


def tensor_arithmetic(x: tl.f32[N]):
    return x + 1


def math_function(x: tl.f32[N]):
    return tl.tensor(math.exp(x[i]) for i in N)


def no_comprehension(x: tl.f32[N]):
    return tl.sum(x)


def used_twice(x: tl.f32[N]):
    rows = (x[i] for i in N)
    return tl.sum(rows), tl.sum(rows)


def lower_bound(x: tl.f32[N]):
    return tl.tensor(x[i] for i in tl.range(1, N))


def leaked_axis(x: tl.f32[N]):
    seen = []
    tl.tensor((seen.append(i), x[i])[1] for i in N)
    return tl.tensor(x[seen[0]] for j in N)


def dependent_tensor(x: tl.f32[N]):
    return tl.tensor(tl.tensor(x[j] * i for j in N)[i] for i in N)


def returns_string(x: tl.f32[N]):
    return "x"


def returns_nothing(x: tl.f32[N]):
    tl.tensor(x[i] for i in N)


def symbolic_attribute(x: tl.f32[N]):
    return shifted(x, by=N)


def not_commutative(x: tl.f32[N]):
    return tl.reduce(lambda a, b: b, 0, (x[i] for i in N))


def not_associative(x: tl.f32[N]):
    return tl.reduce(lambda a, b: abs(a - b), 0, (abs(x[i]) for i in N))


def no_identity(x: tl.f32[N]):
    return tl.reduce(lambda a, b: a + b, 1, (x[i] for i in N))


def nan_identity(x: tl.f32[N]):
    return tl.reduce(lambda a, b: a + b, tl.nan, (x[i] for i in N))


def wrong_state(x: tl.f32[N]):
    return tl.reduce(lambda a, b: (a, b), 0, (x[i] for i in N))


def wrong_dtype(x: tl.i32[N]):
    return tl.reduce(lambda a, b: a + tl.cast(b, tl.f64), 0, (x[i] for i in N))


def scan_of_two_axes(x: tl.f32[M, N]):
    return tl.scan(tl.maximum, 0, (x[i, j] for i in M for j in N))


def numpy_function(x: tl.f32[N]):
    return tl.tensor(np.logaddexp(x[i], 1) for i in N)


@tl.compute
def shifted(x: tl.f32[N], *, by: int = 0):
    return tl.tensor(x[i] + by for i in N)


NO_VALUE = "an expression stands for every element at once and has no truth value"
BITWISE = "write & for `and`, | for `or`, ~ for `not`, with parentheses around each comparison"
NOT_KNOWN = "whose value is not known while the operator is traced"
PYTHON_LOOP = (
    "write a comprehension inside tl.tensor, tl.sum, tl.max, tl.min, tl.any, tl.all or tl.reduce"
)
SEVERAL = (
    "a loop in the comprehension of tl.tensor runs over a Python iterable with several elements; "
    "write tl.range for a loop over a fixed number of points (or build the expression with a "
    "Python loop outside the comprehension)"
)

MESSAGES: dict[Any, str] = {
    if_in_comprehension: (
        f"`if` in a comprehension tests an expression, but {NO_VALUE}; write tl.where(condition, "
        "a, b) in its body (or & for `and`, | for `or`)"
    ),
    false_if: (
        "the comprehension of tl.tensor yields nothing: a loop in it runs over an empty Python "
        "iterable, or its `if` is false"
    ),
    builtin_sum: f"the builtin sum iterates over the size N, {NOT_KNOWN}; write tl.sum",
    builtin_max: f"the builtin max iterates over the size N, {NOT_KNOWN}; write tl.max",
    builtin_any: f"the builtin any is applied to an expression, but {NO_VALUE}; write tl.any",
    builtin_range: (
        "the builtin range needs the value of N, which is not known while the operator is traced; "
        "write `for i in N`, or tl.range"
    ),
    list_index: (
        "i is used where Python needs an integer (range, a list index, a slice), but its value is "
        "not known while the operator is traced; for a loop write tl.range, for an element index "
        "a tensor parameter"
    ),
    builtin_max_of_two: (
        f"the builtin max is applied to an expression, but {NO_VALUE}; write tl.maximum(a, b), or "
        "tl.max(x[i] for i in N)"
    ),
    builtin_combiner: "the builtin max cannot combine states; write tl.maximum",
    decimal_digits: "round(x[i], 2) keeps decimal digits; write tl.round(x * scale) / scale",
    numpy_reduction: "NumPy cannot reduce what is traced; write tl.sum(x[i] for i in N)",
    numpy_accumulation: "np.add.accumulate cannot be traced; use tensorlang's own functions",
    assigned_element: (
        "an element of y is assigned to, but each element has one value: make another tensor, with "
        "tl.where for the elements that differ"
    ),
    length: "len(x) is not known while the operator is traced; write x.shape[0]",
    matrix_product: (
        "x @ x has no meaning here; write the sum that it stands for: "
        "tl.tensor(tl.sum(a[i, k] * b[k, j] for k in K) for i in M for j in N)"
    ),
    float_size: (
        "N / 2 (f64) is iterated; a loop runs over a size, which is made of dims and integers with "
        "+ - * // %"
    ),
    range_of_int: SEVERAL,
    outer_range_of_int: SEVERAL,
    for_statement: (
        f"Python itself iterates over the size N (a builtin, or a `for` statement), {NOT_KNOWN}; "
        f"{PYTHON_LOOP}"
    ),
    zipped: (
        f"Python itself iterates over the size N (a builtin, or a `for` statement), {NOT_KNOWN}; "
        f"{PYTHON_LOOP}"
    ),
    enumerated: (
        f"Python itself iterates over the size N (a builtin, or a `for` statement), {NOT_KNOWN}; "
        f"{PYTHON_LOOP}"
    ),
    list_of: (
        f"Python itself iterates over the size N (a builtin, or a `for` statement), {NOT_KNOWN}; "
        f"{PYTHON_LOOP}"
        if sys.version_info < (3, 12)  # later, a list's loops are those of what is around it
        else "the comprehension of tl.tensor has a loop over N whose variable is gone when its "
        "body is reached: two loops share one name, or a Python builtin (next, any, sum, max) "
        "consumed an inner comprehension"
    ),
    unbound: (
        "the size K is not bound in unbound: no parameter's shape has it; add a keyword parameter "
        "`K: tl.Dim` after a `*`, or use x.shape"
    ),
    unbound_value: (
        "the size K is not bound in unbound_value: no parameter's shape has it; add a keyword "
        "parameter `K: tl.Dim` after a `*`, or use x.shape"
    ),
    two_of_one_name: (
        "two different dims are called N in two_of_one_name; make each with one tl.dims call and "
        "use that object everywhere"
    ),
    rank: "x has 1 axis, but 2 indices are given: x[i, i]; write x[i]",
    rank_of_matrix: "x has 2 axes, but 1 index is given: x[i]; write x[i, j]",
    float_index: (
        "index 0 of x must be an integer, not f32; // divides integers, and tl.cast(x, tl.i64) "
        "makes one of a value that counts elements"
    ),
    bool_index: "x is indexed by a bool; write tl.where",
    slice_index: (
        "x is indexed by a slice; a definition names single elements: write a comprehension over "
        "the part that is wanted"
    ),
    negative_index: (
        "x is indexed by -1; negative indices do not count from the end here: write N - 1"
    ),
    same_variable: (
        "the comprehension of tl.tensor has a loop over M whose variable is gone when its body is "
        "reached: two loops share one name, or a Python builtin (next, any, sum, max) consumed an "
        "inner comprehension"
    ),
    iterated_tensor: ("x is iterated; loop over a size and index: x[i] for i in x.shape[0]"),
    whole_tensor: "the body of tl.tensor is the tensor x; index it",
    tensor_arithmetic: (
        "x has 1 axis and is used as a number; index it inside tl.tensor(... for i in ...)"
    ),
    math_function: (
        "x[i] is used where Python needs a number (float(), the math module), but its value is "
        "not known while the operator is traced; use tl.cast, tl.exp, tl.sqrt, ..."
    ),
    no_comprehension: ("tl.sum takes a comprehension, as in tl.sum(X[i] for i in N), not x"),
    used_twice: "this comprehension was used before it came to tl.sum",
    lower_bound: (
        "the axis i of tl.tensor must run from 0 to an extent that depends on sizes alone; lower "
        "bounds, and bounds that depend on other axes, are for reductions (shift the index "
        "instead)"
    ),
    leaked_axis: (
        "the axis i is used outside of its comprehension (a builtin such as sum or max around an "
        "inner comprehension does this too)"
    ),
    dependent_tensor: (
        "tl.tensor inside a comprehension depends on the axis i of that comprehension; make it a "
        "tensor of its own, with that axis, before"
    ),
    symbolic_attribute: (
        "shifted: the attribute by must be a Python value, not the symbolic N; declare a size as "
        "`by: tl.Dim`"
    ),
    scan_of_two_axes: "tl.scan runs along exactly one axis, from 0: give it one loop",
    numpy_function: "np.logaddexp cannot be traced; use tensorlang's own functions",
    wrong_state: (
        "combine returns 2 components, but a state has 1: the comprehension's body, the identity "
        "and combine's result must be alike"
    ),
    wrong_dtype: (
        "combine returns f64 where the state has i32; cast the comprehension's body, "
        "tl.cast(x, tl.f64), or combine's result"
    ),
}


@pytest.mark.parametrize("function", MESSAGES, ids=lambda function: function.__name__)
def test_message_and_line(function):
    with pytest.raises(DefinitionError) as error:
        tl.compute(function).definition()
    message, place = str(error.value).split("\n")
    assert message == MESSAGES[function]
    lines, first = inspect.getsourcelines(function)
    file, line = place.removeprefix("  at ").split(": ")[0].rsplit(":", 1)
    assert file == HERE
    assert first < int(line) < first + len(lines)


@pytest.mark.parametrize(
    ("name", "cure"),
    [
        ("T", "x has no T; write tl.tensor(x[i, j] for j in N for i in M)"),
        ("sum", "x has no sum; write tl.sum(x[i, j] for j in N)"),
        ("tosum", "'TensorHandle' object has no attribute 'tosum'"),
    ],
)
def test_methods_of_arrays_are_named_with_their_cure(name, cure):
    @tl.compute
    def method(x: tl.f32[M, N]):
        return getattr(x, name)

    with pytest.raises(AttributeError) as error:
        method.definition()
    assert str(error.value) == cure


def test_round_is_tensorlangs():
    @tl.compute
    def rounded(x: tl.f32[N]):
        return tl.tensor(round(x[i]) for i in N)

    np.testing.assert_array_equal(rounded.reference(np.float32([0.5, 1.6])), [0, 2])


def test_a_dtype_is_shown_as_it_is_written_and_is_not_called():
    assert repr(tl.f32) == "tl.f32"
    assert repr(tl.bool) == "tl.bool"
    with pytest.raises(TypeError, match=r"a dtype is not called; write tl\.cast\(x, tl\.f64\)"):
        tl.f64(1)


def test_dims_takes_text():
    with pytest.raises(DefinitionError, match=r'tl\.dims takes names, as in tl\.dims\("M N"\)'):
        tl.dims(3)


@pytest.mark.parametrize(
    ("function", "start"),
    [
        (conditional_expression, "`if` in a comprehension tests an expression"),
        (statement, "`if` (or `and`, `or`) tests an expression"),
        (and_, "`and` (or a chained comparison) is applied to an expression"),
        (chained, "`and` (or a chained comparison) is applied to an expression"),
        (not_, "`not` is applied to an expression"),
    ],
)
def test_truth_values(function, start):
    with pytest.raises(DefinitionError) as error:
        tl.compute(function).definition()
    assert NO_VALUE in str(error.value)
    assert "tl.where" in str(error.value) or BITWISE in str(error.value)
    if hasattr(inspect, "currentframe"):
        assert str(error.value).startswith(start) or "an expression is used" in str(error.value)


@pytest.mark.parametrize(
    ("function", "claim"),
    [
        (not_commutative, "combine is not commutative: for a = "),
        (not_associative, "combine is not associative: for a = "),
        (no_identity, "identity is no identity: for a = "),
        (nan_identity, "identity is no identity: for a = "),
    ],
)
def test_combiners_are_tried(function, claim):
    with pytest.raises(DefinitionError) as error:
        tl.compute(function).definition()
    assert str(error.value).startswith(claim)
    assert "ordered=True keeps the loops' order" in str(error.value)


@pytest.mark.parametrize("function", [returns_nothing, returns_string])
def test_what_is_returned_is_checked(function):
    with pytest.raises(DefinitionError, match="return a tensor, or a tuple of tensors") as error:
        tl.compute(function).definition()
    assert f"def {function.__name__}" in str(error.value)


def test_a_comprehension_is_not_returned_bare():
    with pytest.raises(DefinitionError) as error:
        tl.compute(returns_comprehension).definition()
    assert str(error.value).startswith(
        "returns_comprehension returns a comprehension; write return tl.tensor(... for i in N)\n"
    )


def test_signatures_are_checked_when_decorated():
    def positional_attribute(x: tl.f32[N], axis: int):
        return x

    def positional_dim(x: tl.f32[N], n: tl.Dim):
        return x

    def variadic(*x: tl.f32[N]):
        return x

    def bad_extent(x: tl.f32[1.5]):
        return x

    def bad_default(x: tl.f32[N] = 3):
        return x

    for function, text in [
        (positional_attribute, "attributes are keyword-only: put a * before it"),
        (positional_dim, "the size n: tl.Dim must be keyword-only; put a * before it"),
        (variadic, "*x is not possible; name each parameter"),
        (bad_extent, "1.5 in the shape of x is not a size"),
        (bad_default, "the tensor x has the default 3"),
    ]:
        with pytest.raises(DefinitionError) as error:
            tl.compute(function)
        assert text in str(error.value)
        assert f"def {function.__name__}" in str(error.value)


def test_sizes_are_checked_when_traced():
    def clash(x: tl.f32[N], *, N: int = 1):
        return x

    def product(x: tl.f32[M * N]):
        return x

    def same_names(x: tl.f32[N], y: tl.f32[OTHER_N]):
        return x

    for function, text in [
        (clash, "clash: N is a dim and an attribute; rename one of them"),
        (product, "the size M cannot be found from the extent M * N of x"),
        (same_names, "same_names: two different dims are called N"),
    ]:
        with pytest.raises(DefinitionError) as error:
            tl.compute(function).definition()
        assert text in str(error.value)


def test_outside_of_an_operator():
    with pytest.raises(DefinitionError, match="only has a meaning inside a function decorated"):
        tl.tensor(i for i in N)
    with pytest.raises(DefinitionError, match="the builtin sum iterates over the size N"):
        sum(i for i in N)
    with pytest.raises(DefinitionError, match="named twice"):
        tl.dims("M M")
    with pytest.raises(DefinitionError, match="must be a Python identifier"):
        tl.dim("2x")


def test_errors_are_builtins_too():
    assert issubclass(DefinitionError, TensorlangError)
    assert issubclass(DefinitionError, TypeError)


def test_names_that_the_module_does_not_have():
    with pytest.raises(AttributeError, match=r"no attribute 'float32'; write tl\.f32$"):
        tl.float32
    with pytest.raises(AttributeError, match=r"no attribute 'tensors'$") as error:
        tl.tensors
    assert error.value.name == "tensors"
    assert error.value.obj is tl
    assert {"tensor", "compile", "testing"} <= set(dir(tl))
    assert not {"sys", "Any", "annotations"} & set(dir(tl))


def test_recursion_without_end():
    @tl.compute
    def endless(x: tl.f32[N]):
        return other(x)

    @tl.compute
    def other(x: tl.f32[N]):
        return endless(x)

    with pytest.raises(tl.DefinitionError) as caught:
        endless.definition()
    assert str(caught.value).startswith(
        "endless calls itself, or what it calls does, more often than Python can: give the"
        " recursion an end that an attribute reaches (n=n - 1)\n  at "
    )
    with pytest.raises(tl.DefinitionError):  # nothing is left behind
        other.definition()

    @tl.compute
    def doubled(x: tl.f32[N], *, n: int = 3):
        half = x if n == 0 else doubled(x, n=n - 1)
        return tl.tensor(half[i] * 2 for i in N)

    assert doubled.reference(np.ones(1, np.float32))[0] == 16
