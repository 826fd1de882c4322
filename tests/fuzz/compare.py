"""Whether a result agrees with the reference, as closely as it can.

Exact elements must be equal, bit for bit but for the sign of zero; others may differ by the error
bound of the operator. NaN must stand in the same places.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tests.fuzz.operators import Held

SLACK = 2.0


def disagreement(outputs: Sequence[Held], expected: Any, found: Any) -> str | None:
    """Return the first difference between two results, as text, or None."""
    several = len(outputs) > 1
    for held, right, got in zip(
        outputs,
        expected if several else (expected,),
        found if several else (found,),
        strict=True,
    ):
        text = _difference(held, np.asarray(right), np.asarray(got))
        if text is not None:
            return f"{held.name}: {text}"
    return None


def _difference(held: Held, right: Any, got: Any) -> str | None:
    if right.shape != got.shape or right.dtype != got.dtype:
        return f"{got.dtype}{got.shape} instead of {right.dtype}{right.shape}"
    if right.dtype.kind not in "fV":  # V: bf16
        wrong = right != got
    else:
        right, got = right.astype(np.float64), got.astype(np.float64)
        tolerance = SLACK * held.element.error
        with np.errstate(all="ignore"):
            same = (right == got) | (np.isnan(right) & np.isnan(got))
            wrong = ~(same | (np.abs(right - got) <= tolerance))
    if not np.any(wrong):
        return None
    place = tuple(int(n) for n in np.argwhere(np.atleast_1d(wrong))[0])
    element = (np.atleast_1d(got)[place], np.atleast_1d(right)[place])
    return (
        f"{int(np.sum(wrong))} of {right.size} wrong, first at {place}: {element[0]!r} instead "
        f"of {element[1]!r} (tolerance {SLACK * held.element.error:.2g})"
    )
