"""The benchmark page: its marks, how figures become tables, and peers that fail."""

import sys
import time
from xml.etree import ElementTree

import numpy as np
import pytest

from benchmarks import peer_process, peer_report, peers
from benchmarks.bar_chart import bar_chart
from benchmarks.interleaving import interleave
from benchmarks.peer_process import distance
from benchmarks.peer_report import Conditions, report_lines, rows_of
from benchmarks.run import BEGIN, END, PAGE, Target, _by_threads
from benchmarks.workload import Outcome, Workload
from benchmarks.workloads import FAMILIES, all_workloads, choose, family


def test_the_page_has_room_for_the_figures() -> None:
    page = PAGE.read_text()
    assert page.count(BEGIN) == page.count(END) == 1
    assert page.index(BEGIN) < page.index(END)


def test_targets_say_whether_they_are_reached() -> None:
    assert str(Target("proof", 79.96, 80)) == "| proof | 80 ms | 80 ms | yes |"
    assert str(Target("time", 1.52, 1.5, "x")) == "| time | 1.52 x | 1.5 x | **no** |"


def test_tables_have_a_column_for_each_number_of_threads() -> None:
    tables = {1: {"NumPy": 20.0, "ours": 10.0}, 2: {"NumPy": 10.0, "ours": 5.0}}
    assert _by_threads(tables, work=2e9) == [
        "| program | 1 thread(s), ms (GFLOP/s) | 2 thread(s), ms (GFLOP/s) |",
        "|---|---:|---:|",
        "| NumPy | 20.00 (100) | 10.00 (200) |",
        "| ours | 10.00 (200) | 5.00 (400) |",
    ]


# --- beside the peers -------------------------------------------------------------------------


def test_the_page_has_room_for_the_peers() -> None:
    page = PAGE.read_text()
    assert page.count(peer_report.BEGIN) == page.count(peer_report.END) == 1


def test_families_have_titles_and_workloads_names_of_their_own() -> None:
    works = [work.name for name in FAMILIES for work in family(name).WORKLOADS]
    assert len(works) == len(set(works)) == len(all_workloads())
    assert choose([]) == works
    assert choose(["calls", "256x256x256", "calls"]) == ["add 16 floats", "256x256x256"]
    with pytest.raises(ValueError, match="there is no workload 'matmul'; families: products, "):
        choose(["matmul"])
    assert all((family(name).__doc__ or "").partition("\n")[0].endswith(".") for name in FAMILIES)


def test_the_best_peer_is_found_for_each_kind_of_program() -> None:
    outcome = Outcome(
        "work",
        1,
        {
            "numpy": 4.0,
            "torch": 3.0,
            "torch linear (B constant)": 2.0,
            "tensorlang, any sizes": 2.0,
            "tensorlang graph (B constant)": 4.0,
        },
    )
    variable, constant = rows_of(outcome)
    assert (variable.peer, variable.ratios) == ("torch", {"tensorlang, any sizes": 1.5})
    assert (constant.work, constant.peer_time) == ("work (B constant)", 2.0)
    assert constant.ratios == {"tensorlang graph": 0.5}


def test_without_a_peer_there_is_no_ratio() -> None:
    assert not rows_of(Outcome("work", 1, {"tensorlang": 1.0}, {"torch": "not installed"}))


def test_the_report_has_a_row_a_workload_and_a_line_a_failure() -> None:
    outcomes = [
        Outcome("add 16 floats", 1, {"numpy": 4e-4, "tensorlang": 1e-4}, {"jax": "not installed"}),
        Outcome("add 16 floats", 2, {"numpy": 5e-4, "tensorlang": 1e-4}, {"jax": "not installed"}),
    ]
    lines = report_lines(outcomes, Conditions("command", 60, 0.2))
    assert lines[0].startswith("Measured on ")
    assert "`command` in 1 minutes: " in lines[0]
    assert "| add 16 floats | numpy 0.0004 | 0.0001 (**4.00**) |" in lines
    assert "| add 16 floats | numpy 0.0005 | 0.0001 (**5.00**) |" in lines
    assert lines.count("- jax: `not installed` (add 16 floats)") == 1


