"""The measurement notices errors, goes on where it stopped, and the page holds what it found."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from tests.accuracy import __main__ as command
from tests.accuracy.functions import BOUNDS, TWO_OPERANDS
from tests.accuracy.measure import BLOCK, Tally, all_halves, errors, sampled, singles


def test_errors_are_in_units_of_the_last_place() -> None:
    exact = np.array([1.0, 1.0, 2.0 - 2**-24, 0.0, 1e-45, np.inf, np.nan, 1e39, 1.0, np.nan])
    got = np.array(
        [1.0, 1 + 2**-22, 2.0, 1e-45, 0.0, np.inf, np.nan, np.inf, np.nan, 1.0], np.float32
    )
    want = [0, 2, 0.5, 1, 1e-45 / 2**-149, 0, 0, 0, np.inf, np.inf]
    np.testing.assert_allclose(errors(got, exact), want, rtol=1e-12)
    single = errors(got.astype(np.float64)[:5], exact[:5].astype(np.longdouble))
    np.testing.assert_allclose(single[:2], [0, 2**30])


@pytest.mark.parametrize("kind", ["f16", "bf16"])
@pytest.mark.parametrize("name", ["exp", "log", "tan", "erf", "rsqrt"])
def test_halves_are_rounded_once(name: str, kind: str) -> None:
    if kind == "bf16":
        pytest.importorskip("ml_dtypes")
    tally = all_halves(name, kind, "cpu")
    assert (tally.count, tally.wrong) == (1 << 16, 0)
    assert tally.greatest < 0.502


@pytest.mark.parametrize("name", sorted(BOUNDS))
def test_samples_keep_the_bounds(name: str) -> None:
    tally = sampled(name, "f32", "cpu", 4 * BLOCK, seed=11)
    assert tally.wrong == 0
    assert tally.mean < tally.greatest <= BOUNDS[name], tally.worst


def test_a_stopped_run_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four pieces, each in a run of its own, are all numbers once."""
    total, begin = 8 * BLOCK, 0x3F80_0000

    def piece(name: str, target: str, first: int, count: int, step: int) -> Tally:
        return singles(name, target, begin + first, count, step)

    monkeypatch.setattr(command, "singles", piece)
    monkeypatch.setattr(command, "ALL", total)
    monkeypatch.setattr(command, "PIECES", 4)
    monkeypatch.setattr(command, "DOUBLES", BLOCK)
    file = tmp_path / "exp.json"
    assert [command.measure("exp", "cpu", file) for _ in range(5)] == [False] * 3 + [True] * 2
    whole = singles("exp", "cpu", begin, total)
    found = json.loads(file.read_text())["f32"]
    assert found["total"] == pytest.approx(whole.total)
    assert {**found, "total": 0, "worst": tuple(found["worst"])} == {**asdict(whole), "total": 0}


def test_the_page_holds_every_function_within_its_bound() -> None:
    page = command.PAGE.read_text()
    rows = page.split(command.BEGIN)[1].split(command.END)[0].splitlines()
    table = [[cell.strip() for cell in row.split("|")[1:-1]] for row in rows if row.startswith("|")]
    found = {row[0].strip("`"): row for row in table[2:]}
    assert set(found) == set(BOUNDS)
    for name, row in found.items():
        assert float(row[1]) == BOUNDS[name]
        assert max(float(row[2]), float(row[6])) <= BOUNDS[name]
        assert name in TWO_OPERANDS or row[5] == "all" or row[5].endswith(" of 256")
