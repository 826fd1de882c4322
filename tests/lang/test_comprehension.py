"""Stages: what tracing makes of an operator's body, and how it names things."""

from __future__ import annotations

import textwrap

import numpy as np
import pytest

import tensorlang as tl
from tensorlang.ir.printer import format_definition

M, N, K = tl.dims("M N K")


@tl.compute
def softmax(X: tl.f32[M, N]):
    top = tl.tensor(tl.max(X[i, j] for j in N) for i in M)
    e = tl.tensor(tl.exp(X[i, j] - top[i]) for i in M for j in N)
    total = tl.tensor(tl.sum(e[i, j] for j in N) for i in M)
    return tl.tensor(e[i, j] / total[i] for i in M for j in N)


def text(function, *args, **kwargs):
    return format_definition(tl.compute(function).definition(*args, **kwargs))


def lines(expected):
    return textwrap.dedent(expected).strip()


def test_one_reduction_is_one_stage():
    def matmul(A: tl.f32[M, K], B: tl.f32[K, N]):
        return tl.tensor(tl.sum(A[i, k] * B[k, j] for k in K) for i in M for j in N)

    assert text(matmul) == lines("""
        def matmul(A: f32[M, K], B: f32[K, N]) -> f32[M, N]:
            matmul[i < M, j < N] = sum(A[i, k] * B[k, j] for k < K)
    """)


def test_a_reduction_in_an_expression_is_hoisted():
    def normalize(x: tl.f32[M, N]):
        mean = tl.tensor(tl.sum(x[i, j] for j in N) / N for i in M)
        return tl.tensor(
            (x[i, j] - mean[i]) / tl.sqrt(tl.sum(x[i, k] * x[i, k] for k in N))
            for i in M
            for j in N
        )

    assert text(normalize) == lines("""
        def normalize(x: f32[M, N]) -> f32[M, N]:
            mean.sum[i < M] = sum(x[i, j] for j < N)
            mean[i < M] = mean.sum[i] / N
            normalize.sum[i < M] = sum(x[i, k] * x[i, k] for k < N)
            normalize[i < M, j < N] = (x[i, j] - mean[i]) / sqrt(normalize.sum[i])
    """)


def test_a_hoisted_reduction_is_computed_once():
    def variance(x: tl.f32[N]):
        mean = tl.sum(x[i] for i in N) / N
        total = tl.sum(x[i] for i in N)
        return tl.sum((x[i] - mean) * (x[i] - mean) for i in N) / total

    assert text(variance) == lines("""
        def variance(x: f32[N]) -> f32[]:
            mean.sum[()] = sum(x[i] for i < N)
            variance.sum[()] = sum((x[i] - mean.sum[()] / N) * (x[i] - mean.sum[()] / N) for i < N)
            total[()] = sum(x[i] for i < N)
            variance[()] = variance.sum[()] / total[()]
    """)


def test_nested_reductions():
    def worst(x: tl.f32[M, N]):
        return tl.max(tl.sum(abs(x[i, j]) for j in N) for i in M)

    assert text(worst) == lines("""
        def worst(x: f32[M, N]) -> f32[]:
            worst.sum[i < M] = sum(abs(x[i, j]) for j < N)
            worst[()] = max(worst.sum[i] for i < M)
    """)


def test_reductions_in_branches_are_hoisted():
    def branch(x: tl.f32[M, N]):
        return tl.tensor(tl.where(i > 0, tl.sum(x[i, j] for j in N), 0) for i in M)

    assert text(branch) == lines("""
        def branch(x: f32[M, N]) -> f32[M]:
            branch.sum[i < M] = sum(x[i, j] for j < N)
            branch[i < M] = where(i > 0, branch.sum[i], 0)
    """)


def test_names_come_from_variables_and_clashes_are_numbered():
    def named(x: tl.f32[N]):
        x = tl.tensor(x[i] + 1 for i in N)
        x = tl.tensor(x[i] * 2 for i in N)
        y = tl.tensor(x[i] - 1 for i in N)
        return y, tl.tensor(y[i] for i in N), tl.tensor((x[i] for i in N), name="last")

    assert text(named) == lines("""
        def named(x: f32[N]) -> f32[N], f32[N], f32[N]:
            x_1[i < N] = x[i] + 1
            x_2[i < N] = x_1[i] * 2
            y[i < N] = x_2[i] - 1
            named.1[i < N] = y[i]
            last[i < N] = x_2[i]
    """)


def test_unnamed_intermediate_stages_are_named_too():
    def anonymous(x: tl.f32[N]):
        parts = [tl.tensor(x[i] * n for i in N) for n in range(2)]
        return tl.tensor(parts[0][i] + parts[1][i] for i in N)

    names = [stage.name for stage in tl.compute(anonymous).definition().stages]
    assert names == ["anonymous.stage", "anonymous.stage_1", "anonymous"]


