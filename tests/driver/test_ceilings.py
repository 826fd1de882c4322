"""Measuring this machine, and what a timing says about it."""

import numpy as np
import pytest

import tensorlang as tl
from tensorlang.driver.measure_ceilings import measure_ceilings, multiply_add, read
from tensorlang.targets.ceilings import LEVELS

N = tl.dim("N")


@tl.compute
def double(x: tl.f32[N]):
    return tl.tensor(x[i] * 2 for i in N)


def test_the_kernels_compute_what_they_say():
    rng = np.random.default_rng(0)
    x, y = rng.random(5, np.float32), rng.random((2, 160), np.float32)
    expected = np.broadcast_to(x.sum() * y[:, None], (2, 3, 160))
    np.testing.assert_allclose(multiply_add(x, y, repeats=3), expected, rtol=1e-5)
    z = rng.random((2, 5, 64), np.float32)
    sums = np.broadcast_to(z.sum(1)[:, None], (2, 3, 64))
    np.testing.assert_allclose(read(z, repeats=3), sums, rtol=1e-5)


def test_measured_figures_are_those_of_a_machine(monkeypatch):
    from tensorlang.driver import measure_ceilings as module

    # short: the test asks whether all is measured, not how well
    monkeypatch.setattr(module, "_CALLS", 1)
    monkeypatch.setattr(module, "_OPERATIONS", 1 << 20)
    monkeypatch.setattr(module, "_BYTES", 1 << 20)
    monkeypatch.setattr(module, "_MOST_BYTES", 1 << 22)
    monkeypatch.setattr(module, "_LARGE_L3", 1 << 22)
    found = measure_ceilings()
    for threads in (1, found.threads):
        figures = [found.arithmetic(bits, threads) for bits in (32, 64)]
        figures += [found.bandwidth(level, threads) for level in LEVELS]
        assert all(0 < figure < 1e6 for figure in figures)
    assert found.arithmetic(32, found.threads) >= found.arithmetic(32, 1)


def test_a_timing_tells_the_shares_of_the_machine():
    timing = tl.compile(double).time(np.ones(1 << 12, np.float32), seconds=0.0)
    assert timing.limits is not None
    assert timing.limits.level == "L1"
    assert timing.share_of_arithmetic == pytest.approx(timing.gflops / timing.limits.gflops)
    assert " of L1's " in str(timing)
    assert " is the limit" in str(timing)


def test_code_for_another_processor_is_not_compared_with_this_machine():
    timing = tl.compile(double, target="cpu -mcpu=x86-64").time(np.ones(8, np.float32), seconds=0.0)
    assert timing.limits is None
    assert timing.limit == "unknown"


def test_graphs_and_generic_operators_have_limits():
    x = np.ones((4, 4), np.float32)
    g = tl.Graph()
    g.output(tl.nn.relu(g.input("x", tl.f32[4, 4])))
    for compiled in (tl.compile(g), tl.compile(tl.nn.matmul)):
        args = (x,) if compiled.__class__.__name__ == "CompiledGraph" else (x, x)
        assert compiled.time(*args, seconds=0.0).limits is not None
