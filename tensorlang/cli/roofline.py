"""``tensorlang roofline``: the ceilings of this machine, measured once and kept.

Input:  the machine.
Output: a table of GFLOP/s and GB/s on one thread and on all; the operations that a byte must be
worth so that arithmetic is the limit; the file where the figures lie.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module

from tensorlang.cli.console import make_display
from tensorlang.targets.ceilings import LEVELS, Ceilings, ceilings, ceilings_path
from tensorlang.targets.cpu import parse_cpu_target


def run(*, again: bool = False) -> int:
    """Print the ceilings and return the exit status."""
    import_module("tensorlang.driver")  # which provides the measurement
    display, target = make_display(), parse_cpu_target("cpu")
    found = ceilings(target, again=again)
    if found is None:
        display.text(f"{target} is not this machine's processor, and cannot be measured here.")
        return 1
    counts = tuple(dict.fromkeys((1, found.threads)))
    columns = ("at most", *(f"{count} thread{'s'[: count > 1]}" for count in counts))
    title = f"{target.cpu}, {target.vector_bits}-bit vectors"
    display.table(title, columns, list(rows(found, counts)))
    path = ceilings_path(target)
    display.text(f"kept in {path}" if path else "not kept: TENSORLANG_CACHE=off")
    return 0


def rows(found: Ceilings, counts: tuple[int, ...]) -> Iterator[tuple[str, ...]]:
    """Yield the rows of the table, a column for each number of threads."""
    for bits in (32, 64):
        peaks = (f"{found.arithmetic(bits, count):.1f} GFLOP/s" for count in counts)
        yield (f"multiply-adds of f{bits}", *peaks)
    for level in LEVELS:
        yield (
            f"reading from {level}",
            *(f"{found.bandwidth(level, count):.1f} GB/s" for count in counts),
        )
    balances = [found.arithmetic(32, n) / found.bandwidth("memory", n) for n in counts]
    yield ("f32 operations worth a byte of memory", *(f"{balance:.1f}" for balance in balances))