def test_charts_are_well_formed() -> None:
    chart = ElementTree.fromstring(bar_chart({"a < b": {"1": 0.5, "2": 99.0}}, "title"))
    texts = [element.text for element in chart.iter("{http://www.w3.org/2000/svg}text")]
    assert {"a < b", "0.50", "99.00"} <= set(texts)


def test_interleaved_programs_are_told_apart() -> None:
    times = interleave({"fast": lambda: None, "slow": lambda: time.sleep(0.002)}, seconds=0.0)
    assert times["fast"] < 1 < 2 <= times["slow"]


def test_distances_are_relative_to_the_spread() -> None:
    assert distance(np.array([1.0, 2.5]), np.array([1.0, 2.0])) == pytest.approx(1.0)
    assert distance(np.zeros(3), np.zeros(2)) == float("inf")
    assert distance(np.float32(2), np.float32(2)) == 0


def test_programs_that_fail_or_are_wrong_are_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise RuntimeError("it does not work\nat all")

    def missing() -> None:
        raise ModuleNotFoundError("no module", name="halide")

    programs = {
        "numpy": lambda: lambda: np.ones(2),
        "broken": broken,
        "missing": missing,
        "wrong": lambda: lambda: np.array([1.0, 3.0]),
        "late": lambda: lambda: broken(),
        "skipped": lambda: lambda: np.ones(2),
    }
    work = Workload("work", lambda threads: programs)
    told: list[dict] = []
    outcome = peer_process.run(work, 1, 0.0, {"skipped"}, lambda **event: told.append(event))
    assert list(outcome.medians) == ["numpy"]
    assert outcome.failures == {
        "broken": "RuntimeError: it does not work",
        "missing": "not installed: halide",
        "wrong": "its result is off by 2 of the spread",
        "late": "RuntimeError: it does not work",
    }
    assert told[-1] == {"work": "work", "program": "timing"}


def test_a_program_that_ends_its_process_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The process dies while it makes a program; a second one goes on without it."""
    code = """
import json, os, sys
without = sys.argv[sys.argv.index("--without") + 1 :] if "--without" in sys.argv else []
for name in ("first", "second"):
    if name in sys.argv:
        print(json.dumps({"work": name, "program": "deadly"}), flush=True)
        if name == "second" and "deadly" not in without:
            print("out of luck", file=sys.stderr, flush=True)
            os._exit(3)
        outcome = {"work": name, "threads": 1, "medians": {"numpy": 1.0}, "failures": {}}
        print(json.dumps({"outcome": outcome}), flush=True)
"""
    started: list[list[str]] = []

    class Process(peers.subprocess.Popen):
        def __init__(self, command: list[str], **options) -> None:
            started.append(command)
            super().__init__([sys.executable, "-c", code, *command[3:]], **options)

    monkeypatch.setattr(peers.subprocess, "Popen", Process)
    outcomes = list(peers.run(["first", "second"], 1, 0.0, time.time() + 60))
    assert [outcome.work for outcome in outcomes] == ["first", "second"]
    assert outcomes[1].failures == {"deadly": "ended the process (exit status 3): out of luck"}
    assert len(started) == 2
    assert "first" not in started[1]


def test_what_there_is_no_time_for_is_said() -> None:
    (outcome,) = peers.run(["256x256x256"], 1, 1.0, until=0.0)
    assert outcome.failures == {"all": "not measured, out of time"}


def test_every_library_gets_the_same_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Haswell")
    variables = peers.environment(2)
    assert "OPENBLAS_CORETYPE" not in variables
    assert variables["OMP_NUM_THREADS"] == variables["TENSORLANG_NUM_THREADS"] == "2"
