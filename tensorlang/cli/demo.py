"""``tensorlang demo``: one definition, two schedules, checked against SciPy and timed beside it.

Input:  a photograph.
Output: on the console the definition, the loops before and after, a table of times; and a PNG.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

import tensorlang as tl
from tensorlang.cli.console import Display, make_display
from tensorlang.cli.measure import Timing, interleave
from tensorlang.cli.peers import gaussian_weights, unsharp_with_numpy, unsharp_with_scipy
from tensorlang.cli.photograph import Photograph, load_photograph, save_photograph
from tensorlang.cli.unsharp import schedule_by_hand, unsharp

Result = TypeVar("Result")

TOLERANCE = 1e-5
"""Of pixels in [0, 1]; the difference to SciPy, which sums in f64, is a few f32 roundings."""

NUMPY, SCIPY = "NumPy slices", "SciPy gaussian_filter"
DEFAULT, BY_HAND = "tensorlang by rule", "tensorlang by hand"


@dataclass(frozen=True, slots=True)
class Row:
    """A program's time and its greatest difference to SciPy's picture."""

    program: str
    timing: Timing
    difference: float


def run(path: Path | None, output: Path, amount: float, rounds: int) -> int:
    """Run the demo and return the exit status: 1 when a picture differs from SciPy's."""
    display = make_display()
    photograph = load_photograph(path)
    display.heading("The definition")
    display.text(f"An unsharp mask of {photograph.title} ({photograph.size}, f32):")
    display.code(str(unsharp))

    programs = _compile(display)

    display.heading("The times")
    rows, sharpened = _measure(display, photograph, amount, rounds, programs)
    _show_times(display, rows)
    wrong = [row for row in rows if not row.difference <= TOLERANCE]
    for row in wrong:
        display.text(f"WRONG: {row.program} differs from SciPy by {row.difference:.3g}")
    if wrong:
        return 1
    save_photograph(sharpened, output)
    display.text(f"All pictures agree with SciPy's within {TOLERANCE:g}. Written: {output}")
    return 0


def _compile(display: Display) -> dict[str, Callable[..., Any]]:
    """Show both schedules and return the compiled functions by name."""
    display.heading("The loops before any schedule")
    display.code(str(tl.schedule(unsharp)))

    with display.step("Scheduling by rule and by hand"):
        by_rule = tl.schedule(unsharp).default()
        by_hand = schedule_by_hand()
    display.heading("The loops of the default schedule, made by rule")
    display.code(str(by_rule))
    display.heading("The loops of the hand schedule: tile, compute_at, vectorize, parallel")
    display.code(str(by_hand))

    display.heading("The proof and the compilation")
    with display.step("Proving the hand schedule equal to the definition, for all sizes"):
        _, proving = _timed(by_hand.verify)
    with display.step("Compiling"):
        default, compiling_default = _timed(lambda: _compile_now(unsharp))
        hand, compiling_hand = _timed(lambda: _compile_now(by_hand))
    display.table(
        "Milliseconds",
        ("step", "ms"),
        [
            ("proof of the hand schedule", _milliseconds(proving)),
            ("compilation, default schedule", _milliseconds(compiling_default)),
            ("compilation, hand schedule (with its proof)", _milliseconds(compiling_hand)),
        ],
    )
    return {DEFAULT: default, BY_HAND: hand}


def _compile_now(source: Any) -> Callable[..., Any]:
    """Compile, and call once: machine code is made for the first arrays."""
    function = tl.compile(source)
    function(np.zeros((1, 1, 1), np.float32), gaussian_weights(), 0.0)
    return function


def _timed(call: Callable[[], Result]) -> tuple[Result, float]:
    start = time.perf_counter()
    result = call()
    return result, time.perf_counter() - start


def _measure(
    display: Display,
    photograph: Photograph,
    amount: float,
    rounds: int,
    compiled: dict[str, Callable[..., Any]],
) -> tuple[list[Row], NDArray[np.float32]]:
    """Return each program's row, and the picture that the hand schedule made."""
    picture, weights = photograph.pixels, gaussian_weights()
    results = {name: np.empty_like(picture) for name in compiled}

    def call(name: str) -> Callable[[], object]:
        function, out = compiled[name], results[name]
        return lambda: function(picture, weights, amount, out=out)

    programs: dict[str, Callable[[], object]] = {
        NUMPY: lambda: unsharp_with_numpy(picture, weights, amount),
        SCIPY: lambda: unsharp_with_scipy(picture, amount),
        **{name: call(name) for name in compiled},
    }
    timings = interleave(programs, rounds, lambda numbers: display.progress(numbers, "Measuring"))
    reference = unsharp_with_scipy(picture, amount)
    results[NUMPY] = unsharp_with_numpy(picture, weights, amount)
    results[SCIPY] = reference
    rows = [
        Row(name, timing, float(np.max(np.abs(results[name] - reference), initial=0.0)))
        for name, timing in timings.items()
    ]
    return rows, results[BY_HAND]


def _show_times(display: Display, rows: list[Row]) -> None:
    scipy = next(row.timing.median for row in rows if row.program == SCIPY)
    display.table(
        "Medians of interleaved rounds (the fastest in brackets)",
        ("program", "ms", "x SciPy", "max error"),
        [
            (
                row.program,
                f"{_milliseconds(row.timing.median)} [{_milliseconds(row.timing.lowest)}]",
                f"{scipy / row.timing.median:.1f}",
                f"{row.difference:.1e}",
            )
            for row in rows
        ],
    )


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:.2f}" if seconds < 0.1 else f"{seconds * 1e3:.0f}"
