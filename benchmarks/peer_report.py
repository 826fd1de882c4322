"""What was measured beside the peers, as lines, as tables and as plots of docs/benchmarks.md.

Input:  ``Outcome("256x256x256", 1, {"numpy": 0.30, "torch": 0.28, "tensorlang": 0.27}, {})``
Output: ``| 256x256x256 | torch 0.28 | 0.27 (**1.04**) |``, and a bar of length 1.04

The ratio is the time of the best peer over ours: above 1 ours is faster.
"""

from __future__ import annotations

import datetime
import math
import platform
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from benchmarks.bar_chart import bar_chart
from benchmarks.libraries import PACKAGES
from benchmarks.workload import OURS, Outcome, Workload
from benchmarks.workloads import FAMILIES, all_workloads, family

PAGE = Path(__file__).parents[1] / "docs" / "benchmarks.md"
PLOTS = PAGE.parent / "plots"
BEGIN, END = "<!-- peers: begin -->", "<!-- peers: end -->"


@dataclass(frozen=True, slots=True)
class Row:
    """One workload: the best peer, and each program of ours; programs of one suffix are a row."""

    work: str
    peer: str
    peer_time: float
    ours: dict[str, float]

    @property
    def ratios(self) -> dict[str, float]:
        """How many times as fast as the best peer each of ours is."""
        return {name: self.peer_time / time for name, time in self.ours.items()}


def rows_of(outcome: Outcome) -> list[Row]:
    """Return a row for what every program may do, and one for each suffix such as (B constant)."""
    suffixes = dict.fromkeys(_suffix(name) for name in outcome.medians)
    rows: list[Row] = []
    for suffix in suffixes:
        of_suffix = {n: t for n, t in outcome.medians.items() if _suffix(n) in (suffix, "")}
        peers = {n: t for n, t in of_suffix.items() if not n.startswith(OURS)}
        ours = {
            n.removesuffix(suffix): t
            for n, t in of_suffix.items()
            if n.startswith(OURS) and _suffix(n) == suffix
        }
        if peers and ours:
            best = min(peers, key=lambda name: peers[name])
            rows.append(Row(outcome.work + suffix, best, peers[best], ours))
    return rows


def _suffix(name: str) -> str:
    start = name.find(" (")
    return "" if start < 0 else name[start:]


def print_outcome(outcome: Outcome) -> None:
    """Print a workload's times, its ratios and its failures."""
    print(f"{outcome.work}, {outcome.threads} thread(s)", flush=True)
    for name, time in sorted(outcome.medians.items(), key=lambda item: item[1]):
        print(f"    {name:36} {_milliseconds(time):>10} ms")
    for row in rows_of(outcome):
        ratios = ", ".join(f"{name} {ratio:.2f}" for name, ratio in row.ratios.items())
        print(f"    ratio to {row.peer}: {ratios}", flush=True)
    for name, reason in outcome.failures.items():
        print(f"    {name}: {reason}", flush=True)


@dataclass(frozen=True, slots=True)
class Conditions:
    """How the figures came about: the command, its seconds, the processes that ran before it."""

    command: str
    seconds: float
    load: float


def write_page(outcomes: list[Outcome], conditions: Conditions) -> None:
    """Write the tables between the marks of the page, and the plots beside it."""
    before, rest = PAGE.read_text().split(BEGIN)
    _, after = rest.split(END)
    report = "\n".join(report_lines(outcomes, conditions))
    PAGE.write_text(f"{before}{BEGIN}\n\n{report}\n\n{END}{after}")
    PLOTS.mkdir(exist_ok=True)
    for name in FAMILIES:
        if text := _plot(name, outcomes):
            (PLOTS / f"peers-{name}.svg").write_text(text)


def report_lines(outcomes: list[Outcome], conditions: Conditions) -> list[str]:
    """Return the generated part of the page."""
    minutes = conditions.seconds / 60
    lines = [
        f"Measured on {datetime.date.today().isoformat()} by `{conditions.command}` in "
        f"{minutes:.0f} minutes: {_machine()}, {conditions.load:.1f} other processes running when "
        f"it began; Python {platform.python_version()}, {_versions()}.",
    ]
    for name in FAMILIES:
        works = [work for work in family(name).WORKLOADS]
        names = {work.name for work in works}
        here = [outcome for outcome in outcomes if outcome.work in names]
        if not here:
            continue
        title, *rest = (family(name).__doc__ or name).strip().split("\n\n", 1)
        lines += ["", f"### {' '.join(title.split()).rstrip('.')}", ""]
        lines += [" ".join(paragraph.split()) for paragraph in rest]
        if any(rows_of(outcome) for outcome in here):
            lines += ["", f"![ratio to the best peer](plots/peers-{name}.svg)"]
        for threads in sorted({outcome.threads for outcome in here}):
            lines += ["", *_table([o for o in here if o.threads == threads], threads)]
        lines += ["", *_all_times(here)]
        lines += _failures(here)
    return lines


