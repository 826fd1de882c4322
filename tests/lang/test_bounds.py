"""Indices: proved, conditioned on sizes, refused; always exactly as counting the points says."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorlang as tl
from tensorlang.errors import DefinitionError
from tensorlang.ir.affine import evaluate
from tensorlang.ir.expr import loads_of, value_atom
from tensorlang.lang.binding import check_sizes

M, N = tl.dims("M N")
SMALL = range(5)


def conditions_hold(definition, sizes):
    try:
        check_sizes(definition, sizes)
    except ValueError:
        return False
    return True


def is_marked(definition):
    """Whether some index was left to a check at run time."""
    loads = loads_of(*[value for stage in definition.stages for value in stage.values])
    return any(type(atom) is type(value_atom(loads[0])) for load in loads
               for index in load.indices for atom, _ in index.terms)  # fmt: skip


@st.composite
def accesses(draw):
    """An index over i < N, j < 3 of a tensor of extent M * p + N * q + c, perhaps guarded."""
    coef = st.integers(-2, 3)
    return {
        "index": (draw(coef), draw(coef), draw(st.integers(-2, 3))),
        "divisor": draw(st.sampled_from([1, 1, 2, 3])),
        "extent": (draw(st.integers(0, 2)), draw(st.integers(0, 2)), draw(st.integers(0, 3))),
        "guard": draw(st.none() | st.tuples(coef, coef, st.integers(-2, 2))),
    }


def point(access, n, i, j):
    a, b, c = access["index"]
    return (a * i + b * j + c) // access["divisor"]


def is_guarded_out(access, i, j):
    if access["guard"] is None:
        return False
    a, b, c = access["guard"]
    return a * i + b * j + c < 0


def counts(access, m, n):
    """Whether any point leaves the tensor, and whether any point reads it."""
    p, q, c = access["extent"]
    extent = p * m + q * n + c
    points = [
        point(access, n, i, j)
        for i in range(n)
        for j in range(3)
        if not is_guarded_out(access, i, j)
    ]
    return any(not 0 <= at < extent for at in points), bool(points)


@settings(max_examples=120, deadline=None)
@given(accesses())
def test_conditions_say_exactly_what_counting_says(access):
    p, q, c = access["extent"]

    def body(x, i, j):
        a, b, d = access["index"]
        load = x[(a * i + b * j + d) // access["divisor"]]
        if access["guard"] is None:
            return load
        e, f, g = access["guard"]
        return tl.where(e * i + f * j + g >= 0, load, 0)

    def operator(x: tl.f32[p * M + q * N + c], m: tl.f32[M], n: tl.f32[N]):
        return tl.tensor(body(x, i, j) for i in N for j in tl.range(3))

    cases = [(m, n, *counts(access, m, n)) for m, n in itertools.product(SMALL, SMALL)]
    try:
        definition = tl.compute(operator).definition()
    except DefinitionError:
        # refused: no sizes are fine, except those for which nothing is read
        assert all(leaves or not reads for *_, leaves, reads in cases)
        return
    if is_marked(definition):  # the condition would need divisibility: checked while it runs
        assert access["guard"] is not None
        return
    named = {size.name: size for size in definition.sizes}
    for m, n, leaves, _ in cases:
        sizes = {named["M"]: m, named["N"]: n}
        assert conditions_hold(definition, sizes) == (not leaves), (m, n, definition.conditions)


def test_a_condition_names_access_and_line():
    @tl.compute
    def odd(x: tl.f32[M], y: tl.f32[N]):
        return tl.tensor(x[2 * i + 1] + y[i] for i in N)

    (condition,) = odd.definition().conditions
    line = condition.message.rpartition(":")[2].rstrip(")")
    assert condition.message == (
        f"x[2 * i + 1] stays inside x only if 2 * N < M + 1 ({__file__}:{line})"
    )
    with pytest.raises(ValueError, match=r"odd: x\[2 \* i \+ 1\] .* here M = 3, N = 2$"):
        odd.reference(np.zeros(3, "f"), np.zeros(2, "f"))
    assert odd.reference(np.zeros(0, "f"), np.zeros(0, "f")).shape == (0,)


@pytest.mark.parametrize("shift", [-1, 1])
def test_an_index_that_always_leaves_is_refused(shift):
    @tl.compute
    def shifted(x: tl.f32[N]):
        return tl.tensor(x[i + shift] for i in N)

    with pytest.raises(DefinitionError, match=r"for N = 1, i = 0 it is -?1, and there is 1 elem"):
        shifted.definition()


def test_loads_under_where_are_checked_under_its_condition():
    @tl.compute
    def neighbours(x: tl.f32[N]):
        return tl.tensor(
            tl.where(i > 0, x[i - 1], 0) + tl.where(i + 1 >= N, 0, x[i + 1]) for i in N
        )

    assert neighbours.definition().conditions == ()
    np.testing.assert_array_equal(neighbours.reference(np.array([1, 2, 4], np.float32)), [2, 5, 2])


def test_operands_of_and_are_not_lazy():
    @tl.compute
    def eager(x: tl.f32[N]):
        return tl.tensor(tl.where((i > 0) & (x[i - 1] > 0), 1, 0) for i in N)

    with pytest.raises(DefinitionError, match="leaves its tensor"):
        eager.definition()


@pytest.mark.parametrize(("m", "n"), [(0, 3), (3, 0), (1, 1), (3, 4)])
def test_quotients_by_sizes_are_proved(m, n):
    @tl.compute
    def flatten(x: tl.f32[M, N]):
        return tl.tensor(x[i // N, i % N] for i in M * N)

    assert flatten.definition().conditions == ()
    assert not is_marked(flatten.definition())
    x = np.arange(m * n, dtype=np.float32).reshape(m, n)
    np.testing.assert_array_equal(flatten.reference(x), x.ravel())


def test_what_is_not_affine_is_checked_while_running():
    @tl.compute
    def squares(x: tl.f32[N]):
        return tl.tensor(x[(i * i) % (N + 1)] for i in N)

    assert is_marked(squares.definition())

    @tl.compute
    def products(x: tl.f32[N]):
        return tl.tensor(x[i * i] for i in N)

    with pytest.raises(IndexError, match="axis 0 of x, which has 3 elements"):
        products.reference(np.zeros(3, "f"))


def test_strided_windows_are_proved():
    H, R = tl.dims("H R")

    @tl.compute
    def pooled(x: tl.f32[H], f: tl.f32[R], *, stride: int = 1):
        return tl.tensor(tl.sum(x[y * stride + r] * f[r] for r in R) for y in (H - R) // stride + 1)

    for stride in (1, 2, 3):
        assert pooled.definition(stride=stride).conditions == ()


def test_fixed_sizes_are_checked_when_they_are_fixed():
    @tl.compute
    def third(x: tl.f32[N]):
        return tl.tensor(x[i] for i in tl.range(3))

    assert third.definition(N=3).conditions == ()
    with pytest.raises(ValueError, match=r"third: .* only if .*; N = 2"):
        third.definition(N=2)
    assert evaluate(third.definition().conditions[0].form, {third.definition().sizes[0]: 3}) == 0
