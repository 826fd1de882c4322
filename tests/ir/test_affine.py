import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorlang.ir.affine import (
    ONE,
    ZERO,
    Affine,
    FloorDiv,
    Min,
    Product,
    SymbolicDiv,
    Var,
    affine,
    depends_on,
    evaluate,
    from_terms,
    linear_coefficient,
    map_atoms,
    maximum,
    minimum,
    multiply_atoms,
    substitute,
    variables_of,
)
from tests.ir.forms import (
    LOOPS,
    SIZES,
    VARIABLES,
    any_form,
    assignments,
    linear,
    quasi_affine,
)

I, J, K = LOOPS  # noqa: E741
M, N = SIZES
i, j, m, n = map(affine, (I, J, M, N))


@given(any_form(), assignments())
def test_arithmetic_is_pythons(form, values):
    assert evaluate(form.index, values) == form.value(values)


@given(quasi_affine(), assignments(-200, 200))
def test_floor_division_and_remainder_at_any_depth(form, values):
    assert evaluate(form.index, values) == form.value(values)


@given(any_form(), st.dictionaries(st.sampled_from(VARIABLES), linear(), max_size=3), assignments())
def test_substitution_is_simultaneous(form, replacements, values):
    mapping = {v: r.index for v, r in replacements.items()}
    inner = values | {v: r.value(values) for v, r in replacements.items()}
    if any(inner[size] <= 0 for size in SIZES):
        return  # what is divided by stands for a size, positive where the quotient matters
    assert evaluate(substitute(form.index, mapping), values) == evaluate(form.index, inner)


@given(any_form())
def test_substituting_nothing_changes_nothing(form):
    other = Var("other")
    assert substitute(form.index, {}) is form.index
    assert substitute(form.index, {other: 3}) == form.index
    assert substitute(form.index, {v: v for v in VARIABLES}) == form.index


@given(any_form(), any_form())
def test_equal_forms_have_equal_hashes_and_keys(left, right):
    assert (left.index == right.index) == (left.index.key == right.index.key)
    if left.index == right.index:
        assert hash(left.index) == hash(right.index)
    assert left.index - left.index == ZERO
    assert (left.index + right.index) - right.index == left.index
    assert left.index + right.index == right.index + left.index
    assert left.index * right.index == right.index * left.index


@given(quasi_affine(), quasi_affine(), quasi_affine())
def test_sums_are_canonical_whatever_the_order(a, b, c):
    total = a.index + b.index + c.index
    assert c.index + (b.index + a.index) == total
    assert from_terms(total.constant, tuple(reversed(total.terms))) == total
    keys = [atom.key for atom, _ in total.terms]
    assert keys == sorted(keys)
    assert len(set(keys)) == len(keys)
    assert all(coefficient for _, coefficient in total.terms)


@given(any_form())
def test_printed_text_is_python(form):
    names = {v.name: value for v, value in zip(VARIABLES, (5, -7, 11, 4, 3), strict=True)}
    values = {v: names[v.name] for v in VARIABLES}
    assert eval(str(form.index), {"min": min}, names) == evaluate(form.index, values)


@given(any_form(), st.sampled_from(VARIABLES), assignments(), st.integers(1, 5))
def test_a_linear_coefficient_is_a_difference(form, variable, values, step):
    coefficient = linear_coefficient(form.index, variable)
    if coefficient is None or variable in SIZES:
        return
    moved = values | {variable: values[variable] + step}
    difference = evaluate(form.index, moved) - evaluate(form.index, values)
    assert difference == coefficient * step


