"""The two references of the demo agree with each other, on any picture."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorlang.cli.peers import gaussian_weights, unsharp_with_numpy, unsharp_with_scipy


def test_weights_are_a_symmetric_bell() -> None:
    weights = gaussian_weights()
    assert weights.dtype == np.float32
    np.testing.assert_array_equal(weights, weights[::-1])
    assert (np.diff(weights[:5]) > 0).all()
    np.testing.assert_allclose(weights.sum(), 1, rtol=1e-6)


@settings(deadline=None)  # the first call imports SciPy
@given(
    shape=st.tuples(st.integers(1, 3), st.integers(1, 23), st.integers(1, 23)),
    amount=st.floats(0, 4, width=32),
    seed=st.integers(0, 99),
)
def test_numpy_agrees_with_scipy(shape: tuple[int, int, int], amount: float, seed: int) -> None:
    picture = np.random.default_rng(seed).random(shape, dtype=np.float32)
    ours = unsharp_with_numpy(picture, gaussian_weights(), amount)
    theirs = unsharp_with_scipy(picture, amount)
    assert ours.dtype == theirs.dtype == np.float32
    np.testing.assert_allclose(ours, theirs, atol=1e-5)
