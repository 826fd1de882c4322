"""How the tests of ``tl.nn`` compare an operator with NumPy: its definition, and compiled code."""

from functools import cache

import numpy as np

import tensorlang as tl


@cache
def compiled(operator, attributes):
    """Return compiled code; the lowest level compiles fastest, and others are tested elsewhere."""
    return tl.compile(operator, opt_level=1, **dict(attributes))


def check(operator, expected, *args, rtol=2e-5, atol=1e-5, **attributes):
    """Check shape, dtype and values of the definition and of compiled code."""
    wanted = expected if isinstance(expected, tuple) else (expected,)
    run = compiled(operator, tuple(attributes.items()))
    for found in (operator.reference(*args, **attributes), run(*args)):
        results = found if isinstance(found, tuple) else (found,)
        for result, value in zip(results, wanted, strict=True):
            assert np.asarray(result).dtype == np.asarray(value).dtype
            assert np.shape(result) == np.shape(value)
            np.testing.assert_allclose(
                np.asarray(result, "f8"), np.asarray(value, "f8"), rtol=rtol, atol=atol
            )


def normal(*shape, dtype="f4", seed=0):
    """Return normally distributed numbers."""
    return np.asarray(np.random.default_rng(seed).standard_normal(shape)).astype(dtype)
