"""The long measurement, in pieces: ``python -m tests.accuracy exp log --seconds 600``.

Without names it measures every function. All 2^32 inputs of f32, all of f16 and bf16, samples of
f64 and of two operands. What is found is kept in a file after each piece (``--state``), so that a
run that is stopped goes on where it was; ``--table`` writes the table into ``docs/functions.md``.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

os.environ.setdefault("TENSORLANG_NUM_THREADS", "1")  # several runs side by side share the cores

from tests.accuracy.functions import BOUNDS, TWO_OPERANDS
from tests.accuracy.measure import Tally, all_halves, sampled, singles

ALL = 1 << 32
PIECES = 256  # each takes one number of every 256, so that a few are a fair sample of all
DOUBLES = 1 << 22
PAIRS = 1 << 24
PAGE = Path(__file__).parents[2] / "docs" / "functions.md"
BEGIN, END = "<!-- accuracy: begin -->", "<!-- accuracy: end -->"


def main() -> None:
    """Measure until done or out of time, or write the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.accuracy", description=__doc__)
    parser.add_argument("names", nargs="*", default=sorted(BOUNDS))
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after so long")
    parser.add_argument("--target", default="cpu")
    parser.add_argument("--state", type=Path, default=Path("accuracy"), help="a folder")
    parser.add_argument("--table", action="store_true", help="write docs/functions.md")
    options = parser.parse_args()
    options.state.mkdir(exist_ok=True)
    if options.table:
        write_table(options.state)
        return
    end = time.monotonic() + options.seconds
    waiting = list(options.names)
    while waiting and time.monotonic() < end:
        name = waiting.pop(0)  # in turns, a piece each
        if not measure(name, options.target, options.state / f"{name}.json"):
            waiting.append(name)


def measure(name: str, target: str, file: Path) -> bool:
    """Go on with one function from what ``file`` says; return whether all of it is known."""
    state: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}

    def keep(key: str, tally: Tally) -> None:
        state[key] = asdict(tally)
        written = file.with_suffix(".new")
        written.write_text(json.dumps(state))
        written.replace(file)

    for kind, count in (("f64", PAIRS if name in TWO_OPERANDS else DOUBLES), ("f32", PAIRS)):
        if kind not in state and (kind == "f64" or name in TWO_OPERANDS):
            keep(kind, sampled(name, kind, target, count, seed=1))
    if name not in TWO_OPERANDS:
        for kind in ("f16", "bf16"):
            if kind not in state:
                keep(kind, all_halves(name, kind, target))
        tally, size = Tally(**state.get("f32", {})), ALL // PIECES
        if tally.count < ALL:
            merge(tally, singles(name, target, tally.count // size, size, PIECES))
            keep("f32", tally)
        if tally.count < ALL:
            return False
    print(name, *[f"{key} {value['greatest']:.3f}" for key, value in sorted(state.items())])
    return True


def merge(tally: Tally, piece: Tally) -> None:
    """Add a later piece to what is known."""
    if piece.greatest > tally.greatest or not tally.worst:
        tally.greatest, tally.worst = piece.greatest, piece.worst
    tally.total += piece.total
    tally.count += piece.count
    tally.wrong += piece.wrong


def write_table(folder: Path) -> None:
    """Write what was measured into the page."""
    lines = [
        "| function | bound | f32: greatest | mean | at | inputs | f64: greatest | mean | samples "
        "| f16 | bf16 |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name in sorted(BOUNDS):
        file = folder / f"{name}.json"
        if not file.exists():
            continue
        state = json.loads(file.read_text())
        single, double = Tally(**state["f32"]), Tally(**state["f64"])
        halves = [
            f"{state[kind]['greatest']:.3f}" if kind in state else "" for kind in ("f16", "bf16")
        ]
        cells = [
            f"`{name}`", f"{BOUNDS[name]}", f"{single.greatest:.3f}", f"{single.mean:.3f}",
            ", ".join(f"`{value}`" for value in single.worst), _count(single.count),
            f"{double.greatest:.3f}", f"{double.mean:.3f}", _count(double.count), *halves,
        ]  # fmt: skip
        lines.append("| " + " | ".join(cells) + " |")
    text = PAGE.read_text()
    before, after = text.index(BEGIN) + len(BEGIN), text.index(END)
    PAGE.write_text(f"{text[:before]}\n\n" + "\n".join(lines) + f"\n\n{text[after:]}")


def _count(number: int) -> str:
    if number == ALL:
        return "all"
    if number > ALL // PIECES and number % (ALL // PIECES) == 0:
        return f"{number // (ALL // PIECES)} of {PIECES}"
    return f"2^{number.bit_length() - 1}" if number & (number - 1) == 0 else f"{number:,}"


if __name__ == "__main__":
    main()
