"""Sizes of a call, for random shapes: found if they exist, refused if they do not."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorlang as tl
from tensorlang.ir.affine import evaluate
from tensorlang.lang.binding import bind_sizes

M, N = tl.dims("M N")

forms = st.tuples(st.integers(0, 2), st.integers(0, 3), st.integers(-1, 3))


@settings(max_examples=150, deadline=None)
@given(st.lists(forms, min_size=1, max_size=3), st.lists(st.integers(0, 8), min_size=5, max_size=5))
def test_binding_finds_the_sizes_if_there_are_any(entries, found):
    shape = [M, *[a * M + b * N + c for a, b, c in entries], N]

    def body(x):
        return tl.tensor(tl.cast(0, tl.f32) for i in M)

    body.__annotations__ = {"x": tl.f32[tuple(shape)]}
    definition = tl.compute(body).definition()
    given_shape = (found[0], *found[1 : 1 + len(entries)], found[4])
    expected = {"M": found[0], "N": found[4]}
    fits = all(
        evaluate(form, {size: expected[size.name] for size in definition.sizes}) == number
        for form, number in zip(definition.inputs[0].shape, given_shape, strict=True)
    )
    if not fits:
        with pytest.raises(ValueError, match=r"body: axis . of x has size|is negative"):
            bind_sizes(definition, {definition.inputs[0]: given_shape})
        return
    sizes = bind_sizes(definition, {definition.inputs[0]: given_shape})
    assert {size.name: number for size, number in sizes.items()} == expected


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 3), st.integers(0, 3), st.integers(0, 20), st.integers(0, 20))
def test_forms_with_one_unknown_are_solved(a, b, first, second):
    """x fixes N through a * N + b, then y fixes M through M + N."""

    def body(x, y):
        return tl.tensor(x[0 * i] for i in N)

    body.__annotations__ = {"x": tl.f32[a * N + b], "y": tl.f32[M + N]}
    definition = tl.compute(body).definition()
    x, y = definition.inputs
    solutions = [
        (m, n)
        for m, n in itertools.product(range(21), range(21))
        if a * n + b == first and m + n == second
    ]
    shapes = {x: (first,), y: (second,)}
    if not solutions or (first == 0 and solutions[0][1]):
        with pytest.raises(ValueError, match=r"must be .* for some . >= 0|stays inside x only if"):
            bind_sizes(definition, shapes)
        return
    named = {size.name: number for size, number in bind_sizes(definition, shapes).items()}
    assert solutions == [(named["M"], named["N"])]
