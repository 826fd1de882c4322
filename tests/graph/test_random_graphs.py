"""Compiled graphs agree with the references of their operators, whatever the passes do."""

import numpy as np
from hypothesis import HealthCheck, given, settings

import tensorlang as tl
from tests.graph.random_graphs import graphs


def as_tuple(value):
    return value if isinstance(value, tuple) else (value,)


def assert_agree(found, expected):
    for one, other in zip(as_tuple(found), as_tuple(expected), strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)


@settings(
    max_examples=12, deadline=None, derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)  # fmt: skip
@given(graphs())
def test_every_level_agrees_with_the_references(case):
    expected = case.graph.reference(*case.arrays)
    for context in (
        tl.PassContext(opt_level=0),
        tl.PassContext(opt_level=3, disable=["fuse_elementwise"]),
        tl.PassContext(opt_level=3),
    ):
        with context:
            compiled = tl.compile(case.graph, opt_level=0)
        assert_agree(compiled(*case.arrays), expected)
        assert_agree(compiled(*case.arrays), expected)  # in memory that is used again
