"""Measure all figures and write them into docs/benchmarks.md.

``python -m benchmarks.run [FIGURE ...]``: all figures, or only some of them, which are printed and
not written. Each runs in fresh processes with a fixed number of threads.

Output: the text between the two marks of the page; what people wrote around them stays.
"""

import argparse
import datetime
import json
import os
import platform
import statistics
import subprocess
import sys
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from benchmarks.figures import FIGURES, Milliseconds

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "benchmarks.md"
BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"
COLD_RUNS = 5


def measure(figure: str, threads: int = 1, runs: int = 1) -> Milliseconds:
    """Return a figure's rows: medians over ``runs`` processes that may use ``threads`` threads."""
    environment = {
        **{k: v for k, v in os.environ.items() if not k.startswith(("OPENBLAS_", "TENSORLANG_"))},
        "OMP_NUM_THREADS": str(threads),
        "OPENBLAS_NUM_THREADS": str(threads),
        "TENSORLANG_CACHE": "off",  # what was compiled before would be no compilation
    }
    results: list[Milliseconds] = []
    for _ in range(runs):
        print(f"measuring {figure}, {threads} thread(s)", file=sys.stderr)
        command = [sys.executable, "-m", "benchmarks.figures", figure]
        output = subprocess.check_output(command, cwd=ROOT, env=environment, text=True)
        results.append(json.loads(output.splitlines()[-1]))
    return {row: statistics.median(result[row] for result in results) for row in results[0]}


@dataclass(frozen=True)
class Target:
    """A row of the table of targets: a time in ms, and the most that it may be."""

    what: str
    figure: float
    limit: float
    unit: str = "ms"

    def __str__(self) -> str:
        verdict = "yes" if self.figure <= self.limit else "**no**"
        measured, limit = f"{self.figure:.3g} {self.unit}", f"{self.limit:g} {self.unit}"
        return f"| {self.what} | {measured} | {limit} | {verdict} |"


def write_report() -> str:
    """Measure everything and return the generated part of the page."""
    imports = measure("import_time")
    proofs = measure("proofs", runs=3)
    compilations = {
        **measure("compile_elementwise", runs=COLD_RUNS),
        **measure("compile_tiled", runs=COLD_RUNS),
        **measure("compile_by_hand", runs=COLD_RUNS),
    }
    matmuls = {threads: measure("matmul", threads) for threads in (1, 2)}
    demos = {threads: measure("demo", threads) for threads in (1, 2)}

    proof_limits, compile_limits = (80.0, 200.0), (150.0, 600.0)
    targets = [Target("import tensorlang, on top of NumPy", imports["import tensorlang"], 150)]
    for (name, time), limit in zip(proofs.items(), proof_limits, strict=True):
        targets.append(Target(f"proof: {name}", time, limit))
    for (name, time), limit in zip(compilations.items(), compile_limits, strict=False):
        targets.append(Target(f"cold compilation: {name}", time, limit))
    for threads, rows in matmuls.items():
        slower = rows["default schedule"] / rows["NumPy"]
        name = f"matmul 1024, default schedule, {threads} thread(s), time beside NumPy's"
        targets.append(Target(name, slower, 1.5, "x"))
    slower = matmuls[1]["hand schedule"] / matmuls[1]["NumPy"]
    name = "matmul 1024, hand schedule, 1 thread, time beside NumPy's"
    targets.append(Target(name, slower, round(1 / 0.9, 3), "x"))
    for threads, rows in demos.items():
        for schedule in ("default schedule", "hand schedule"):
            name = f"demo, {schedule}, {threads} thread(s), time beside SciPy's"
            targets.append(Target(name, rows[schedule] / rows["SciPy"], 1, "x"))

    lines = [
        *_conditions(),
        "",
        "## Targets",
        "",
        "| figure | measured | at most | reached |",
        "|---|---:|---:|---|",
        *map(str, targets),
        "",
        "## Compilation",
        "",
        "Cold: the first compilation of a process and its first call, imports excluded; a hand "
        "schedule's proof is part of it.",
        "",
        "| program | ms |",
        "|---|---:|",
        *(f"| {name} | {time:.0f} |" for name, time in compilations.items()),
        "",
        "## Matrix product",
        "",
        "f32, 1024 x 1024 x 1024; `examples/gemm_by_hand.py` is the hand schedule.",
        "",
        *_by_threads(matmuls, work=2 * 1024**3),
        "",
        "## The demo's picture",
        "",
        "The unsharp mask of `tensorlang demo`: 1411 x 1411, three channels, f32.",
        "",
        *_by_threads(demos),
    ]
    return "\n".join(lines)


def _conditions() -> list[str]:
    from tensorlang.targets.cpu import host_target

    target = host_target()
    packages = ("tensorlang", "numpy", "scipy", "llvmlite", "islpy")
    versions = ", ".join(f"{name} {_version(name)}" for name in packages)
    return [
        f"Measured on {datetime.date.today().isoformat()}: {target.cpu}, {target.cores} cores, "
        f"{target.vector_bits}-bit vectors; Python {platform.python_version()}, {versions}.",
    ]


def _version(package: str) -> str:
    try:
        return version(package)
    except ModuleNotFoundError:
        return "(source tree)"


def _by_threads(tables: dict[int, Milliseconds], work: float | None = None) -> list[str]:
    unit = "ms (GFLOP/s)" if work else "ms"
    columns = " | ".join(f"{threads} thread(s), {unit}" for threads in tables)
    lines = [f"| program | {columns} |", "|---|" + "---:|" * len(tables)]
    for name in next(iter(tables.values())):
        cells = [
            f"{rows[name]:.2f}" + (f" ({work / rows[name] / 1e6:.0f})" if work else "")
            for rows in tables.values()
        ]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return lines


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("figure", nargs="*", help=f"only these; not written: {', '.join(FIGURES)}")
    parser.add_argument("--threads", type=int, default=1, help="for the figures that are named")
    arguments = parser.parse_args()
    unknown = set(arguments.figure) - set(FIGURES)
    if unknown:
        parser.error(f"there is no figure {', '.join(sorted(unknown))}")
    for figure in arguments.figure:
        for row, time in measure(figure, arguments.threads).items():
            print(f"{row:50} {time:9.2f} ms")
    if not arguments.figure:
        report = write_report()
        before, rest = PAGE.read_text().split(BEGIN)
        _, after = rest.split(END)
        PAGE.write_text(f"{before}{BEGIN}\n\n{report}\n\n{END}{after}")
        print(report)


if __name__ == "__main__":
    main()
