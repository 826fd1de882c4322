"""Normalizations against NumPy: any trailing axes, batches, groups, f16."""

import numpy as np
import pytest

import tensorlang as tl
from tensorlang import nn
from tests.nn.agreement import check, normal

SHAPES = [(2, 6, 7, 5), (1, 6, 1, 1), (0, 6, 3, 3), (3, 6)]


def normalized(x, axes, eps=1e-5):
    wide = x.astype("f8")
    mean, var = wide.mean(axes, keepdims=True), wide.var(axes, keepdims=True)
    return (wide - mean) / np.sqrt(var + eps)


def along_channels(parameter, x):
    return parameter.reshape(-1, *[1] * (x.ndim - 2))


@pytest.mark.parametrize("shape", SHAPES)
def test_batch_norm(shape):
    x, m, w, b = normal(*shape) + 5, normal(6, seed=1), normal(6, seed=2), normal(6, seed=3)
    v = np.abs(normal(6, seed=4)) + 0.1
    wm, wv, ww, wb = (along_channels(p, x) for p in (m, v, w, b))
    check(nn.batch_norm, (x - wm) / np.sqrt(wv + 1e-5) * ww + wb, x, m, v, w, b)
    if shape[0] == 2:
        plain = ((x - wm) / np.sqrt(wv + np.float32(0.1))).astype("f4")
        check(nn.batch_norm, plain, x, m, v, eps=0.1)
        trained = (normalized(x, (0, 2, 3)) * ww + wb).astype("f4")
        check(nn.batch_norm, trained, x, None, None, w, b, training=True, atol=1e-4)


def test_batch_norm_without_statistics():
    with pytest.raises(tl.DefinitionError, match="mean and var are needed unless training=True"):
        nn.batch_norm(normal(2, 3))
    with pytest.raises(ValueError, match="mean has one element for each channel of x"):
        nn.batch_norm(normal(2, 3), normal(4), normal(3))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("shape", SHAPES[:3])
def test_instance_norm(shape):
    x, w, b = normal(*shape) + 5, normal(6, seed=2), normal(6, seed=3)
    wanted = normalized(x, (2, 3)) * along_channels(w, x) + along_channels(b, x)
    check(nn.instance_norm, wanted.astype("f4"), x, w, b, atol=1e-4)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(("shape", "groups"), [*[(s, 3) for s in SHAPES], ((2, 6, 5), 1)])
def test_group_norm(shape, groups):
    x, w, b = normal(*shape) + 5, normal(6, seed=2), normal(6, seed=3)
    split = x.reshape(shape[0], groups, 6 // groups, *shape[2:])
    plain = normalized(split, tuple(range(2, split.ndim))).reshape(shape)
    wanted = plain * along_channels(w, x) + along_channels(b, x)
    check(nn.group_norm, wanted.astype("f4"), x, w, b, num_groups=groups, atol=1e-4)


def test_group_norm_of_channels_that_do_not_divide():
    with pytest.raises(ValueError, match="group_norm: num_groups must divide the channels"):
        nn.group_norm(normal(2, 5, 3), num_groups=2)


def test_norms_over_several_axes():
    x, w, b = normal(2, 3, 5) + 5, normal(3, 5, seed=1), normal(3, 5, seed=2)
    check(nn.layer_norm, (normalized(x, (1, 2)) * w + b).astype("f4"), x, w, b, atol=1e-4)
    scale = 1 / np.sqrt((x.astype("f8") ** 2).mean((1, 2), keepdims=True) + 2.0**-23)
    check(nn.rms_norm, (x * scale * w).astype("f4"), x, w)


@pytest.mark.parametrize("shape", [(3, 7), (1,), (0, 3)])
def test_rms_norm(shape):
    x = normal(*shape, dtype="f8")
    wanted = x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-3)
    check(nn.rms_norm, wanted, x, eps=1e-3)


def test_f16_does_not_overflow():
    x = (normal(2, 900) * 300).astype("f2")
    check(nn.layer_norm, normalized(x, -1).astype("f2"), x, rtol=4e-3, atol=1e-3)
