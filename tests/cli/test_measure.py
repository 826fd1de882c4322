"""Interleaved timing: order, number of calls, and what is reported."""

import pytest

from tensorlang.cli import measure
from tensorlang.cli.measure import Timing, interleave


def test_programs_take_turns_in_a_rotating_order() -> None:
    calls: list[str] = []
    names = ("a", "b", "c")
    interleave({name: lambda name=name: calls.append(name) for name in names}, rounds=3)
    assert "".join(calls) == "abc" + "abc" + "bca" + "cab"


def test_the_median_ignores_a_disturbed_round(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    takes = iter([9.0, 1.0, 50.0, 2.0])  # the first call is not counted

    def work() -> None:
        nonlocal now
        now += next(takes)

    monkeypatch.setattr(measure.time, "perf_counter", lambda: now)
    assert interleave({"work": work}, rounds=3) == {"work": Timing(2.0, 1.0, 50.0)}


def test_progress_sees_the_rounds() -> None:
    seen: list[range] = []

    def progress(rounds: range) -> range:
        seen.append(rounds)
        return rounds

    interleave({"work": lambda: None}, 4, progress)
    assert seen == [range(4)]
