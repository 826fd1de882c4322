import itertools

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tensorlang.dtypes import i64
from tensorlang.ir.affine import affine, evaluate, minimum, variables_of
from tensorlang.ir.definition import Tensor
from tensorlang.ir.expr import Load, value_atom
from tensorlang.ir.interval import bounds, is_nonnegative
from tests.ir.forms import (
    LOOPS,
    SIZES,
    any_form,
    linear,
    quasi_affine,
)

I, J, K = LOOPS  # noqa: E741
M, N = SIZES
i, j, m, n = map(affine, (I, J, M, N))

EXTENTS = st.fixed_dictionaries({}, optional={v: st.integers(1, 5) for v in LOOPS})


def points(extents, values):
    """Yield all values of the loops that run, the others as given."""
    for point in itertools.product(*(range(extents[v]) for v in extents)):
        yield values | dict(zip(extents, point, strict=True))


@given(any_form(), EXTENTS, st.integers(1, 6), st.integers(1, 6), st.integers(0, 9))
def test_bounds_contain_every_value(form, extents, size_m, size_n, rest):
    interval = bounds(form.index, {v: affine(e) for v, e in extents.items()})
    if interval is None:
        return
    low, high = interval
    values = {M: size_m, N: size_n, I: rest, J: rest, K: rest}
    assert variables_of(low).isdisjoint(extents)
    assert variables_of(high).isdisjoint(extents)
    for point in points(extents, values):
        assert evaluate(low, values) <= evaluate(form.index, point) <= evaluate(high, values)


@given(linear(), EXTENTS, st.integers(1, 6), st.integers(1, 6), st.integers(0, 9))
def test_bounds_of_linear_forms_are_reached(form, extents, size_m, size_n, rest):
    interval = bounds(form.index, {v: affine(e) for v, e in extents.items()})
    assert interval is not None
    values = {M: size_m, N: size_n, I: rest, J: rest, K: rest}
    seen = [evaluate(form.index, point) for point in points(extents, values)]
    assert [evaluate(part, values) for part in interval] == [min(seen), max(seen)]


@given(quasi_affine(), st.integers(1, 5), st.integers(1, 5), st.integers(1, 6), st.integers(0, 9))
def test_symbolic_and_dependent_extents(form, inner, outer, size, rest):
    """I runs below N, J below I + inner, K below a constant."""
    extents = {I: n, J: i + inner, K: affine(outer)}
    interval = bounds(form.index, extents)
    assume(interval is not None)
    values = {M: rest, N: size}
    low, high = (evaluate(part, values) for part in interval)
    for a in range(size):
        for b in range(a + inner):
            for c in range(outer):
                assert low <= evaluate(form.index, values | {I: a, J: b, K: c}) <= high


def test_the_box_of_a_tile():
    assert bounds(i * 16 + j, {J: affine(16)}) == (i * 16, i * 16 + 15)
    assert bounds(-j, {J: n}) == (-n + 1, affine(0))
    assert bounds(i * 4 + j % 4, {J: affine(64)}) == (i * 4, i * 4 + 3)
    assert bounds((i * 4 + j) % 8, {J: affine(4)}) == bounds((i * 4 + j) % 8, {J: affine(4)})
    assert bounds(j % 8, {J: affine(5)}) == (affine(0), affine(4))


def test_data_has_no_bounds():
    table = Tensor("table", (affine(N),), i64)
    index = affine(value_atom(Load(table, (j,))))
    assert bounds(index, {J: n}) is None
    assert not is_nonnegative(index)


@given(any_form(), EXTENTS, st.integers(0, 6), st.integers(0, 6), st.integers(0, 9))
def test_what_is_said_not_to_be_negative_is_not(form, extents, size_m, size_n, rest):
    if not is_nonnegative(form.index, {v: affine(e) for v, e in extents.items()}):
        return
    for point in points(extents, {M: size_m, N: size_n, I: rest, J: rest, K: rest}):
        assert evaluate(form.index, point) >= 0


@pytest.mark.parametrize(
    ("index", "extents", "expected"),
    [
        (n, {}, True),
        (n - 1, {}, False),
        (n - 1 - i, {I: n}, True),
        ((n + 5) // 6 * 6 - n, {}, True),
        ((n + 5) // 6 * 6 - n - 1, {}, False),
        (i * n, {}, True),
        (i - j, {}, False),
        (i - i % 4, {I: n}, True),
    ],
)
def test_nonnegative(index, extents, expected):
    assert is_nonnegative(index, extents) is expected


def test_products_with_what_may_be_negative_have_no_known_bounds():
    assert bounds(i * minimum(j, -1), {I: n}) is None
    assert bounds(i * (-j // 2), {I: n}) is None
    assert bounds(i * m, {I: n}) == (affine(0), m * n - m)
