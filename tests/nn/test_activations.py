"""Activations against NumPy and SciPy, at values where formulas overflow or lose digits."""

import numpy as np
import pytest
from scipy import special

import tensorlang as tl
from tensorlang import nn
from tests.nn.agreement import check, normal

VALUES = np.array([np.nan, np.inf, -200, -20.5, -3, -1, -0.5, -1e-3, 0, 1e-3, 0.5, 1, 3, 6, 30])


def softplus(x):
    return np.logaddexp(0, x)


CASES = {
    "relu6": (nn.relu6, lambda x: np.clip(x, 0, 6), {}),
    "hardtanh": (nn.hardtanh, lambda x: np.clip(x, -2, 1.5), {"min_val": -2.0, "max_val": 1.5}),
    "leaky_relu": (nn.leaky_relu, lambda x: np.where(x > 0, x, 0.01 * x), {}),
    "elu": (nn.elu, lambda x: np.where(x > 0, x, 0.3 * np.expm1(x)), {"alpha": 0.3}),
    "selu": (
        nn.selu,
        lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x)),
        {},
    ),
    "celu": (nn.celu, lambda x: np.where(x > 0, x, 2 * np.expm1(x / 2)), {"alpha": 2.0}),
    "gelu": (nn.gelu, lambda x: x * special.ndtr(x), {}),
    "gelu tanh": (
        nn.gelu,
        lambda x: 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
        {"approximate": "tanh"},
    ),
    "silu": (nn.silu, lambda x: x * special.expit(x), {}),
    "mish": (nn.mish, lambda x: x * np.tanh(softplus(x)), {}),
    "softplus": (nn.softplus, lambda x: softplus(x), {}),
    "softplus beta": (
        nn.softplus,
        lambda x: np.where(2 * x > 5, x, softplus(2 * x) / 2),
        {"beta": 2.0, "threshold": 5.0},
    ),
    "softsign": (nn.softsign, lambda x: x / (1 + np.abs(x)), {}),
    "logsigmoid": (nn.logsigmoid, lambda x: -softplus(-x), {}),
    "hardsigmoid": (nn.hardsigmoid, lambda x: np.clip(x + 3, 0, 6) / 6, {}),
    "hardswish": (nn.hardswish, lambda x: x * np.clip(x + 3, 0, 6) / 6, {}),
    "tanhshrink": (nn.tanhshrink, lambda x: x - np.tanh(x), {}),
    "softshrink": (nn.softshrink, lambda x: np.sign(x) * np.maximum(np.abs(x) - 0.5, 0), {}),
    "hardshrink": (nn.hardshrink, lambda x: np.where(np.abs(x) <= 0.5, 0, x), {}),
    "threshold": (
        nn.threshold,
        lambda x: np.where(x <= 0.5, 7, x),
        {"threshold": 0.5, "value": 7.0},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_activations(name):
    operator, expected, attributes = CASES[name]
    x = VALUES[[0, *range(2, len(VALUES))]]
    with np.errstate(all="ignore"):
        check(operator, expected(x), x, **attributes, rtol=1e-7, atol=1e-12)
        for dtype, rtol in ((np.float32, 1e-5), (np.float16, 2e-3)):
            rounded = x.astype(dtype)
            found = operator.reference(rounded, **attributes)
            assert found.dtype == dtype
            np.testing.assert_allclose(found, expected(rounded.astype("f8")), rtol=rtol, atol=1e-3)
    assert operator.reference(x[:0].reshape(3, 0), **attributes).shape == (3, 0)


@pytest.mark.parametrize("count", [(), (1,), (3,)])
def test_prelu(count):
    x, w = normal(2, 3, 5), normal(*count, seed=1)
    slope = w if w.size == 1 else w[:, None]
    check(nn.prelu, np.where(x > 0, x, slope * x), x, w)


def test_prelu_of_slopes_that_do_not_fit():
    with pytest.raises(ValueError, match="w has one element, or one for each channel of x"):
        nn.prelu(normal(2, 3), normal(2))


@pytest.mark.parametrize("axis", [0, -1])
def test_glu(axis):
    x = normal(4, 6)
    a, b = np.split(x, 2, axis)
    check(nn.glu, a * special.expit(b), x, axis=axis)


def test_glu_of_an_odd_axis():
    with pytest.raises(ValueError, match="glu: the axis must have an even number of elements"):
        nn.glu(normal(3))


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("shape", [(5, 7), (1, 1), (0, 3)])
def test_log_softmax_and_softmin(axis, shape):
    x = normal(*shape) * 4
    if shape == (5, 7):
        check(nn.softmin, special.softmax(-x, axis), x, axis=axis)
        check(nn.log_softmax, special.log_softmax(x, axis), x, axis=axis)
    else:
        assert nn.log_softmax.reference(x, axis=axis).shape == shape


def test_log_softmax_of_large_numbers():
    check(nn.log_softmax, np.array([-1e4, 0.0], "f4"), np.array([0, 1e4], "f4"))


def test_a_name_of_an_approximation_that_does_not_exist():
    with pytest.raises(tl.DefinitionError, match='gelu: approximate is "none" or "tanh"'):
        nn.gelu(normal(3), approximate="sigmoid")
