import time

import pytest

from tensorlang.runtime.timing import Timing, measure
from tensorlang.targets.roofline import Roofline


def test_figures_follow_from_the_median():
    timing = Timing("f", 2e-3, 1.9e-3, 2.3e-3, 1.8e-3, 9, operations=4_000_000, bytes=2_000_000)
    assert timing.gflops == pytest.approx(2.0)
    assert timing.gbytes == pytest.approx(1.0)
    assert timing.spread == pytest.approx(0.2)
    assert str(timing) == "f: 2 ms (1.9-2.3, best 1.8, 9 samples), 2 GFLOP/s, 1 GB/s"


def limited(seconds, operations, bytes):
    limits = Roofline(100.0, 10.0, "L2", measured=True)
    times = [seconds] * 4
    return Timing("f", *times, samples=9, operations=operations, bytes=bytes, limits=limits)


def test_the_shares_of_the_machine_are_told():
    timing = limited(2e-3, 180_000_000, 2_000_000)
    assert timing.share_of_arithmetic == pytest.approx(0.9)
    assert timing.share_of_bandwidth == pytest.approx(0.1)
    assert str(timing) == (
        "f: 2 ms (2-2, best 2, 9 samples), 90 GFLOP/s (90 % of 100), "
        "1 GB/s (10 % of L2's 10); arithmetic is the limit"
    )


@pytest.mark.parametrize(
    ("seconds", "operations", "bytes", "limit"),
    [
        (1e-3, 90_000_000, 5_000_000, "arithmetic"),
        (1e-3, 9_000_000, 5_000_000, "L2"),
        (1e-3, 9_000_000, 500_000, "neither"),
        (1e-7, 16, 128, "the call itself"),
        (0.0, 16, 128, "the call itself"),
    ],
)
def test_what_limits_a_call(seconds, operations, bytes, limit):
    assert limited(seconds, operations, bytes).limit == limit


def test_more_than_was_measured_is_doubted():
    assert str(limited(1e-3, 150_000_000, 0)).endswith(
        "; arithmetic is the limit (the machine "
        "was busy when it was measured: `tensorlang roofline --again`)"
    )


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
