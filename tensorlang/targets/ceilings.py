"""The ceilings of this machine as measured, kept on disk under the processor's name.

Input:  ``known_ceilings(target)``, after ``tensorlang roofline`` or a first ``f.time()``
Output: ``Ceilings(threads=2, gflops={"32 x 1": 99.2, ...}, gigabytes={"L2 x 1": 95.0, ...})``

Measuring needs generated code, so who compiles provides it (``provide_ceilings``); reading the
result does not.
"""

from __future__ import annotations

import json
import math
import os
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tensorlang.config import cache_folder, settings
from tensorlang.targets.cpu import CpuTarget

LEVELS = ("L1", "L2", "L3", "memory")


@dataclass(frozen=True, slots=True)
class Ceilings:
    """Measured limits: GFLOP/s by ``"BITS x THREADS"``, GB/s of reading by ``"LEVEL x THREADS"``.

    Both are known for one thread and for ``threads`` of them.
    """

    threads: int
    gflops: Mapping[str, float]
    gigabytes: Mapping[str, float]

    def arithmetic(self, bits: int, threads: int) -> float:
        """Return the GFLOP/s of multiply-adds in numbers of ``bits`` bits; narrow ones count 32."""
        return self._of(self.gflops, str(64 if bits > 32 else 32), threads)

    def bandwidth(self, level: str, threads: int) -> float:
        """Return the GB/s at which ``threads`` threads read what lies in ``level``."""
        return self._of(self.gigabytes, level, threads)

    def _of(self, figures: Mapping[str, float], what: str, threads: int) -> float:
        one = figures[f"{what} x 1"]
        if threads <= 1 or self.threads == 1:
            return one
        # between one thread and all of them, a straight line
        every = figures[f"{what} x {self.threads}"]
        return one + (every - one) * min(1.0, (threads - 1) / (self.threads - 1))


_known: dict[str, Ceilings] = {}
_measure: Callable[[], Ceilings] | None = None


def provide_ceilings(measure: Callable[[], Ceilings]) -> None:
    """Say how the ceilings are measured where they are not known."""
    global _measure
    _measure = measure


def known_ceilings(target: CpuTarget) -> Ceilings | None:
    """Return what was measured for a processor, in this process or an earlier one."""
    if target.text not in _known:
        path = ceilings_path(target)
        found = None if path is None else _read(path)
        if found is None:
            return None
        _known[target.text] = found
    return _known[target.text]


def ceilings(target: CpuTarget, *, again: bool = False) -> Ceilings | None:
    """Return the ceilings of this machine, measured (for a second or two) where not known.

    None for another processor than the one that ``"cpu"`` means here, which cannot be measured.
    """
    found = None if again else known_ceilings(target)
    if found is None and target.text == "cpu" and _measure is not None:
        found = _known[target.text] = _measure()
        path = ceilings_path(target)
        if path is not None:
            _write(path, found)
    return found


def ceilings_path(target: CpuTarget) -> Path | None:
    """Return the file of a processor's ceilings; None where nothing is kept on disk."""
    folder = cache_folder(settings().cache)
    name = f"roofline-{target.cpu}-{target.vector_bits}-{target.cores}.json"
    return None if folder is None else folder / name


def _read(path: Path) -> Ceilings | None:
    """Return what a file says; None if there is none, or none that makes sense."""
    try:
        found: Any = json.loads(path.read_text())
        known = Ceilings(int(found["threads"]), dict(found["gflops"]), dict(found["gigabytes"]))
        for threads in {1, known.threads}:
            figures = [known.arithmetic(bits, threads) for bits in (32, 64)]
            figures += [known.bandwidth(level, threads) for level in LEVELS]
            if not all(math.isfinite(figure) and figure > 0 for figure in figures):
                return None
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return known


def _write(path: Path, found: Ceilings) -> None:
    """Keep the figures; a folder that cannot be written keeps nothing."""
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=path.stem, suffix=".part")
        with os.fdopen(descriptor, "w") as file:
            json.dump(asdict(found), file, indent=1)
        Path(name).replace(path)
