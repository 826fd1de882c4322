"""How the coefficients in ``backends/llvm/maths`` were obtained: run me to get them again.

Needs mpmath, which nothing else here does: ``python -m tests.backends.fit_polynomials exp32``.

Each polynomial is the best in relative error of the function that it serves (a Remez exchange on a
grid, in 60 digits). Coefficients are then rounded to the format from the lowest power on, the rest
fitted again after each; among the mixtures of refitted and directly rounded ones the best is kept.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mpmath as mp

mp.mp.dps = 60
Real = Any
TINY = mp.mpf(10) ** -12


@dataclass(frozen=True)
class Fit:
    """Approximate ``function`` on [low, high] by ``terms`` powers of x, from x^0 on.

    ``weight`` turns an error of the polynomial into a relative error of the whole.
    """

    function: Callable[[Real], Real]
    weight: Callable[[Real], Real]
    terms: int
    low: Real
    high: Real
    bits: int


def remez(fit: Fit, powers: list[int], function: Callable[[Real], Real]) -> list[Real]:
    """Return the coefficients of the best approximation, by exchange of extrema."""
    count, grid_size = len(powers), 400
    low, high = fit.low, fit.high

    def chebyshev(total: int, chosen: int) -> list[Real]:
        middle, half = (low + high) / 2, (high - low) / 2
        return [middle - half * mp.cos(mp.pi * (k + mp.mpf(1) / 2) / total) for k in range(chosen)]

    nodes = chebyshev(count + 1, count + 1)
    if min(fit.weight(x) for x in nodes) < mp.mpf(10) ** -6:  # a node where the weight vanishes
        nodes = chebyshev(count + 2, count + 1)
    grid = [low + (high - low) * mp.mpf(10) ** -9, *chebyshev(grid_size, grid_size), high]
    values, weights = [function(x) for x in grid], [fit.weight(x) for x in grid]
    best: tuple[Real, list[Real]] | None = None
    for _ in range(30):
        matrix, right = mp.matrix(count + 1, count + 1), mp.matrix(count + 1, 1)
        for row, x in enumerate(nodes):
            for column, power in enumerate(powers):
                matrix[row, column] = x**power
            matrix[row, count] = (-1) ** row / max(fit.weight(x), mp.mpf(10) ** -9)
            right[row] = function(x)
        solution = mp.lu_solve(matrix, right)
        coefficients, level = [solution[k] for k in range(count)], abs(solution[count])
        errors = [
            (sum(c * x**p for c, p in zip(coefficients, powers, strict=True)) - y) * w
            for x, y, w in zip(grid, values, weights, strict=True)
        ]
        worst = max(map(abs, errors))
        if best is None or worst < best[0]:
            best = worst, coefficients
        extrema = _extrema(errors, count + 1)
        if len(extrema) < count + 1 or worst < level * mp.mpf("1.01"):
            break
        nodes = [grid[k] for k in extrema]
    assert best is not None
    return best[1]


def _extrema(errors: list[Real], wanted: int) -> list[int]:
    """Return where the errors are largest between changes of sign, dropping the least at an end."""
    result: list[int] = []
    run = [0]
    for k in range(1, len(errors)):
        if (errors[k] > 0) != (errors[run[-1]] > 0):
            result.append(max(run, key=lambda q: abs(errors[q])))
            run = []
        run.append(k)
    result.append(max(run, key=lambda q: abs(errors[q])))
    while len(result) > wanted:
        result.pop(0 if abs(errors[result[0]]) < abs(errors[result[-1]]) else -1)
    return result


def rounded(fit: Fit) -> tuple[Real, list[Real]]:
    """Return the error and the coefficients in the format of ``fit``."""
    fixed: list[Real] = []
    candidates: list[list[Real]] = []
    for power in range(fit.terms):
        known = list(fixed)

        def remainder(x: Real, known: list[Real] = known) -> Real:
            return fit.function(x) - sum(c * x**p for p, c in enumerate(known))

        rest = remez(fit, list(range(power, fit.terms)), remainder)
        candidates.append(known + [_round(c, fit.bits) for c in rest])
        fixed.append(_round(rest[0], fit.bits))
    chosen = min([*candidates, fixed], key=lambda c: error_of(fit, c))
    return error_of(fit, chosen), chosen


def error_of(fit: Fit, coefficients: list[Real]) -> Real:
    """Return the largest relative error over a fine grid."""
    points = 3000
    return max(
        abs((sum(c * x**p for p, c in enumerate(coefficients)) - fit.function(x)) * fit.weight(x))
        for x in (
            fit.low + (fit.high - fit.low) * (mp.mpf(k) + mp.mpf("0.37")) / points
            for k in range(points)
        )
    )


def _round(value: Real, bits: int) -> Real:
    if bits == 32:
        return mp.mpf(struct.unpack("f", struct.pack("f", float(value)))[0])
    return mp.mpf(float(value))


# --- the functions -------------------------------------------------------------------------------


def _of_square(function: Callable[[Real], Real], first: Real, second: Real, subtract: Any) -> Any:
    """Return ``(f(x) - subtract(x)) / x^k`` in terms of z = x^2, with two terms of its series."""
    return lambda z: first + second * z if z < TINY else subtract(function, mp.sqrt(z), z)


_third = lambda f, x, z: (f(x) - x) / (x * z)  # noqa: E731
_sine = _of_square(mp.sin, -mp.mpf(1) / 6, mp.mpf(1) / 120, _third)
_asin = _of_square(mp.asin, mp.mpf(1) / 6, mp.mpf(3) / 40, _third)
_atan = _of_square(mp.atan, -mp.mpf(1) / 3, mp.mpf(1) / 5, _third)
_cosine = _of_square(
    mp.cos, mp.mpf(1) / 24, -mp.mpf(1) / 720, lambda f, x, z: (f(x) - 1 + z / 2) / z**2
)
_near_erf = _of_square(
    mp.erf, 2 / mp.sqrt(mp.pi) - 1, -2 / mp.sqrt(mp.pi) / 3, lambda f, x, z: f(x) / x - 1
)
_log = _of_square(mp.atanh, mp.mpf(2) / 3, mp.mpf(2) / 5, lambda f, x, z: (2 * f(x) / x - 2) / z)
_two_log2e = 2 / mp.log(2)
_pow = _of_square(
    lambda x: _two_log2e * mp.atanh(x),
    _two_log2e / 5,
    _two_log2e / 7,
    lambda f, x, z: (f(x) / x - _two_log2e * (1 + z / 3)) / z**2,
)


def _log2_rest(x: Real) -> Real:
    """Return log2(1 + x) / x without the log2 e that is taken apart, in f32."""
    slope = mp.log(1 + x, 2) / x if abs(x) > TINY else 1 / mp.log(2)
    return slope - _round(1 / mp.log(2), 32)


def _cubic_weight(function: Callable[[Real], Real]) -> Callable[[Real], Real]:
    return lambda z: z * mp.sqrt(z) / function(mp.sqrt(z)) if z > 0 else mp.mpf(0)


_half_ln2 = mp.log(2) / 2 * mp.mpf("1.0005")
_half = mp.mpf("0.5003")
_quarter_pi = (mp.pi / 4) ** 2 * mp.mpf("1.002")
_eighth_pi = (mp.sqrt(2) - 1) ** 2 * mp.mpf("1.001")
_mantissa = mp.mpf("0.02945")
_least, _greatest = (mp.sqrt(0.5) - 1) * mp.mpf("1.0005"), (mp.sqrt(2) - 1) * mp.mpf("1.0005")
_exp = lambda r: (mp.expm1(r) - r) / r**2 if abs(r) > TINY else mp.mpf(1) / 2  # noqa: E731
_exp2 = lambda r: (mp.mpf(2) ** r - 1) / r if abs(r) > TINY else mp.log(2)  # noqa: E731
_far_erf = lambda t: -mp.log(mp.erfc(t), 2)  # noqa: E731
_far_weight = lambda t: mp.erfc(t) * mp.log(2) / mp.erf(t)  # noqa: E731

FITS: dict[str, tuple[Any, Any, Real, Real, int, int]] = {
    "exp": (_exp, lambda r: r * r * mp.exp(-r), -_half_ln2, _half_ln2, 5, 10),
    "expm1": (
        _exp, lambda r: abs(r * r / mp.expm1(r)) if r else mp.mpf(0), -_half_ln2, _half_ln2, 6, 11,
    ),
    "exp2": (_exp2, lambda r: abs(r) * mp.mpf(2) ** -r, -_half, _half, 7, 11),
    "log": (_log, lambda z: z / 2, mp.mpf(0), _mantissa, 4, 7),
    "near_erf": (
        _near_erf, lambda z: 1 / (_near_erf(z) + 1), mp.mpf(0), mp.mpf(1), 7, 12,
    ),
    "far_erf": (_far_erf, _far_weight, mp.mpf(1), None, 7, 19),
    "sin": (_sine, _cubic_weight(mp.sin), mp.mpf(0), _quarter_pi, 3, 6),
    "cos": (_cosine, lambda z: z * z / mp.cos(mp.sqrt(z)), mp.mpf(0), _quarter_pi, 3, 6),
    "asin": (_asin, _cubic_weight(mp.asin), mp.mpf(0), mp.mpf("0.2501"), 5, 13),
    "atan": (_atan, _cubic_weight(mp.atan), mp.mpf(0), _eighth_pi, 5, 11),
    "pow": (_pow, lambda z: z * z / _two_log2e, mp.mpf(0), _mantissa, 3, 7),
    "log2_": (
        _log2_rest, lambda x: abs(x / mp.log(1 + x, 2)) if abs(x) > TINY else mp.log(2),
        _least, _greatest, 10, 0,
    ),
}  # fmt: skip


def fit_of(name: str) -> Fit:
    """Return the fit called ``exp32``, ``log64``, ..."""
    function, weight, low, high, single, double = FITS[name[:-2]]
    bits = int(name[-2:])
    if high is None:  # where erf rounds to 1
        high = mp.mpf(4 if bits == 32 else 6)
    return Fit(function, weight, single if bits == 32 else double, low, high, bits)


if __name__ == "__main__":
    for wanted in sys.argv[1:]:
        error, coefficients = rounded(fit_of(wanted))
        print(f"{wanted}: relative error 2^{float(mp.log(error, 2)):.2f}")
        print("   ", [float(c) for c in coefficients])