def test_unused_stages_are_dropped():
    def lazy(x: tl.f32[N]):
        unused = tl.tensor(x[i] for i in N)
        also = tl.tensor(unused[i] for i in N)
        del also
        return tl.tensor(x[i] * 3 for i in N)

    assert [stage.name for stage in tl.compute(lazy).definition().stages] == ["lazy"]


def test_parameters_and_repeated_tensors_are_copied():
    def same(x: tl.f32[N]):
        y = tl.tensor(x[i] for i in N)
        return x, y, y

    definition = tl.compute(same).definition()
    assert [output.name for output in definition.outputs] == ["same.0", "y", "same.2"]
    assert all(definition.stage_of(output) is not None for output in definition.outputs)
    results = tl.compute(same).reference(np.arange(3, dtype=np.float32))
    for result in results:
        np.testing.assert_array_equal(result, [0, 1, 2])


def test_operators_inside_operators():
    def attention(q: tl.f32[M, K], k: tl.f32[N, K], v: tl.f32[N, K]):
        s = tl.tensor(tl.sum(q[i, d] * k[j, d] for d in K) for i in M for j in N)
        p = softmax(s)
        return tl.tensor(tl.sum(p[i, j] * v[j, d] for j in N) for i in M for d in K)

    assert text(attention) == lines("""
        def attention(q: f32[M, K], k: f32[N, K], v: f32[N, K]) -> f32[M, K]:
            s[i < M, j < N] = sum(q[i, d] * k[j, d] for d < K)
            softmax/top[i < M] = max(s[i, j] for j < N)
            softmax/e[i < M, j < N] = exp(s[i, j] - softmax/top[i])
            softmax/total[i < M] = sum(softmax/e[i, j] for j < N)
            p[i < M, j < N] = softmax/e[i, j] / softmax/total[i]
            attention[i < M, d < K] = sum(p[i, j] * v[j, d] for j < N)
    """)


def test_each_stage_has_axes_of_its_own():
    def twice(x: tl.f32[M, N]):
        return softmax(softmax(x))

    definition = tl.compute(twice).definition()
    variables = [variable for stage in definition.stages for variable in stage.variables]
    assert len(set(variables)) == len(variables)
    assert [stage.name for stage in definition.stages][-2:] == ["softmax_1/total", "twice"]


def test_tuples_are_computed_together():
    def both(x: tl.f32[N], y: tl.i32[N]):
        a, b = tl.tensor((x[i] + 1, y[i] * 2) for i in N)
        return a, b

    definition = tl.compute(both).definition()
    assert len(definition.stages) == 1
    assert [tensor.name for tensor in definition.stages[0].tensors] == ["a", "b"]


def test_half_precision_accumulates_in_single():
    def mean(x: tl.f16[M, N]):
        s = tl.tensor(tl.sum(x[i, j] for j in N) for i in M)
        return tl.tensor(s[i] / N for i in M)

    definition = tl.compute(mean).definition()
    assert [(stage.name, stage.tensor.dtype) for stage in definition.stages] == [
        ("s.acc", tl.f32), ("s", tl.f16), ("mean", tl.f16),
    ]  # fmt: skip
    assert text(mean) == lines("""
        def mean(x: f16[M, N]) -> f16[M]:
            s.acc[i < M] = sum(f32(x[i, j]) for j < N)
            s[i < M] = s.acc[i]
            mean[i < M] = f32(s[i]) / N
    """)


def test_stage_places_are_the_users_lines():
    definition = softmax.definition()
    lines = [stage.location.line for stage in definition.stages]
    assert [stage.location.file for stage in definition.stages] == [__file__] * 4
    assert lines == list(range(lines[0], lines[0] + 4))
    assert definition.location.text == "def softmax(X: tl.f32[M, N]):"


def test_dtype_of_a_tensor_can_be_given():
    def rounded(x: tl.f64[N]):
        y = tl.tensor((x[i] for i in N), dtype=tl.f32)
        return tl.tensor((tl.sum(y[i] for i in N) for _ in tl.range(1)), dtype=tl.f64)

    definition = tl.compute(rounded).definition()
    assert [stage.tensor.dtype for stage in definition.stages] == [tl.f32, tl.f32, tl.f64]


@pytest.mark.parametrize("shape", [(0, 3), (3, 1), (1, 7), (4, 5)])
def test_softmax(shape):
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    e = np.exp(x - x.max(axis=1, keepdims=True))
    np.testing.assert_allclose(
        softmax.reference(x), e / e.sum(axis=1, keepdims=True), rtol=1e-5, atol=1e-7
    )
