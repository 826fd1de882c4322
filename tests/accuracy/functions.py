"""The elementary functions: their bounds, and references in a wider type.

Input:  ``REFERENCES["exp"](x)``, x an array of f64 or of the 80-bit type
Output: the function in that type, with many more correct bits than f32 or f64 results need
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import special

BOUNDS = {
    "exp": 1.1, "exp2": 1.6, "expm1": 2.2, "sigmoid": 2.6, "log": 0.85, "log2": 1.4, "log1p": 0.9,
    "tanh": 2.8, "sinh": 2.6, "cosh": 2.6, "erf": 1.9, "sin": 0.9, "cos": 0.9, "tan": 2.6,
    "asin": 1.3, "acos": 1.3, "atan": 2.2, "atan2": 2.2, "pow": 1.8, "sqrt": 0.5, "rsqrt": 1.5,
}  # fmt: skip
"""Greatest errors in units of the last place, of f32 and of f64."""

TWO_OPERANDS = ("atan2", "pow")


def erf(x: np.ndarray) -> np.ndarray:
    """Return erf: in f64 SciPy's, in the 80-bit type by a series of positive terms.

    erf x = 2 / sqrt(pi) e^(-x^2) (x + 2 x^3 / 3 + 4 x^5 / (3 5) + ...), Abramowitz and Stegun
    7.1.6; from 3 on, where erf is close to 1, 1 - erfc in f64 has the bits.
    """
    if x.dtype != np.longdouble:
        return special.erf(x)
    near = np.where(np.abs(x) < 3, x, 0)
    term = total = near
    for n in range(1, 80):
        term = term * (2 * near * near) / (2 * n + 1)
        total = total + term
    root = np.sqrt(np.longdouble(np.pi) + np.longdouble(1.2246467991473532e-16))
    series = 2 / root * np.exp(-near * near) * total
    tails = special.erfc(np.abs(x).astype(np.float64)).astype(np.longdouble)
    return np.where(np.abs(x) < 3, series, np.copysign(1 - tails, x))


REFERENCES: dict[str, Callable[..., np.ndarray]] = {
    "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1, "log": np.log, "log2": np.log2,
    "log1p": np.log1p, "tanh": np.tanh, "sinh": np.sinh, "cosh": np.cosh, "erf": erf,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)), "sin": np.sin, "cos": np.cos, "tan": np.tan,
    "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "atan2": np.arctan2, "pow": np.power,
    "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x),
}  # fmt: skip
