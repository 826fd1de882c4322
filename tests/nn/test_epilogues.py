"""The default schedules of layers: proved, and equal to the definition, at awkward sizes."""

import numpy as np
import pytest

import tensorlang as tl

M, N, K, B = tl.dims("M N K B")


@tl.compute
def affine_relu(a: tl.f32[M, K], b: tl.f32[K, N], bias: tl.f32[N]):
    product = tl.tensor(tl.sum(a[i, k] * b[k, j] for k in K) for i in M for j in N)
    return tl.tensor(tl.maximum(product[i, j] + bias[j], 0) for i in M for j in N)


@tl.compute
def transposed_tanh(a: tl.f64[M, K], b: tl.f64[N, K]):
    product = tl.tensor(tl.sum(a[i, k] * b[j, k] for k in K) for i in M for j in N)
    return tl.tensor(tl.tanh(product[i, j]) for i in M for j in N)


@tl.compute
def batched(a: tl.f32[B, M, K], b: tl.f32[K, N], c: tl.f32[B, M, N]):
    product = tl.tensor(tl.sum(a[h, i, k] * b[k, j] for k in K) for h in B for i in M for j in N)
    return tl.tensor(product[h, i, j] + c[h, i, j] for h in B for i in M for j in N)


@tl.compute
def compared(a: tl.f32[M, K], b: tl.f32[K, N]):
    product = tl.tensor(tl.sum(a[i, k] * b[k, j] for k in K) for i in M for j in N)
    return tl.tensor(product[i, j] > 0 for i in M for j in N)


@tl.compute
def two_products(a: tl.f32[M, K], b: tl.f32[K, N], c: tl.f32[K, N]):
    left = tl.tensor(tl.sum(a[i, k] * b[k, j] for k in K) for i in M for j in N)
    right = tl.tensor(tl.sum(a[i, k] * c[k, j] for k in K) for i in M for j in N)
    return tl.tensor(left[i, j] - right[i, j] for i in M for j in N)


@tl.compute
def read_transposed(a: tl.f32[M, K], b: tl.f32[K, N]):
    product = tl.tensor(tl.sum(a[i, k] * b[k, j] for k in K) for i in M for j in N)
    return tl.tensor(product[i, j] + 1 for j in N for i in M)


OPERATORS = (affine_relu, transposed_tanh, batched, compared, two_products, read_transposed)
SIZES = ({}, {"N": 10}, {"N": 1}, {"K": 1}, {"M": 1}, {"M": 1, "K": 1, "N": 3}, {"N": 40, "K": 3})


@pytest.mark.parametrize("operator", OPERATORS, ids=lambda operator: operator.name)
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_the_default_schedule_is_proved(operator, sizes):
    schedule = tl.schedule(operator, **sizes).default()
    assert schedule.verify()


@pytest.mark.parametrize("operator", OPERATORS, ids=lambda operator: operator.name)
@pytest.mark.parametrize(
    "sizes", [(3, 5, 7), (15, 33, 4), (1, 1, 1), (0, 3, 2), (2, 3, 0), (29, 17, 1)]
)
def test_the_default_schedule_agrees_with_the_definition(operator, sizes):
    rng = np.random.default_rng(0)
    known = dict(zip(("M", "N", "K"), sizes, strict=True), B=2)
    definition = operator.definition()
    arrays = [
        rng.standard_normal([known[str(extent)] for extent in tensor.shape]).astype(
            "f4" if tensor.dtype is tl.f32 else "f8"
        )
        for tensor in definition.inputs
    ]
    np.testing.assert_allclose(operator(*arrays), operator.reference(*arrays), rtol=1e-4, atol=1e-5)


def test_sums_have_no_storage_beyond_a_tile():
    text = str(tl.schedule(affine_relu).default())
    assert "product = global f32[M, N]" not in text
    assert text.count("parallel for") == 1


def test_an_operand_of_the_other_order_is_packed():
    assert "laid out (p0, p1) -> (p1, p0)" in str(tl.schedule(transposed_tanh).default())
