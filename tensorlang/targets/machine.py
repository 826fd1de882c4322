"""Cores and caches of the machine that this process runs on, as the operating system tells them."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache
from pathlib import Path

_FALLBACK_CACHES = (32 * 1024, 512 * 1024, 8 * 1024 * 1024)


def available_cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@cache
def cache_sizes() -> tuple[int, int, int]:
    """Return the bytes of the data caches that one core sees; usual sizes where unknown."""
    found = _linux_cache_sizes() if sys.platform == "linux" else {}
    if sys.platform == "darwin":
        found = _darwin_cache_sizes()
    l1, l2, l3 = (
        found.get(level + 1) or fallback for level, fallback in enumerate(_FALLBACK_CACHES)
    )
    return l1, l2, l3


def _linux_cache_sizes() -> dict[int, int]:
    found: dict[int, int] = {}
    for index in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*"):
        try:
            kind = (index / "type").read_text().strip()
            level = int((index / "level").read_text())
            size = (index / "size").read_text().strip()
            if kind != "Instruction":
                unit = {"K": 1024, "M": 1024**2}.get(size[-1:], 1)
                found[level] = int(size.rstrip("KM")) * unit
        except (OSError, ValueError):
            continue
    return found


def _darwin_cache_sizes() -> dict[int, int]:
    found: dict[int, int] = {}
    for level, name in ((1, "hw.l1dcachesize"), (2, "hw.l2cachesize"), (3, "hw.l3cachesize")):
        try:
            answer = subprocess.run(
                ["/usr/sbin/sysctl", "-n", name], capture_output=True, text=True, check=True
            )
            found[level] = int(answer.stdout)
        except (OSError, ValueError, subprocess.CalledProcessError):
            continue
    return found