def test_a_coefficient_is_not_a_dependence():
    assert linear_coefficient(i + i // 4, I) is None
    assert linear_coefficient(i * 3 + j // 4, I) == 3
    assert linear_coefficient(j, I) == 0
    assert (i + i // 4).coefficient(I) == 1


@given(any_form(), assignments())
def test_variables_are_all_that_matters(form, values):
    used = variables_of(form.index)
    assert depends_on(form.index, set(VARIABLES)) == bool(used)
    changed = {v: value if v in used else value + 1 for v, value in values.items()}
    assert evaluate(form.index, values) == evaluate(form.index, changed)


@given(any_form(), assignments())
def test_pickle_round_trip(form, values):
    copies = pickle.loads(pickle.dumps((tuple(VARIABLES), form.index)))
    renamed = dict(zip(copies[0], VARIABLES, strict=True))
    assert evaluate(copies[1], {c: values[v] for c, v in renamed.items()}) == form.value(values)
    # once the copied variables are the old ones again, so is the form
    assert substitute(copies[1], renamed) == form.index


@given(any_form(), assignments())
def test_mapping_atoms_to_themselves(form, values):
    assert map_atoms(form.index, lambda atom: atom) is form.index
    doubled = map_atoms(form.index, lambda atom: affine(atom) * 2)
    constant = form.index.constant
    assert evaluate(doubled, values) - constant == 2 * (evaluate(form.index, values) - constant)


def test_whole_multiples_leave_a_division():
    assert (i * 4 + j) // 4 == i + j // 4
    assert (i * 4 + j) % 4 == j % 4
    assert (i * 6 + 3) // 3 == i * 2 + 1
    assert (i // 4 + 2) // 3 == (i + 8) // 12
    assert i // 1 == i
    assert i // -2 == (-i) // 2
    assert isinstance((i // 3).terms[0][0], FloorDiv)


def test_multiples_of_a_size_leave_a_division_by_it():
    assert (n * i + j) // n == i + j // n
    assert n // n == ONE
    assert ZERO // n == ZERO
    assert (n * i) // n == i
    position = i * n + j
    assert position // n * n + position % n == position
    assert isinstance((j // n).terms[0][0], SymbolicDiv)


def test_a_size_that_becomes_zero():
    assert substitute(j // n + i, {N: 0}) == i
    assert evaluate(j // n + i, {I: 3, J: 5, N: 0}) == 3


def test_products_are_flat_and_sorted():
    assert (i * n) * m == (m * i) * n
    assert isinstance((i * n).terms[0][0], Product)
    assert multiply_atoms((I,)) == i
    assert (i + 1) * (n - 1) == i * n - i + n - 1


def test_minima_drop_what_is_plainly_greater():
    assert minimum(i, i + 3) == i
    assert minimum(i + 3, i) == i
    assert minimum(4, 7) == affine(4)
    assert minimum(i, j) == minimum(j, i)
    assert maximum(i, i + 3) == i + 3
    assert isinstance(minimum(i, j).terms[0][0], Min)


def test_what_is_refused():
    with pytest.raises(ZeroDivisionError, match="an index expression is divided by zero"):
        i // 0
    with pytest.raises(TypeError, match="an index expression has no truth value"):
        bool(i)
    with pytest.raises(KeyError):
        evaluate(i, {})


def test_python_numbers_on_the_left():
    assert 2 + i == i + 2
    assert 2 - i == -i + 2
    assert 3 * i == i * 3
    assert Affine(5).is_constant
    assert not i.is_constant


@pytest.mark.parametrize(
    ("index", "text"),
    [
        (i, "i"),
        (-i, "-i"),
        (i * 16 + j - 3, "16 * i + j - 3"),
        (ZERO, "0"),
        (affine(-2), "-2"),
        ((i + 5) // 6, "(i + 5) // 6"),
        ((i + 5) // 6 * 2, "2 * ((i + 5) // 6)"),
        (i % 4, "i % 4"),
        (-(i // 2) - (j // 3), "-(i // 2) - j // 3"),
        (j // (n + 1), "j // (N + 1)"),
        ((i * 2) // 3, "(2 * i) // 3"),
        (i * n, "i * N"),
        (minimum(i, j * 2), "min(i, 2 * j)"),
        (j // n, "j // N"),
    ],
)
def test_text(index, text):
    assert str(index) == text
