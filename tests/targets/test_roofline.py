"""The ceilings of a machine: kept on disk, read back, and picked by level and threads."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorlang.targets import ceilings as module
from tensorlang.targets.ceilings import LEVELS, Ceilings, ceilings_path, known_ceilings
from tensorlang.targets.cpu import host_target
from tensorlang.targets.roofline import estimated_roofline, level_of, roofline

FIGURES = st.floats(min_value=0.1, max_value=1e4)


@st.composite
def any_ceilings(draw):
    threads = draw(st.integers(1, 64))
    counts = {1, threads}
    gflops = {f"{bits} x {n}": draw(FIGURES) for bits in (32, 64) for n in counts}
    gigabytes = {f"{level} x {n}": draw(FIGURES) for level in LEVELS for n in counts}
    return Ceilings(threads, gflops, gigabytes)


MEASURED = Ceilings(
    4,
    {"32 x 1": 100.0, "32 x 4": 400.0, "64 x 1": 50.0, "64 x 4": 200.0},
    {f"{level} x {n}": 10.0 * n for level in LEVELS for n in (1, 4)},
)


@pytest.fixture
def target(monkeypatch, tmp_path):
    """A processor whose ceilings this process does not know, and an empty folder."""
    monkeypatch.setattr(module, "_known", {})
    monkeypatch.setattr(module, "cache_folder", lambda wish: tmp_path)
    return host_target()


@given(any_ceilings(), st.integers(1, 100))
def test_threads_in_between_lie_in_between(known, threads):
    for bits in (8, 16, 32, 64):
        ends = [known.arithmetic(bits, count) for count in (1, known.threads)]
        assert min(ends) * 0.999 <= known.arithmetic(bits, threads) <= max(ends) * 1.001


def test_narrow_numbers_count_as_f32():
    assert MEASURED.arithmetic(16, 1) == MEASURED.arithmetic(32, 1) == 100
    assert MEASURED.arithmetic(64, 4) == 200


@given(st.integers(0, 1 << 40), st.integers(0, 1 << 40), st.integers(1, 16))
def test_more_bytes_never_lie_nearer(one, other, threads):
    target = host_target()
    places = [LEVELS.index(level_of(target, touched, threads)) for touched in sorted((one, other))]
    assert places == sorted(places)


def test_what_is_measured_is_kept(target, monkeypatch):
    asked: list[int] = []
    monkeypatch.setattr(module, "_measure", lambda: asked.append(1) or MEASURED)
    assert known_ceilings(target) is None
    assert module.ceilings(target) == MEASURED
    monkeypatch.setattr(module, "_known", {})  # as in another process
    assert module.ceilings(target) == known_ceilings(target) == MEASURED
    assert len(asked) == 1
    module.ceilings(target, again=True)
    assert len(asked) == 2
    limits = roofline(target, 64, 4, touched=1)
    assert (limits.gflops, limits.gigabytes, limits.level) == (200, 40, "L1")
    assert limits.measured
    assert limits.balance == 5


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "{}", '{"threads": 1, "gflops": {}, "gigabytes": {}}', "\x00", "null"],
)
def test_a_damaged_file_is_measured_again(target, monkeypatch, text):
    monkeypatch.setattr(module, "_measure", lambda: MEASURED)
    path = ceilings_path(target)
    assert path is not None
    path.write_text(text)
    assert known_ceilings(target) is None
    assert module.ceilings(target) == MEASURED
    assert json.loads(path.read_text())["threads"] == 4


@pytest.mark.parametrize("figure", [0.0, -1.0, float("nan"), float("inf"), "fast", None])
def test_figures_that_no_machine_has_are_not_believed(target, figure):
    path = ceilings_path(target)
    assert path is not None
    gflops = {**MEASURED.gflops, "32 x 4": figure}
    found = {"threads": 4, "gflops": gflops, "gigabytes": dict(MEASURED.gigabytes)}
    path.write_text(json.dumps(found))
    assert known_ceilings(target) is None


def test_a_folder_that_cannot_be_written_is_no_error(target, monkeypatch, tmp_path):
    file = tmp_path / "file"
    file.write_text("")
    monkeypatch.setattr(module, "cache_folder", lambda wish: file)
    monkeypatch.setattr(module, "_measure", lambda: MEASURED)
    assert module.ceilings(target) == MEASURED
    monkeypatch.setattr(module, "cache_folder", lambda wish: None)
    assert module.ceilings(target, again=True) == MEASURED
    assert [path.name for path in Path(tmp_path).iterdir()] == ["file"]


def test_another_processor_is_not_measured(target, monkeypatch):
    monkeypatch.setattr(module, "_measure", lambda: MEASURED)
    other = replace(target, text="cpu -mcpu=other", cpu="other")
    assert module.ceilings(other) is None
    assert not roofline(other).measured


def test_the_estimate_follows_the_facts():
    target = host_target()
    single, double = estimated_roofline(target, 32), estimated_roofline(target, 64)
    assert single.gflops == pytest.approx(2 * double.gflops)
    assert estimated_roofline(target, 32, 3).gflops == pytest.approx(3 * single.gflops)
    assert single.balance == pytest.approx(single.gflops / single.gigabytes)