def _table(outcomes: list[Outcome], threads: int) -> list[str]:
    known = all_workloads()
    rows = [(row, known[outcome.work]) for outcome in outcomes for row in rows_of(outcome)]
    columns = list(dict.fromkeys(name for row, _ in rows for name in row.ours))
    if not rows:
        return [f"{threads} thread(s): nothing was measured."]
    lines = [
        f"| {threads} thread(s), ms (ratio) | best peer | " + " | ".join(columns) + " |",
        "|---|---:|" + "---:|" * len(columns),
    ]
    for row, work in rows:
        cells = [
            f"{_milliseconds(row.ours[name])} (**{row.ratios[name]:.2f}**)"
            if name in row.ours
            else ""
            for name in columns
        ]
        peer = f"{row.peer.partition(' (')[0]} {_milliseconds(row.peer_time)}"
        lines.append(f"| {row.work} | {peer}{_rate(work, row.peer_time)} | {' | '.join(cells)} |")
    if len(rows) == 1:
        return lines
    means: list[str] = []
    for name in columns:
        ratios = [row.ratios[name] for row, _ in rows if name in row.ours]
        means.append(f"**{math.exp(sum(map(math.log, ratios)) / len(ratios)):.2f}**")
    return [*lines, f"| geometric mean | | {' | '.join(means)} |"]


def _all_times(outcomes: list[Outcome]) -> Iterable[str]:
    """Return a table of every program's times, for those who want to see the other peers."""
    programs = list(dict.fromkeys(name for outcome in outcomes for name in outcome.medians))
    if not programs:
        return
    yield "<details><summary>all programs, ms</summary>"
    yield ""
    yield "| | threads | " + " | ".join(programs) + " |"
    yield "|---|---:|" + "---:|" * len(programs)
    for outcome in outcomes:
        times = [
            _milliseconds(outcome.medians[name]) if name in outcome.medians else ""
            for name in programs
        ]
        yield f"| {outcome.work} | {outcome.threads} | {' | '.join(times)} |"
    yield ""
    yield "</details>"


def _failures(outcomes: list[Outcome]) -> list[str]:
    """Return a line for each failure, with the workloads that it befell."""
    found: dict[tuple[str, str], list[str]] = {}
    for outcome in outcomes:
        for name, reason in outcome.failures.items():
            found.setdefault((name, reason), []).append(outcome.work)
    return [
        line
        for (name, reason), works in found.items()
        for line in ("", f"- {name}: `{reason}` ({', '.join(dict.fromkeys(works))})")
    ]


def _plot(name: str, outcomes: list[Outcome]) -> str | None:
    """Return a chart of the best of ours for each workload and number of threads."""
    names = {work.name for work in family(name).WORKLOADS}
    bars: dict[str, dict[str, float]] = {}
    for outcome in outcomes:
        if outcome.work in names:
            for row in rows_of(outcome):
                series = f"{outcome.threads} thread(s)"
                bars.setdefault(row.work, {})[series] = max(row.ratios.values())
    return bar_chart(bars, "speed beside the best peer") if bars else None


def _milliseconds(time: float) -> str:
    return f"{time:.3f}" if time >= 0.1 else f"{time:.3g}"


def _rate(work: Workload, time: float) -> str:
    if work.operations:
        return f" ({work.operations / time / 1e6:.0f} GFLOP/s)"
    return f" ({work.bytes / time / 1e6:.0f} GB/s)" if work.bytes else ""


def _machine() -> str:
    from tensorlang.targets.cpu import host_target

    target = host_target()
    return f"{target.cpu}, {target.cores} cores, {target.vector_bits}-bit vectors"


def _versions() -> str:
    found: list[str] = []
    for package in PACKAGES:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            found.append(f"{package} not installed")
    return ", ".join(found)
