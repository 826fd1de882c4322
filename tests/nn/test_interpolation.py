"""Resizing against NumPy's interp, axis by axis, and against exact places of nearest elements."""

from fractions import Fraction

import numpy as np
import pytest

import tensorlang as tl
from tensorlang import nn
from tests.nn.agreement import check, normal

LINEAR = {1: "linear", 2: "bilinear", 3: "trilinear"}


def extents(shape, size, scale):
    return [
        (n, size or int(n * scale), Fraction(n, size) if size else 1 / Fraction(scale))
        for n in shape[2:]
    ]


def linear(x, size, scale, align):
    for axis, (n, m, ratio) in enumerate(extents(x.shape, size, scale), 2):
        centres = (np.arange(m) + 0.5) * float(ratio) - 0.5
        places = np.linspace(0, n - 1, m) if align else centres
        x = np.apply_along_axis(lambda row, p=places, n=n: np.interp(p, range(n), row), axis, x)
    return x


def nearest(x, size, scale, centre):
    for axis, (n, m, ratio) in enumerate(extents(x.shape, size, scale), 2):
        shift = Fraction(1, 2) if centre else 0
        x = x.take([min(int((i + shift) * ratio), n - 1) for i in range(m)], axis)
    return x


@pytest.mark.parametrize("shape", [(2, 3, 7), (1, 2, 5, 7), (1, 1, 3, 4, 5), (1, 1, 1, 1)], ids=str)
@pytest.mark.parametrize(
    ("size", "scale"), [(4, None), (1, None), (None, 2), (None, 0.6), (None, 1.5)]
)
def test_interpolate(shape, size, scale):
    x, axes = normal(*shape), len(shape) - 2
    if scale == 0.6 and 1 in shape[2:]:
        return
    ratio = scale and Fraction(scale).limit_denominator(4096)
    options = {"size": size} if size else {"scale_factor": scale}
    run = nn.interpolate.reference
    for mode, centre in (("nearest", False), ("nearest-exact", True)):
        np.testing.assert_array_equal(run(x, mode=mode, **options), nearest(x, size, ratio, centre))
    for align in (False, True):
        wanted = linear(x, size, ratio, align)
        found = run(x, mode=LINEAR[axes], align_corners=align, **options)
        assert found.dtype == x.dtype
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("options", [{"size": (3, 9)}, {"scale_factor": 2}, {"scale_factor": 1.5}])
def test_compiled_code(options):
    x = normal(2, 2, 5, 7)
    for mode, align in (("nearest", False), ("bilinear", False), ("bilinear", True)):
        attributes = {"mode": mode, "align_corners": align, **options}
        check(nn.interpolate, nn.interpolate.reference(x, **attributes), x, **attributes)


def test_an_empty_batch_and_f16():
    x = normal(0, 2, 3, 3, dtype="f2")
    assert nn.interpolate.reference(x, size=5, mode="bilinear").shape == (0, 2, 5, 5)
    assert nn.interpolate.reference(x, size=5, mode="bilinear").dtype == np.float16


@pytest.mark.parametrize(
    ("options", "message"),
    [({}, "give either size or scale_factor"),
     ({"size": 2, "scale_factor": 2}, "give either size or scale_factor"),
     ({"size": 2, "mode": "linear"}, "mode linear does not fit 2 axes"),
     ({"size": 2, "mode": "cubic"}, "mode is one of nearest, nearest-exact, linear"),
     ({"size": (2, 0)}, "size is a positive number, or 2 of them"),
     ({"size": 2, "align_corners": True}, "align_corners is for the linear modes")],
    ids=str,
)  # fmt: skip
def test_mistakes(options, message):
    with pytest.raises(tl.DefinitionError, match=message):
        nn.interpolate(normal(1, 1, 3, 3), **options)
