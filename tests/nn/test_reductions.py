"""Reductions over any axes against NumPy: sizes 0 and 1, dtypes that widen, keepdim."""

import numpy as np
import pytest
from scipy import special

import tensorlang as tl
from tensorlang import nn
from tests.nn.agreement import check, normal

AXES = [None, 0, (1, 2), (0, -1), -2, ()]
SHAPES = [(5, 7, 3), (1, 1, 1), (0, 3, 2), (3, 13, 0)]
FUNCTIONS = {
    "sum": (nn.sum, np.sum),
    "prod": (nn.prod, np.prod),
    "mean": (nn.mean, np.mean),
    "var": (nn.var, lambda x, **o: np.var(x, ddof=1, **o)),
    "std": (nn.std, lambda x, **o: np.std(x, ddof=1, **o)),
    "amax": (nn.amax, lambda x, **o: np.max(x, initial=-np.inf, **o)),
    "amin": (nn.amin, lambda x, **o: np.min(x, initial=np.inf, **o)),
    "all": (nn.all, np.all),
    "any": (nn.any, np.any),
    "logsumexp": (nn.logsumexp, lambda x, **o: special.logsumexp(x, **o).astype(x.dtype)),
    "norm": (nn.norm, lambda x, **o: np.sqrt(np.sum(x * x, **o))),
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_definition_for_any_axes(name):
    operator, expected = FUNCTIONS[name]
    for shape in SHAPES:
        x = normal(*shape)
        for axis in AXES:
            if name == "logsumexp" and (0 in shape or axis == ()):
                continue
            for keepdim in (False, True):
                found = operator.reference(x, axis=axis, keepdim=keepdim)
                wanted = np.asarray(expected(x, axis=axis, keepdims=keepdim))
                if name == "var" and shape == (1, 1, 1):
                    assert np.isnan(found).all()
                assert np.shape(found) == wanted.shape
                assert np.asarray(found).dtype == wanted.dtype
                np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=1e-5)


@pytest.mark.parametrize("name", ["sum", "var", "amax", "any", "logsumexp", "norm"])
@pytest.mark.parametrize(("axis", "keepdim"), [(None, False), ((0, -1), True), (1, False)])
def test_compiled_code(name, axis, keepdim):
    operator, expected = FUNCTIONS[name]
    x = normal(5, 7, 3)
    wanted = np.asarray(expected(x, axis=axis, keepdims=keepdim))
    check(operator, wanted, x, axis=axis, keepdim=keepdim)


def test_integers_and_bools_are_added_as_i64():
    for dtype in ("i4", "u1", "?"):
        x = (np.arange(12).reshape(3, 4) % 5).astype(dtype)
        check(nn.sum, x.sum(0, dtype="i8"), x, axis=0)
    assert nn.prod.reference(np.array([3, 5], "u8")).dtype == np.uint64
    check(nn.mean, np.array(1.5), np.arange(4, dtype="i4"), axis=None)


def test_f16_is_accumulated_in_f32():
    x = (normal(300, 4) * 300 + 3000).astype("f2")
    wide = x.astype("f8")
    check(nn.mean, wide.mean(0).astype("f2"), x, axis=0, rtol=2e-3)
    check(nn.std, wide.std(0, ddof=1).astype("f2"), x, axis=0, rtol=2e-3)
    check(nn.norm, np.sqrt((wide[:9] ** 2).sum(0)).astype("f2"), x[:9], axis=0, rtol=2e-3)


def test_the_variance_does_not_cancel():
    x = np.array([1e6, 1e6 + 1, 1e6 + 2], "f4")
    check(nn.var, np.float32(1), x, axis=None)


def test_logsumexp_of_infinities():
    x = np.array([[-np.inf, -np.inf], [np.inf, 0], [-np.inf, 2]], "f4")
    check(nn.logsumexp, np.array([-np.inf, np.inf, 2], "f4"), x, axis=1)


@pytest.mark.parametrize("p", [0, 1, 3, 0.5, np.inf, -np.inf])
def test_norms(p):
    x = normal(4, 9, dtype="f8")
    x[0, 0] = 0
    check(nn.norm, np.linalg.norm(x, p, axis=1), x, p=p, axis=1)


@pytest.mark.parametrize("axis", [0, -1, None])
def test_positions_of_extremes(axis):
    x = normal(4, 9)
    check(nn.argmax, np.asarray(x.argmax(axis)), x, axis=axis)
    check(nn.argmin, np.asarray(x.argmin(axis)), x, axis=axis)


def test_axes_that_do_not_exist_or_are_named_twice():
    with pytest.raises(tl.DefinitionError, match="mean: axis 2 does not exist: there are 2 axes"):
        nn.mean(normal(2, 3), axis=2)
    with pytest.raises(tl.DefinitionError, match=r"sum: axis \(0, -2\) names an axis twice"):
        nn.sum(normal(2, 3), axis=(0, -2))


def test_the_variance_of_integers_is_refused():
    with pytest.raises(tl.DefinitionError, match="var: x is i32; cast it to a float first"):
        nn.var(np.arange(3, dtype="i4"))
