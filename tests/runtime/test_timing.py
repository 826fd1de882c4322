import time

import pytest

from tensorlang.runtime.timing import Timing, measure


def test_figures_follow_from_the_median():
    timing = Timing("f", 2e-3, 1.9e-3, 2.3e-3, 1.8e-3, 9, operations=4_000_000, bytes=2_000_000)
    assert timing.gflops == pytest.approx(2.0)
    assert timing.gbytes == pytest.approx(1.0)
    assert timing.spread == pytest.approx(0.2)
    assert str(timing) == "f: 2 ms (1.9-2.3, best 1.8, 9 samples), 2 GFLOP/s, 1 GB/s"


@pytest.mark.parametrize(
    ("seconds", "text"), [(1.5, "1.5 s"), (2e-5, "20 us"), (5e-8, "50 ns"), (0.0, "0 ns")]
)
def test_units(seconds, text):
    assert str(Timing("f", *[seconds] * 4, samples=1)).startswith(f"f: {text} (")


def test_short_calls_are_batched_and_long_ones_are_not():
    calls = []
    timing = measure(lambda: calls.append(1), seconds=0.0)
    assert timing.samples == 5
    assert len(calls) > 20
    calls.clear()
    timing = measure(lambda: (calls.append(1), time.sleep(0.001)), seconds=0.0, at_least=3)
    assert len(calls) == 2 + 3
    assert timing.median >= 0.001
