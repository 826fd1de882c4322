"""Twenty operators of all kinds, each with arguments for given sizes and NumPy's answer.

Input:  ``OPERATORS[3]``, sizes (5, 7)     Output: arrays, and what the operator must return
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import tensorlang as tl

M, N, K = tl.dims("M N K")


class Case(NamedTuple):
    """An operator, the shapes of its arguments as functions of (m, n), and the answer."""

    operator: Any
    shapes: tuple[Callable[[int, int], tuple[int, ...]], ...]
    answer: Callable[..., Any]


def _elementwise(name: str, body: Callable[[Any, Any], Any], answer: Callable[..., Any]) -> Case:
    def function(x: tl.f32[M, N], y: tl.f32[M, N]) -> Any:
        return tl.tensor(body(x[i, j], y[i, j]) for i in M for j in N)

    function.__name__ = name
    return Case(tl.compute(function), (_full, _full), answer)


def _reduction(name: str, reduce: Any, answer: Callable[..., Any]) -> Case:
    def function(x: tl.f32[M, N]) -> Any:
        return tl.tensor(reduce(x[i, j] for j in N) for i in M)

    function.__name__ = name
    return Case(tl.compute(function), (_full,), answer)


def _full(m: int, n: int) -> tuple[int, ...]:
    return m, n


def _turned(m: int, n: int) -> tuple[int, ...]:
    return n, m


@tl.compute
def matmul(A: tl.f32[M, K], B: tl.f32[K, N]):
    return tl.tensor(tl.sum(A[i, k] * B[k, j] for k in K) for i in M for j in N)


@tl.compute
def softmax(x: tl.f32[M, N]):
    top = tl.tensor(tl.max(x[i, j] for j in N) for i in M)
    e = tl.tensor(tl.exp(x[i, j] - top[i]) for i in M for j in N)
    total = tl.tensor(tl.sum(e[i, j] for j in N) for i in M)
    return tl.tensor(e[i, j] / total[i] for i in M for j in N)


@tl.compute
def transpose(x: tl.f32[M, N]):
    return tl.tensor(x[i, j] for j in N for i in M)


@tl.compute
def shift(x: tl.f32[M, N]):
    return tl.tensor(tl.where(j > 0, x[i, j - 1], 0) for i in M for j in N)


@tl.compute
def cumulative(x: tl.f32[M, N]):
    return tl.tensor(tl.scan(lambda a, b: a + b, 0.0, (x[i, j] for j in N)) for i in M)


@tl.compute
def normalise(x: tl.f32[M, N]):
    mean = tl.tensor(tl.sum(x[i, j] for j in N) / N for i in M)
    return tl.tensor(x[i, j] - mean[i] for i in M for j in N)


@tl.compute
def outer(x: tl.f32[M, N]):
    return tl.tensor(tl.sum(x[i, k] * x[j, k] for k in N) for i in M for j in M)


def _softmax(x: Any) -> Any:
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def _shift(x: Any) -> Any:
    return np.concatenate([np.zeros_like(x[:, :1]), x[:, :-1]], axis=1)


OPERATORS = (
    _elementwise("add", lambda x, y: x + y, np.add),
    _elementwise("subtract", lambda x, y: x - y, np.subtract),
    _elementwise("multiply", lambda x, y: x * y, np.multiply),
    _elementwise("larger", tl.maximum, np.maximum),
    _elementwise("smaller", tl.minimum, np.minimum),
    _elementwise("scaled", lambda x, y: x * 3 + y * 2, lambda x, y: x * 3 + y * 2),
    _elementwise("hypot", lambda x, y: tl.sqrt(x * x + y * y), np.hypot),
    _elementwise("waves", lambda x, y: tl.sin(x) * tl.cos(y), lambda x, y: np.sin(x) * np.cos(y)),
    _elementwise("squash", lambda x, y: tl.tanh(x + y), lambda x, y: np.tanh(x + y)),
    _reduction("total", tl.sum, lambda x: x.sum(axis=1)),
    _reduction("largest", tl.max, lambda x: x.max(axis=1)),
    _reduction("smallest", tl.min, lambda x: x.min(axis=1)),
    _reduction("where_largest", tl.argmax, lambda x: x.argmax(axis=1)),
    Case(matmul, (_full, _turned), np.matmul),
    Case(softmax, (_full,), _softmax),
    Case(transpose, (_full,), np.transpose),
    Case(shift, (_full,), _shift),
    Case(cumulative, (_full,), lambda x: x.cumsum(axis=1)),
    Case(normalise, (_full,), lambda x: x - x.mean(axis=1, keepdims=True)),
    Case(outer, (_full,), lambda x: x @ x.T),
)


def check(case: Case, m: int, n: int, generator: np.random.Generator) -> None:
    """Call an operator and compare; raises AssertionError with the operator and its sizes."""
    arrays = [generator.standard_normal(s(m, n)).astype(np.float32) for s in case.shapes]
    expected = case.answer(*arrays)
    np.testing.assert_allclose(
        case.operator(*arrays), expected, rtol=1e-3, atol=1e-3,
        err_msg=f"{case.operator.name} with M = {m}, N = {n}",
    )  # fmt: skip
