"""Errors of compiled functions, over blocks of all f32 inputs and over samples.

Input:  ``singles("exp", "cpu", first=0, count=2**22)``
Output: a ``Tally``: the greatest error with the input that has it, the sum of errors, how many

An error is ``|computed - exact|`` over the distance of neighbouring numbers where the exact value
lies (the least number's, for subnormal results).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numba
import numpy as np

import tensorlang as tl
from tests.accuracy.functions import REFERENCES, TWO_OPERANDS

BLOCK = 1 << 14  # numbers that the caches hold, with what is computed from them


@dataclass
class Tally:
    """Errors of ``count`` results; ``worst`` is where ``greatest`` was."""

    count: int = 0
    greatest: float = 0.0
    worst: tuple[str, ...] = ()
    total: float = 0.0
    wrong: int = 0  # inf or NaN where it should not be, or the reverse

    def add(self, found: np.ndarray, arguments: tuple[np.ndarray, ...]) -> None:
        """Add the errors of a block."""
        place = int(found.argmax())
        if found[place] > self.greatest or not self.worst:
            self.greatest = float(found[place])
            self.worst = tuple(float(x[place]).hex() for x in arguments)
        if found[place] == np.inf:
            finite = np.isfinite(found)
            self.wrong += int(found.size - np.count_nonzero(finite))
            found = np.where(finite, found, 0)
        self.total += float(found.sum())
        self.count += found.size

    @property
    def mean(self) -> float:
        """The mean error of all results."""
        return self.total / max(1, self.count)


@cache
def compiled(name: str, kind: str, target: str) -> Callable[..., np.ndarray]:
    """Return the function of arrays of ``kind``, as the language compiles it."""
    dtype, function, N = getattr(tl, kind), getattr(tl, name), tl.dim("N")
    if name in TWO_OPERANDS:

        @tl.compute
        def apply(x: dtype[N], y: dtype[N]):
            return tl.tensor(function(x[i], y[i]) for i in N)
    else:

        @tl.compute
        def apply(x: dtype[N]):
            return tl.tensor(function(x[i]) for i in N)

    return tl.compile(apply, target=target)


def errors(got: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """Return the errors of ``got`` in units of its last place; inf where NaN or inf is wrong."""
    if got.dtype == np.float32 and exact.dtype == np.float64:
        found = np.empty(exact.size)
        _single_errors()(got, exact, found)
        return found
    information = np.finfo(got.dtype)
    with np.errstate(all="ignore"):
        power = np.ldexp(exact.dtype.type(0.5), np.frexp(exact)[1])
        unit = np.maximum(power, exact.dtype.type(information.tiny))
        unit *= exact.dtype.type(information.eps)
        found = np.abs(got - exact) / unit
        if not np.isfinite(found.max()):
            odd = np.flatnonzero(~np.isfinite(found))
            rounded = exact[odd].astype(got.dtype)
            same = (got[odd] == rounded) | (np.isnan(got[odd]) & np.isnan(rounded))
            found[odd] = np.where(same, 0, np.inf)
    return found.astype(np.float64, copy=False)


@cache
def _single_errors() -> Callable[[np.ndarray, np.ndarray, np.ndarray], None]:
    """Return ``errors`` of f32 as one loop, six times as fast: half of a long measurement's time.

    It is numba's code, not ours: what measures must not depend on what is measured.
    """
    exponent, tiny, spacing = np.int64(0x7FF0_0000_0000_0000), 2.0**-126, 2.0**-23

    @numba.njit
    def compare(got: np.ndarray, exact: np.ndarray, found: np.ndarray) -> None:
        for n in range(exact.size):
            want = exact[n]
            power = np.int64(np.float64(want).view(np.int64) & exponent).view(np.float64)
            error = abs(np.float64(got[n]) - want) / (max(power, tiny) * spacing)
            rounded = np.float32(want)
            same = (got[n] == rounded) | ((got[n] != got[n]) & (rounded != rounded))
            found[n] = error if error < np.inf else (0.0 if same else np.inf)

    return compare


def singles(name: str, target: str, first: int, count: int, step: int = 1) -> Tally:
    """Return the errors for ``count`` f32, whose bits begin at ``first``, ``step`` apart."""
    tally, function = Tally(), compiled(name, "f32", target)
    steps = np.arange(BLOCK, dtype=np.int64) * step
    for block in range(count // BLOCK):
        bits = (first + block * BLOCK * step + steps).astype(np.uint32)
        x = bits.view(np.float32)
        with np.errstate(all="ignore"):
            exact = REFERENCES[name](x.astype(np.float64))
        tally.add(errors(function(x), exact), (x,))
    return tally


def all_halves(name: str, kind: str, target: str) -> Tally:
    """Return the errors for all numbers of f16 or bf16."""
    bits = np.arange(1 << 16, dtype=np.uint32).astype(np.uint16)
    x = bits.view(tl.dtypes.to_numpy(getattr(tl.dtypes, kind)))
    got = compiled(name, kind, target)(x)
    with np.errstate(all="ignore"):
        exact = REFERENCES[name](x.astype(np.float64))
        rounded = exact.astype(x.dtype).astype(np.float64)
        wide = got.astype(np.float64)
        power = 2.0 ** np.floor(np.log2(np.maximum(np.abs(exact), TINY[kind])))
        found = np.abs(wide - exact) / (power * EPSILON[kind])
        same = (wide == rounded) | (np.isnan(wide) & np.isnan(exact))
    special = ~np.isfinite(found)
    found[special] = np.where(same[special], 0, np.inf)
    tally = Tally()
    with np.errstate(invalid="ignore"):  # NaN among all inputs
        tally.add(found, (x.astype(np.float64),))
    return tally


TINY = {"f16": 2.0**-14, "bf16": 2.0**-126}
EPSILON = {"f16": 2.0**-10, "bf16": 2.0**-7}


def sampled(name: str, kind: str, target: str, count: int, seed: int) -> Tally:
    """Return the errors for random numbers of all sizes, many near 0, 1 and the limits of exp."""
    generator = np.random.default_rng(seed)
    dtype = np.dtype(np.float32 if kind == "f32" else np.float64)
    wide = np.float64 if kind == "f32" else np.longdouble
    tally, function = Tally(), compiled(name, kind, target)
    arity = 2 if name in TWO_OPERANDS else 1
    for _ in range(max(1, count // BLOCK)):
        arguments = tuple(_sample(generator, dtype, k) for k in range(arity))
        with np.errstate(all="ignore"):
            exact = REFERENCES[name](*[x.astype(wide) for x in arguments])
        tally.add(errors(function(*arguments), exact), arguments)
    return tally


def _sample(generator: np.random.Generator, dtype: np.dtype, operand: int) -> np.ndarray:
    part = BLOCK // 8
    integer = np.uint32 if dtype.itemsize == 4 else np.uint64
    limit = 745.0 if dtype.itemsize == 8 else 104.0
    with np.errstate(invalid="ignore"):  # NaN among random bits
        x = np.concatenate(
            [
                generator.integers(0, np.iinfo(integer).max, 2 * part, integer).view(dtype),
                *[generator.uniform(-width, width, part) for width in (1, 10, limit)],
                np.exp(generator.uniform(-40, 3, part)) * generator.choice([-1, 1], part),
                1 + generator.normal(0, 1e-3, part),
                np.round(generator.uniform(-50, 50, part)) * (0.5 if operand else np.pi / 2),
            ]
        ).astype(dtype)
    generator.shuffle(x)
    return x
