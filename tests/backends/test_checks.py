"""Run-time checks of indices taken from data: the first failure is reported, nothing is touched."""

from __future__ import annotations

import numpy as np
import pytest

from tensorlang.dtypes import f32, i32, i64
from tensorlang.ir.affine import Affine, Var, affine
from tensorlang.ir.expr import Cast, value_atom
from tensorlang.ir.lowered import BoundsCheck, CheckSite, FlatLoad, LoweredProgram
from tests.backends.harness import AVX2, BASELINE, Kernel
from tests.backends.programs import buffer, lanes_over, load, program, store


def gather(lanes: int, kind: str = "serial") -> LoweredProgram:
    """``Y[i] = X[row[i], column[i]]`` of a matrix M by K, with both indices checked."""
    n, m, k = Var("N"), Var("M"), Var("K")
    x, y = buffer("X", f32, affine(m) * k), buffer("Y", f32, n)
    rows, columns = buffer("rows", i64, n), buffer("columns", i32, n)

    def body(i: Affine) -> object:
        row = affine(value_atom(load(rows, i)))
        column = affine(value_atom(Cast(load(columns, i), i64)))
        checks = (BoundsCheck(row, affine(m), 0), BoundsCheck(column, affine(k), 1))
        return store(y, i, FlatLoad(x, row * k + column, checks))

    sites = (CheckSite("X", 0, "here.py:1"), CheckSite("X", 1, "here.py:1"))
    return program(
        lanes_over(n, lanes, body, kind),  # type: ignore[arg-type]
        (n, m, k),
        (x, rows, columns),
        (y,),
        check_sites=sites,
    )


def arguments(n: int, m: int, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    generator = np.random.default_rng(n)
    rows = generator.integers(0, max(m, 1), n).astype(np.int64)
    columns = generator.integers(0, max(k, 1), n).astype(np.int32)
    return np.arange(m * k, dtype=np.float32), rows, columns


@pytest.mark.parametrize("lanes", [1, 4, 8, 16])
@pytest.mark.parametrize("kind", ["serial", "parallel"])
def test_good_indices(lanes: int, kind: str) -> None:
    kernel = Kernel(gather(lanes, kind))
    for n in (0, 1, 7, 16, 37):
        x, rows, columns = arguments(n, 5, 3)
        outcome = kernel([x, rows, columns], (n, 5, 3))
        assert outcome.code == 0
        np.testing.assert_array_equal(outcome.outputs[0], x.reshape(5, 3)[rows, columns])


@pytest.mark.parametrize("lanes", [1, 8])
@pytest.mark.parametrize("kind", ["serial", "parallel"])
@pytest.mark.parametrize("target", ["cpu", AVX2, BASELINE])
@pytest.mark.parametrize("place", [0, 5, 7, 12])
@pytest.mark.parametrize(
    ("axis", "index"), [(0, 5), (0, -1), (1, 3), (1, -(2**31)), (0, 2**62), (0, -(2**63))]
)
def test_bad_index(lanes: int, kind: str, target: str, place: int, axis: int, index: int) -> None:
    kernel = cached(lanes, kind, target)
    x, rows, columns = arguments(13, 5, 3)
    (rows, columns)[axis][place] = index
    outcome = kernel([x, rows, columns], (13, 5, 3))
    assert outcome.code == 1
    assert outcome.status[:3] == [axis, index, (5, 3)[axis]]


_kernels: dict[tuple[int, str, str], Kernel] = {}


def cached(lanes: int, kind: str, target: str) -> Kernel:
    key = lanes, kind, target
    if key not in _kernels:
        _kernels[key] = Kernel(gather(lanes, kind), target)
    return _kernels[key]


def test_first_failing_check_of_an_element_is_reported() -> None:
    x, rows, columns = arguments(13, 5, 3)
    rows[4], columns[4] = 9, 9
    for lanes in (1, 8):
        outcome = cached(lanes, "serial", "cpu")([x, rows, columns], (13, 5, 3))
        assert (outcome.code, outcome.status[:3]) == (1, [0, 9, 5])


def test_inactive_lanes_are_not_checked() -> None:
    """The last vector is masked; what its idle lanes hold is nobody's business."""
    kernel = cached(8, "serial", "cpu")
    for n in (1, 3, 9):
        x, rows, columns = arguments(n, 5, 3)
        assert kernel([x, rows, columns], (n, 5, 3)).code == 0


def test_empty_table_fails_without_being_read() -> None:
    for lanes in (1, 8):
        outcome = cached(lanes, "serial", "cpu")(
            [np.zeros(0, np.float32), np.zeros(3, np.int64), np.zeros(3, np.int32)], (3, 0, 3)
        )
        assert (outcome.code, outcome.status[:3]) == (1, [0, 0, 0])


def test_uniform_index_in_a_vector_loop() -> None:
    """One checked row for all lanes: the check is scalar, the load a vector."""
    n, m = Var("N"), Var("M")
    x, y, row = buffer("X", f32, affine(m) * n), buffer("Y", f32, n), buffer("row", i64, 1)
    position = affine(value_atom(load(row, 0)))
    check = (BoundsCheck(position, affine(m), 0),)
    body = lanes_over(n, 8, lambda i: store(y, i, FlatLoad(x, position * n + i, check)))
    kernel = Kernel(program(body, (n, m), (x, row), (y,), check_sites=(CheckSite("X", 0, ""),)))
    values = np.arange(39, dtype=np.float32)
    for index, code in ((0, 0), (2, 0), (3, 1), (-1, 1)):
        outcome = kernel([values, np.array([index])], (13, 3))
        assert outcome.code == code
        if not code:
            np.testing.assert_array_equal(outcome.outputs[0], values.reshape(3, 13)[index])
        else:
            assert outcome.status[:3] == [0, index, 3]
    assert kernel([values, np.array([7])], (0, 3)).code == 0  # no element, no check
