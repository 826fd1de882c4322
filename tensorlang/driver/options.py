"""The options of ``tl.compile``, checked.

Input:  ``target="cpu", opt_level=5``      Output: ``ValueError: opt_level must be 0, 1, 2 or 3``
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

BoundsChecks = bool | Literal["auto"]
Precision = Literal["default", "strict"]

DEFAULT_RTOL = 1e-4
"""What other algorithms may err by, unless the caller says so."""


@dataclass(frozen=True, slots=True)
class CompileOptions:
    """How to compile; the defaults are those of an operator that is simply called.

    Attributes
    ----------
    target
        ``"cpu"``, ``"cpu -mcpu=NAME"`` for another processor of the same kind, or
        ``"cuda:sm_90"``
    check_bounds
        whether indices taken from data are checked at run time; "auto" does so wherever the
        index is not proved to lie inside
    verify
        whether a schedule written by hand is proved to compute its definition
    fast_math
        whether results may depend on the order of sums, and NaN and infinity may be ignored
    opt_level
        how hard LLVM tries, 0 to 3
    rtol
        the error, relative to the spread of a result, up to which another algorithm may compute
        it; 0 keeps the sums that a definition writes

    """

    target: str = "cpu"
    check_bounds: BoundsChecks = "auto"
    verify: bool = True
    fast_math: bool = False
    opt_level: int = 3
    rtol: float = DEFAULT_RTOL


def make_options(
    target: Any,
    check_bounds: Any,
    verify: Any,
    fast_math: Any,
    opt_level: Any,
    rtol: Any = DEFAULT_RTOL,
    precision: Any = "default",
) -> CompileOptions:
    """Return the options, or raise TypeError or ValueError; the backend reads the target."""
    if not isinstance(target, str):
        raise TypeError(f'target must be a string such as "cpu", found {target!r}')
    if not isinstance(check_bounds, bool) and check_bounds != "auto":
        raise ValueError(f'check_bounds must be True, False or "auto", found {check_bounds!r}')
    for name, value in (("verify", verify), ("fast_math", fast_math)):
        if not isinstance(value, bool):
            raise TypeError(f"{name} must be True or False, found {value!r}")
    if isinstance(opt_level, bool) or not isinstance(opt_level, int) or not 0 <= opt_level <= 3:
        raise ValueError(f"opt_level must be 0, 1, 2 or 3, found {opt_level!r}")
    if isinstance(rtol, bool) or not isinstance(rtol, int | float) or not 0 <= rtol < 1:
        raise ValueError(f"rtol must be a number from 0 up to 1, found {rtol!r}")
    if precision not in ("default", "strict"):
        raise ValueError(f'precision must be "default" or "strict", found {precision!r}')
    tolerance = 0.0 if precision == "strict" else float(rtol)
    return CompileOptions(target, check_bounds, verify, fast_math, opt_level, tolerance)
