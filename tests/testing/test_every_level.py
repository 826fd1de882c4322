"""Random schedules, run after every pass in the interpreter and then compiled, give one result."""

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings

import tensorlang as tl
import tensorlang.testing as tlt
from tensorlang.interpreter import run_lowered, run_program
from tensorlang.ir.affine import evaluate
from tensorlang.ir.program import Program
from tensorlang.ir.verify import verify_lowered, verify_scheduled
from tensorlang.lower.pipeline import lowering_steps
from tensorlang.testing.sizes import most_terms

M, N, K, C, O, R = tl.dims("M N K C O R")  # noqa: E741


@tl.compute
def matmul(A: tl.f32[M, K], B: tl.f32[K, N]):
    return tl.tensor(tl.sum(A[i, k] * B[k, j] for k in K) for i in M for j in N)


@tl.compute
def convolution(x: tl.f64[C, N], f: tl.f64[O, C, R]):
    p = tl.pad(x, {1: (1, 1)})
    return tl.tensor(
        tl.sum(p[c, z + r] * f[o, c, r] for c in C for r in R) for o in O for z in N + 2 - R + 1
    )


@tl.compute
def softmax(X: tl.f32[M, N]):
    top = tl.tensor(tl.max(X[i, j] for j in N) for i in M)
    e = tl.tensor(tl.exp(X[i, j] - top[i]) for i in M for j in N)
    total = tl.tensor(tl.sum(e[i, j] for j in N) for i in M)
    return tl.tensor(e[i, j] / total[i] for i in M for j in N)


@tl.compute
def running(x: tl.i32[M, N]):
    return tl.tensor(tl.scan(lambda a, b: a + b, 0, (x[i, j] for j in N)) for i in M)


@tl.compute
def largest(x: tl.f32[M, N]):
    return tl.tensor(tl.argmax(x[i, j] for j in N) for i in M)


@tl.compute
def take(table: tl.i64[N], x: tl.f32[M, K]):
    return tl.tensor(x[table[i], k] for i in N for k in K)


@tl.compute
def below_diagonal(x: tl.f32[N, N]):
    return tl.tensor(tl.sum(x[i, j] for j in tl.range(0, i + 1)) for i in N)


@tl.compute
def neighbours(x: tl.i64[N]):
    return tl.tensor(tl.where(i > 0, x[i - 1], 0) + tl.where(i < N - 1, x[i + 1], 0) for i in N)


@tl.compute
def row_sums(x: tl.f16[M, N]):
    return tl.tensor(tl.sum(x[i, j] for j in N) for i in M)


OPERATORS = (
    matmul, convolution, softmax, running, largest, take, below_diagonal, neighbours, row_sums,
)  # fmt: skip


def results_at(state, definition, args):
    """Run a program of either grammar on drawn arguments."""
    inputs = dict(zip(definition.inputs, args, strict=True))
    if isinstance(state, Program):
        results = run_program(state, inputs, args.sizes)
        return tuple(results[tensor] for tensor in definition.outputs)
    arrays = [np.ascontiguousarray(inputs[tensor]) for tensor in definition.inputs]
    sizes = [args.sizes[size] for size in definition.sizes]
    shapes = [tuple(evaluate(e, args.sizes) for e in t.shape) for t in definition.outputs]
    return tuple(run_lowered(state, arrays, (), sizes, shapes))


@pytest.mark.parametrize("operator", OPERATORS, ids=lambda operator: operator.name)
def test_every_level_gives_what_the_definition_says(operator):
    @settings(
        max_examples=8, deadline=None, database=None, suppress_health_check=list(HealthCheck),
        phases=[Phase.generate, Phase.shrink],
    )  # fmt: skip
    @given(tlt.schedules(operator), tlt.arguments(operator))
    def check(s, args):
        expected = operator.reference(*args)
        terms = most_terms(args.definition, args.sizes)
        verify_scheduled(s.program)
        state = s.program
        for name, state in lowering_steps(s.program):
            found = results_at(state, s.definition, args)
            try:
                tlt.assert_close(found, (expected,), terms=terms)
            except AssertionError as error:
                raise AssertionError(f"after {name}: {error}") from None
        verify_lowered(state)
        tlt.assert_close(tl.compile(s)(*args), expected, terms=terms)

    check()
