"""Ranges of sizes under what a schedule assumes."""

from hypothesis import given
from hypothesis import strategies as st

from tensorlang.ir.affine import Var, affine
from tensorlang.ir.definition import Condition
from tensorlang.schedule.rules.facts import ANY, Facts, Range

M, N = Var("M"), Var("N")


def test_nothing_is_known_without_conditions():
    assert Facts().range_of(affine(M)) == ANY
    assert Facts().range_of(affine(7)) == Range(7, 7)


def test_bounds_from_both_sides():
    facts = Facts([Condition(32 - affine(M), ""), Condition(affine(M) - 3, "")])
    assert facts.range_of(affine(M)) == Range(3, 32)
    assert facts.range_of(2 * affine(M) + 1) == Range(7, 65)
    assert facts.range_of(40 - affine(M)) == Range(8, 37)
    assert facts.range_of(affine(M) + affine(N)) == Range(3, None)


def test_an_equality_leaves_one_value():
    facts = Facts([Condition(affine(M) - 5, "", equality=True)])
    assert facts.range_of(affine(M)).exact == 5


@given(
    st.lists(st.tuples(st.integers(-4, 4), st.integers(-30, 30), st.booleans()), max_size=4),
    st.integers(-3, 3),
    st.integers(-10, 10),
    st.integers(0, 60),
)
def test_a_range_holds_every_value_that_the_conditions_allow(terms, coef, constant, size):
    conditions = [
        Condition(factor * affine(M) + offset, "", equality=equality)
        for factor, offset, equality in terms
        if factor
    ]
    values = [(c.form.constant + c.form.terms[0][1] * size, c.equality) for c in conditions]
    if not all(value == 0 if equality else value >= 0 for value, equality in values):
        return
    value = coef * size + constant
    found = Facts(conditions).range_of(coef * affine(M) + constant)
    assert found.low <= max(0, value)
    assert found.high is None or value <= found.high
