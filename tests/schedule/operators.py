"""The operators on which schedules are tested, with sizes and arrays to run them on.

Values are small integers, in floats too, so that sums are exact in any order; where an operator
divides or takes exponents, ``Case.exact`` is False and results agree up to rounding.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import tensorlang as tl
from tensorlang.dtypes import to_numpy
from tensorlang.ir.affine import evaluate
from tensorlang.ir.definition import Definition

M, N, K = tl.dims("M N K")
H, W = tl.dims("H W")
B, C, F, R, S = tl.dims("B C F R S")


# --- maps ------------------------------------------------------------------------------------


@tl.compute
def double(x: tl.f32[N]):
    return tl.tensor(x[i] * 2 for i in N)


@tl.compute
def add(A: tl.f32[M, N], B: tl.f32[M, N]):
    return tl.tensor(A[i, j] + B[i, j] for i in M for j in N)


@tl.compute
def transpose(A: tl.i64[M, N]):
    return tl.tensor(A[i, j] for j in N for i in M)


@tl.compute
def add_scalar(x: tl.i32[N], alpha: tl.i32):
    return tl.tensor(x[i] * alpha + i for i in N)


@tl.compute
def positive(x: tl.f64[M, N]):
    return tl.tensor(x[i, j] > 0 for i in M for j in N)


@tl.compute
def cube(x: tl.f32[2, 3, N]):
    return tl.tensor(x[a, b, c] + 1 for a in tl.range(2) for b in tl.range(3) for c in N)


@tl.compute
def chain(x: tl.f32[N]):
    first = tl.tensor(x[i] + 1 for i in N)
    second = tl.tensor(first[i] * 2 for i in N)
    return tl.tensor(second[i] - first[i] for i in N)


@tl.compute
def two_outputs(x: tl.f32[M, N]):
    shared = tl.tensor(x[i, j] * 2 for i in M for j in N)
    plus = tl.tensor(shared[i, j] + 1 for i in M for j in N)
    minus = tl.tensor(shared[i, j] - 1 for i in M for j in N)
    return plus, minus


# --- neighbourhoods --------------------------------------------------------------------------


@tl.compute
def blur(image: tl.f32[H + 2, W + 2]):
    rows = tl.tensor(image[i, j] + image[i, j + 1] + image[i, j + 2] for i in H + 2 for j in W)
    return tl.tensor(rows[i, j] + rows[i + 1, j] + rows[i + 2, j] for i in H for j in W)


@tl.compute
def smooth(x: tl.f32[N]):
    """A stencil on a stencil, both of which stop at the ends."""
    h = tl.tensor(tl.where(i > 0, x[i - 1], 0) + x[i] for i in N)
    return tl.tensor(h[i] + tl.where(i + 1 < N, h[i + 1], 0) for i in N)


@tl.compute
def every_second(x: tl.f32[2 * N]):
    pairs = tl.tensor(x[i] + 1 for i in 2 * N)
    return tl.tensor(pairs[2 * i] - pairs[2 * i + 1] for i in N)


@tl.compute
def conv2d(x: tl.f32[B, C, H, W], f: tl.f32[F, C, R, S], *, stride: int = 1, pad: int = 0):
    p = tl.pad(x, {2: (pad, pad), 3: (pad, pad)})
    OH, OW = (H + 2 * pad - R) // stride + 1, (W + 2 * pad - S) // stride + 1
    return tl.tensor(
        tl.sum(
            p[b, c, y * stride + r, z * stride + s] * f[o, c, r, s] for c in C for r in R for s in S
        )
        for b in B
        for o in F
        for y in OH
        for z in OW
    )


# --- reductions ------------------------------------------------------------------------------


@tl.compute
def matmul(A: tl.f32[M, K], B: tl.f32[K, N]):
    return tl.tensor(tl.sum(A[i, k] * B[k, j] for k in K) for i in M for j in N)


@tl.compute
def matmul_bias(A: tl.i32[M, K], B: tl.i32[K, N], bias: tl.i32[N]):
    C = tl.tensor(tl.sum(A[i, k] * B[k, j] for k in K) for i in M for j in N)
    return tl.tensor(tl.maximum(C[i, j] + bias[j], 0) for i in M for j in N)


@tl.compute
def row_sum(x: tl.f32[M, N]):
    return tl.tensor(tl.sum(x[i, j] for j in N) for i in M)


@tl.compute
def column_sum(x: tl.f64[M, N]):
    return tl.tensor(tl.sum(x[i, j] for i in M) for j in N)


@tl.compute
def total(x: tl.i64[N]):
    return tl.sum(x[i] for i in N)


@tl.compute
def grand_total(x: tl.f32[M, N]):
    return tl.sum(x[i, j] for i in M for j in N)


@tl.compute
def half_sum(x: tl.f16[M, N]):
    return tl.tensor(tl.sum(x[i, j] for j in N) for i in M)


@tl.compute
def any_all(x: tl.bool_[M, N]):
    some = tl.tensor(tl.any(x[i, j] for j in N) for i in M)
    every = tl.tensor(tl.all(x[i, j] for j in N) for i in M)
    return some, every


@tl.compute
def argmax(x: tl.f32[M, N]):
    return tl.tensor(tl.argmax(x[i, j] for j in N) for i in M)


@tl.compute
def triangular(x: tl.f32[N, N]):
    return tl.tensor(tl.sum(x[i, j] for j in tl.range(0, i + 1)) for i in N)


@tl.compute
def band(x: tl.i32[M, N]):
    """A reduction whose bounds are tight on both sides."""
    return tl.tensor(
        tl.max(x[i, j] for j in tl.range(tl.maximum(i - 2, 0), tl.minimum(i + 3, N))) for i in M
    )


@tl.compute
def mean(x: tl.f32[M, N]):
    return tl.tensor(tl.sum(x[i, j] for j in N) / N for i in M)


@tl.compute
def softmax(X: tl.f32[M, N]):
    top = tl.tensor(tl.max(X[i, j] for j in N) for i in M)
    e = tl.tensor(tl.exp(X[i, j] - top[i]) for i in M for j in N)
    total = tl.tensor(tl.sum(e[i, j] for j in N) for i in M)
    return tl.tensor(e[i, j] / total[i] for i in M for j in N)


@tl.compute
def sum_and_squares(x: tl.i64[M, N]):
    """A state of two numbers: one stage, two buffers."""

    def combine(a, b):
        return a[0] + b[0], a[1] + b[1]

    linear, square = tl.tensor(
        tl.reduce(combine, (0, 0), ((x[i, j], x[i, j] * x[i, j]) for j in N)) for i in M
    )
    return tl.tensor(square[i] - linear[i] for i in M)


@tl.compute
def ordered(x: tl.f64[M, N]):
    return tl.tensor(
        tl.reduce(lambda a, b: a * 2 + b, 0, (x[i, j] for j in N), ordered=True) for i in M
    )


# --- recurrences, data-dependent indices -----------------------------------------------------


@tl.compute
def running_sum(x: tl.f32[M, N]):
    return tl.tensor(tl.scan(lambda a, b: a + b, 0, (x[i, j] for j in N)) for i in M)


@tl.compute
def scan_line(x: tl.i64[N]):
    sums = tl.scan(lambda a, b: a + b, 0, (x[j] for j in N), exclusive=True)
    return tl.tensor(sums[j] * 2 + x[j] for j in N)


@tl.compute
def gather(x: tl.f32[N], table: tl.i64[K]):
    doubled = tl.tensor(x[i] * 2 for i in N)
    return tl.tensor(doubled[table[k]] for k in K)


@tl.compute
def gather_rows(x: tl.f32[M, N], table: tl.i32[K]):
    return tl.tensor(x[table[k], j] for k in K for j in N)


# --- how they are run ------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """An operator, and what its tests need to know."""

    operator: Any
    sizes: tuple[str, ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    exact: bool = True
    indices: Mapping[str, str] = field(default_factory=dict)
    """For a table of indices: the input whose first axis it indexes."""

    @property
    def name(self) -> str:
        return self.operator.name + "".join(f"_{k}{v}" for k, v in self.options.items())

    def schedule(self, **sizes: int) -> tl.Schedule:
        return tl.schedule(self.operator, **self.options, **sizes)


CASES = (
    Case(double, ("N",)),
    Case(add, ("M", "N")),
    Case(transpose, ("M", "N")),
    Case(add_scalar, ("N",)),
    Case(positive, ("M", "N")),
    Case(cube, ("N",)),
    Case(chain, ("N",)),
    Case(two_outputs, ("M", "N")),
    Case(blur, ("H", "W")),
    Case(smooth, ("N",)),
    Case(every_second, ("N",)),
    Case(conv2d, ("B", "C", "H", "W", "F", "R", "S"), {"stride": 1, "pad": 1}),
    Case(conv2d, ("B", "C", "H", "W", "F", "R", "S"), {"stride": 2, "pad": 0}),
    Case(matmul, ("M", "N", "K")),
    Case(matmul_bias, ("M", "N", "K")),
    Case(row_sum, ("M", "N")),
    Case(column_sum, ("M", "N")),
    Case(total, ("N",)),
    Case(grand_total, ("M", "N")),
    Case(half_sum, ("M", "N")),
    Case(any_all, ("M", "N")),
    Case(argmax, ("M", "N")),
    Case(triangular, ("N",)),
    Case(band, ("M", "N")),
    Case(mean, ("M", "N"), exact=False),
    Case(softmax, ("M", "N"), exact=False),
    Case(sum_and_squares, ("M", "N")),
    Case(ordered, ("M", "N")),
    Case(running_sum, ("M", "N")),
    Case(scan_line, ("N",)),
    Case(gather, ("N", "K"), indices={"table": "x"}),
    Case(gather_rows, ("M", "N", "K"), indices={"table": "x"}),
)

BY_NAME = {case.name: case for case in CASES}


def arrays_for(
    definition: Definition, sizes: Mapping[str, int], case: Case, seed: int = 0
) -> dict[Any, np.ndarray[Any, Any]]:
    """Return an input array for each of the definition's inputs, of small integers."""
    generator = np.random.default_rng(seed)
    values = {variable: sizes[variable.name] for variable in definition.sizes}
    shapes = {
        tensor.name: tuple(evaluate(form, values) for form in tensor.shape)
        for tensor in definition.inputs
    }
    arrays: dict[Any, np.ndarray[Any, Any]] = {}
    for tensor in definition.inputs:
        low, high = (0, 2) if tensor.dtype is tl.bool_ else (-3, 4)
        if tensor.name in case.indices:
            low, high = 0, max(1, shapes[case.indices[tensor.name]][0])
        arrays[tensor] = generator.integers(low, high, shapes[tensor.name]).astype(
            to_numpy(tensor.dtype)
        )
    return arrays
