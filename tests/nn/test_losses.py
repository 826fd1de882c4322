"""Losses against NumPy: reductions, weights, ignored targets, smoothing, probabilities."""

import numpy as np
import pytest
from scipy import special

import tensorlang as tl
from tensorlang import nn
from tests.nn.agreement import check, normal

REDUCE = {"mean": np.mean, "sum": np.sum, "none": lambda losses: losses}
PROBABILITIES = special.expit(normal(3, 7, seed=2)), special.expit(normal(3, 7, seed=3))


def smooth(x, y, beta=0.5):
    d = np.abs(x - y)
    return np.where(d < beta, d * d / (2 * beta), d - beta / 2)


def huber(x, y, delta=0.5):
    d = np.abs(x - y)
    return np.where(d <= delta, d * d / 2, delta * (d - delta / 2))


CASES = {
    "mse_loss": (lambda x, y: (x - y) ** 2, {}),
    "l1_loss": (lambda x, y: np.abs(x - y), {}),
    "smooth_l1_loss": (smooth, {"beta": 0.5}),
    "huber_loss": (huber, {"delta": 0.5}),
    "binary_cross_entropy": (lambda x, y: -y * np.log(x) - (1 - y) * np.log1p(-x), {}),
    "binary_cross_entropy_with_logits": (lambda x, y: np.logaddexp(0, x) - x * y, {}),
    "kl_div": (lambda x, y: y * (np.log(y) - x), {}),
}


@pytest.mark.parametrize("name", CASES)
def test_losses_by_element(name):
    losses, attributes = CASES[name]
    operator, (x, y) = getattr(nn, name), PROBABILITIES
    for reduction, reduce in REDUCE.items():
        found = operator.reference(x, y, reduction=reduction, **attributes)
        np.testing.assert_allclose(found, reduce(losses(x, y)), rtol=1e-5, atol=1e-6)
    check(operator, np.asarray(losses(x, y).mean()), x, y, **attributes)
    with pytest.raises(tl.DefinitionError, match=f'{name}: reduction is "mean", "sum" or "none"'):
        operator.reference(x, y, reduction="max")


def test_certain_probabilities_have_finite_losses():
    x, y = np.array([0, 1], "f4"), np.array([1, 1], "f4")
    check(nn.binary_cross_entropy, np.array([100, 0], "f4"), x, y, reduction="none")
    check(nn.kl_div, np.array([0, -1], "f4"), x, y * x, reduction="none")


def test_kl_div_of_rows():
    x, y = np.log(PROBABILITIES[0]), np.log(PROBABILITIES[1])
    wanted = (np.exp(y) * (y - x)).sum() / 3
    check(nn.kl_div, np.asarray(wanted), x, y, reduction="batchmean", log_target=True)


def class_losses(x, target, w, ignored, smoothing=0.0):
    """Return the loss and the weight of each target."""
    logs = special.log_softmax(x.astype("f8"), min(1, x.ndim - 1))
    logs = np.moveaxis(logs, min(1, x.ndim - 1), -1)
    counted = target != ignored
    safe = np.where(counted, target, 0)
    picked = -np.take_along_axis(logs, safe[..., None], -1)[..., 0] * w[safe]
    even = -(logs * w).sum(-1) / len(w)
    loss = picked * (1 - smoothing) + even * smoothing
    return np.where(counted, loss, 0), np.where(counted, w[safe], 0)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("shape", [(5, 4), (4,), (2, 4, 3, 2), (0, 4)])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_cross_entropy(shape, smoothing):
    x, w = normal(*shape), np.abs(normal(4, seed=5)) + 0.1
    rng = np.random.default_rng(0)
    target = np.asarray(rng.integers(0, 4, shape[:1] + shape[2:] if len(shape) > 1 else ()))
    if target.size > 1:
        target.flat[0] = -100
    for weight in (None, w):
        used = np.ones(4) if weight is None else w
        losses, weights = class_losses(x, target, used, -100, smoothing)
        wanted = {"mean": losses.sum() / weights.sum(), "sum": losses.sum(), "none": losses}
        for reduction, value in wanted.items():
            found = nn.cross_entropy.reference(
                x, target, weight, reduction=reduction, label_smoothing=smoothing
            )
            np.testing.assert_allclose(found, value, rtol=2e-5, atol=1e-5)
    if shape == (2, 4, 3, 2):
        value = np.asarray(wanted["mean"], "f4")
        check(nn.cross_entropy, value, x, target, w, label_smoothing=smoothing)


def test_cross_entropy_of_probabilities():
    x, p = normal(5, 4), special.softmax(normal(5, 4, seed=1), 1)
    smoothed = p * 0.9 + 0.1 / 4
    wanted = -(special.log_softmax(x, 1) * smoothed).sum() / 5
    check(nn.cross_entropy, np.float32(wanted), x, p, label_smoothing=0.1)


def test_nll_loss():
    logs, target = special.log_softmax(normal(5, 4), 1), np.array([0, 3, 2, 2, 1])
    picked = -logs[np.arange(5), target] * (target != 2)
    check(nn.nll_loss, np.float32(picked.sum() / 3), logs, target, ignore_index=2)
    check(nn.nll_loss, picked, logs, target, ignore_index=2, reduction="none")
    with pytest.raises(IndexError):
        nn.nll_loss(logs, target + 1)
    with pytest.raises(tl.DefinitionError, match="nll_loss: x has shape"):
        nn.nll_loss(logs, logs)


def test_shapes_that_differ():
    with pytest.raises(ValueError, match="mse_loss: x and the target have the same shape"):
        nn.mse_loss(normal(2, 3), normal(2, 4))
