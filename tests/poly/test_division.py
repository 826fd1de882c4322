"""Divisions by a size: what is claimed of them holds at every small size."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorlang.ir.affine import Affine, Var, affine, evaluate
from tensorlang.poly.division import is_nonnegative_with_divisions
from tensorlang.poly.proof import prove
from tests.poly import definitions as ops
from tests.poly.definitions import at, tensor
from tests.poly.scheduling import naive

M, N, X = affine(Var("M")), affine(Var("N")), affine(Var("i"))
SIZES = [form.terms[0][0] for form in (M, N)]
LOOP = X.terms[0][0]


@pytest.mark.parametrize(
    "form",
    [X // N, M - 1 - X // N, X % N, N - 1 - X % N, (X % N) * 2 + X // N, N * 2 - 2 - (X % N) * 2],
)
def test_reshapes_are_known(form: Affine) -> None:
    assert isinstance(LOOP, Var)
    assert is_nonnegative_with_divisions(form, {LOOP: M * N})


def test_a_size_that_may_be_zero_divides_nothing() -> None:
    assert isinstance(LOOP, Var)
    assert not is_nonnegative_with_divisions(N - 1 - X % N, {LOOP: M})


small = st.integers(-3, 3)


@given(small, small, small, small, small, small)
def test_what_is_known_holds(a: int, b: int, c: int, d: int, e: int, f: int) -> None:
    assert isinstance(LOOP, Var)
    operand = X + f
    form = (operand // N) * a + (operand % N) * b + X * c + N * d + M * e + f
    if not is_nonnegative_with_divisions(form, {LOOP: M * N}):
        return
    for m, n in itertools.product(range(5), repeat=2):
        for i in range(m * n):
            values = {**dict(zip(SIZES, (m, n), strict=True)), LOOP: i}
            assert evaluate(form, values) >= 0  # type: ignore[arg-type]


def test_reshape_that_leaves_its_tensor_is_not_proved() -> None:
    m, n = Var("M"), Var("N")
    x, flat = tensor("x", m, n), tensor("flat", affine(m) * n + 1)
    stage = ops.map_stage(flat, lambda i: at(x, i // affine(n), i % affine(n)))
    evidence = prove(naive(ops.define("flatten", (m, n), (x,), (stage,))))
    found = evidence.counterexample
    assert found is not None
    assert not found.refuted
    assert "may leave x" in found.reason
