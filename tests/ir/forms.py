"""Random index expressions, each with what it must evaluate to."""

from dataclasses import dataclass

from hypothesis import strategies as st

from tensorlang.ir.affine import Var, affine, maximum, minimum

LOOPS = [Var(name) for name in ("i", "j", "k")]
SIZES = [Var(name) for name in ("M", "N")]
VARIABLES = LOOPS + SIZES


@dataclass(frozen=True)
class Form:
    """An index expression, and the same computed by Python on a mapping of values."""

    index: object
    value: object
    text: str

    def __repr__(self):
        return self.text


def variable(v):
    return Form(affine(v), lambda values: values[v], v.name)


def constant(c):
    return Form(affine(c), lambda values: c, str(c))


def combine(name, index, value):
    def build(a, b):
        return Form(
            index(a.index, b.index),
            lambda values: value(a.value(values), b.value(values)),
            f"{name}({a}, {b})",
        )

    return build


add = combine("add", lambda a, b: a + b, lambda a, b: a + b)
subtract = combine("subtract", lambda a, b: a - b, lambda a, b: a - b)
multiply = combine("multiply", lambda a, b: a * b, lambda a, b: a * b)
least = combine("least", minimum, min)
greatest = combine("greatest", maximum, max)


def scale(a, factor):
    return multiply(a, constant(factor))


def divide(a, divisor):
    return combine("divide", lambda x, y: x // y, lambda x, y: x // y)(a, constant(divisor))


def remainder(a, divisor):
    return combine("remainder", lambda x, y: x % y, lambda x, y: x % y)(a, constant(divisor))


def divide_by_size(a, size):
    return combine("divide", lambda x, y: x // y, lambda x, y: x // y if y else 0)(
        a, variable(size)
    )


def remainder_by_size(a, size):
    # x - (x // N) * N, which is x where N = 0
    return combine("remainder", lambda x, y: x % y, lambda x, y: x % y if y else x)(
        a, variable(size)
    )


LEAVES = st.sampled_from(VARIABLES).map(variable) | st.integers(-9, 9).map(constant)
DIVISORS = st.sampled_from([1, 2, 3, 4, 6, 16])


def linear(leaves=LEAVES):
    """Sums, differences and multiples."""
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.builds(add, inner, inner),
            st.builds(subtract, inner, inner),
            st.builds(scale, inner, st.integers(-4, 4)),
        ),
        max_leaves=6,
    )


def quasi_affine(leaves=LEAVES):
    """Linear forms, with floor division and remainder by constants at any depth."""
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.builds(add, inner, inner),
            st.builds(subtract, inner, inner),
            st.builds(scale, inner, st.integers(-4, 4)),
            st.builds(divide, inner, DIVISORS),
            st.builds(remainder, inner, DIVISORS),
        ),
        max_leaves=6,
    )


def any_form():
    """Everything: products, minima, division by sizes."""
    return st.recursive(
        LEAVES,
        lambda inner: st.one_of(
            st.builds(add, inner, inner),
            st.builds(subtract, inner, inner),
            st.builds(multiply, inner, inner),
            st.builds(least, inner, inner),
            st.builds(greatest, inner, inner),
            st.builds(divide, inner, DIVISORS),
            st.builds(remainder, inner, DIVISORS),
            st.builds(divide_by_size, inner, st.sampled_from(SIZES)),
            st.builds(remainder_by_size, inner, st.sampled_from(SIZES)),
        ),
        max_leaves=6,
    )


def assignments(low=-20, high=20, sizes=(1, 20)):
    """Values for all variables."""
    return st.fixed_dictionaries(
        {v: st.integers(low, high) for v in LOOPS} | {v: st.integers(*sizes) for v in SIZES}
    )
