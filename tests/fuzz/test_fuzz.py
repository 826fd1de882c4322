"""A short fuzz, always of the same seeds; ``python -m tests.fuzz`` is the long one."""

from __future__ import annotations

import numpy as np
import pytest

from tests.fuzz.__main__ import Summary, run_batch
from tests.fuzz.case import describe, run_case
from tests.fuzz.compare import disagreement
from tests.fuzz.operators import Held
from tests.fuzz.values import Value, add, multiply, smooth

SEEDS = range(60)
GROUP = 10


@pytest.mark.parametrize("first", SEEDS[::GROUP])
def test_interpreter_machine_code_and_numpy_agree(first: int) -> None:
    accounts = [run_case(seed, sizes_a_case=2) for seed in range(first, first + GROUP)]
    faults = [describe(account) for account in accounts if account.faults]
    assert not faults, "\n".join(faults)
    assert sum(account.runs for account in accounts) > GROUP
    assert sum(account.plain for account in accounts) > GROUP
    assert sum(account.accepted.total() for account in accounts) > GROUP


def test_a_seed_is_the_same_case_again() -> None:
    one, other = run_case(3, 1), run_case(3, 1)
    assert (one.operator, one.steps, one.runs) == (other.operator, other.steps, other.runs)


def test_a_process_that_dies_is_a_fault_and_the_next_seed_is_run(monkeypatch, tmp_path) -> None:
    package = tmp_path / "tests" / "fuzz"
    package.mkdir(parents=True)
    (tmp_path / "tests" / "__init__.py").touch()
    (package / "__init__.py").touch()
    (package / "__main__.py").write_text(DYING)
    monkeypatch.chdir(tmp_path)
    summary = Summary()
    run_batch(0, 3, 1, summary)
    assert summary.cases == 3
    assert [(account["seed"], fault["kind"]) for account in summary.faults
            for fault in account["faults"]] == [(1, "crash")]  # fmt: skip


DYING = """
import json, os, sys
first, count = int(sys.argv[2]), int(sys.argv[3])
for seed in range(first, first + count):
    print(json.dumps({"begin": seed}), flush=True)
    if seed == 1:
        os.abort()
    print(json.dumps({"seed": seed, "runs": 1, "plain": 1, "unproved": 0, "accepted": {},
                      "refused": {}, "errors": {}, "faults": []}), flush=True)
"""


def test_exact_values_must_be_equal_and_others_close() -> None:
    exact = Held("t", ("N",), Value("", "f32", 4.0))
    close = Held("t", ("N",), Value("", "f32", 4.0, error=1e-5, step=0.0))
    right, wrong = np.array([1.0, np.nan], "f4"), np.array([1.00001, np.nan], "f4")
    assert disagreement([exact], right, right) is None
    assert "1 of 2 wrong, first at (0,)" in (disagreement([exact], right, wrong) or "")
    assert disagreement([close], right, wrong) is None
    assert disagreement([close], right, right[::-1]) is not None
    assert disagreement([close], right, right.astype("f8")) == (
        "t: float64(2,) instead of float32(2,)"
    )


def test_errors_grow_with_operations() -> None:
    x = Value("x", "f32", 4.0)
    assert add(x, x).is_exact
    assert multiply(x, x).bound == 16
    sine = smooth("tl.sin(x)", x, 1.0)
    assert not sine.is_exact
    assert multiply(sine, x).error > 4 * sine.error
    assert not multiply(Value("x", "f32", 2.0**12), Value("y", "f32", 2.0**12)).is_exact
