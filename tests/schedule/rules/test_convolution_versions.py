"""Versions of convolutions: few layers have all sizes fixed, and each call is right."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorlang as tl
from tensorlang.driver import versions
from tensorlang.schedule.rules import choice, chooser

FILTERS = ["w0", "w1", "w2", "w3"]


def definition(**attributes):
    return tl.nn.conv2d.definition(
        np.empty((0,) * 4, np.float32), np.empty((0,) * 4, np.float32), **attributes
    )


def sizes_of(image, filters):
    names = ["x0", "x1", "x2", "x3", *FILTERS]
    return dict(zip(names, (*image, *filters), strict=True))


@pytest.mark.parametrize("groups", [1, 8])
def test_the_choices_of_a_convolution(groups):
    sizes = sizes_of((2, 8, 14, 15), (16, 8 // groups, 3, 3))
    close, wide = chooser(definition(groups=groups, padding=1), "cpu").choose(sizes)
    assert [name for name, _ in close.fixed] == ["x1", "x2", "x3", *FILTERS]
    assert [name for name, _ in wide.fixed] == ["x1", *FILTERS]
    assert str(wide).startswith("x1 = 8, w0 = 16")


def test_a_definition_with_the_filters_known_leaves_only_pixels_to_fix():
    B, H = tl.dims("B H")

    @tl.compute
    def layer(x: tl.f32[B, 4, H, 9], w: tl.f32[8, 4, 3, 3]):
        return tl.nn.conv2d(x, w)

    found = chooser(tl.schedule(layer).definition, "cpu").choose({"B": 3, "H": 20})
    assert [version.fixed for version in found] == [(("H", 20),)]


def test_the_default_schedule_for_certain_sizes_stays_right_for_others():
    schedule = tl.schedule(_conv1d())
    sized = {size.name: 5 for size in schedule.definition.sizes}
    text = str(schedule.default(sizes=sized))
    assert text == str(tl.schedule(_conv1d()).default())


def _conv1d():
    B, C, W, N, S = tl.dims("B C W N S")

    @tl.compute
    def conv1d(x: tl.f32[B, C, W], w: tl.f32[N, C, S]):
        return tl.tensor(
            tl.sum(x[b, c, z + s] * w[o, c, s] for c in C for s in S)
            for b in B
            for o in N
            for z in W - S + 1
        )

    return conv1d


@pytest.fixture
def every_call_is_long(monkeypatch):
    """Let calls have versions, though they are short."""
    monkeypatch.setattr(versions, "LEAST_SECONDS", 0.0)
    monkeypatch.setattr(choice, "_LONG_CONVOLUTION", 0.0)


def reference(x, w, stride, padding, groups):
    padded = np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, w.shape[2:], (2, 3))
    windows = windows[:, :, ::stride, ::stride]
    batch, _, height, width = windows.shape[:4]
    apart = windows.reshape(batch, groups, w.shape[1], height, width, *w.shape[2:])
    filters = w.reshape(groups, len(w) // groups, *w.shape[1:])
    return np.einsum("bgcyzrs,gocrs->bgoyz", apart, filters).reshape(batch, len(w), height, width)


def call(f, image, filters, stride=1, padding=0, groups=1):
    rng = np.random.default_rng(sum(image) + sum(filters))
    x = rng.integers(-3, 4, image).astype(np.float32)
    w = rng.integers(-3, 4, filters).astype(np.float32)
    np.testing.assert_array_equal(f(x, w), reference(x, w, stride, padding, groups))
    return [version.choice for version in f.function_for(x, w).report.versions]


def test_after_a_few_images_of_other_sizes_a_version_for_all_of_them(every_call_is_long):
    f = tl.compile(tl.nn.conv2d, opt_level=1)
    for height in range(6, 15):
        call(f, (1, 4, height, 9), (8, 4, 3, 3))
    call(f, (3, 4, 7, 9), (8, 4, 3, 3))  # images more than one share a version
    choices = [chosen for chosen in call(f, (3, 4, 20, 9), (8, 4, 3, 3)) if chosen]
    assert len(choices) == versions._ALIKE + 1
    assert sum("x2 = " in chosen for chosen in choices) == versions._ALIKE
    choices = call(f, (1, 5, 6, 9), (8, 5, 3, 3))  # another layer has versions of its own
    assert "x2 = 6" in choices[-1]


KINDS = [
    {"stride": 1, "padding": 1, "groups": 1},
    {"stride": 2, "padding": 1, "groups": 6},
    {"stride": 1, "padding": 1, "groups": 6},
    {"stride": 3, "padding": 0, "groups": 2},
]


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_every_version_computes_the_convolution(every_call_is_long, kind):
    f = tl.compile(tl.nn.conv2d, opt_level=1, **kind)

    @settings(deadline=None, max_examples=12)
    @given(
        st.sampled_from([0, 1, 2]),
        st.sampled_from([3, 4, 17]),
        st.sampled_from([3, 8, 16, 17, 33]),
        st.sampled_from([1, 3]),
    )
    def check(batch, height, width, window):
        groups = kind["groups"]
        chosen = call(f, (batch, 6, height, width), (6, 6 // groups, window, window), **kind)
        assert any("x2 = " in version for version in chosen)

    check()
