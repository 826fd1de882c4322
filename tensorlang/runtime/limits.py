"""Which ceilings of the machine stand over a call that is timed.

Input:  the target's name, the dtypes, bytes and threads of a call
Output: ``Roofline(gflops=99.2, gigabytes=95.0, level="L2")``, or None where nothing is known
"""

from __future__ import annotations

from collections.abc import Iterable

from tensorlang.dtypes import DType
from tensorlang.targets.ceilings import ceilings
from tensorlang.targets.cpu import parse_cpu_target
from tensorlang.targets.roofline import Roofline, roofline


def limits_of(target: str, dtypes: Iterable[DType], bytes: int, threads: int) -> Roofline | None:
    """Return the measured limits of a call on this machine; the first call measures them."""
    if target != "cpu":
        return None
    host = parse_cpu_target(target)
    if ceilings(host) is None:
        return None
    bits = max((dtype.bits for dtype in dtypes), default=32)
    return roofline(host, bits, threads, bytes)
