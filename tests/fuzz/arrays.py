"""Random sizes and arrays: strides of every kind, and the values that a sample allows.

Input:  a ``Sample``, a ``Random``
Output: ``{"M": 5, "N": 0}`` and an array for each parameter
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

import ml_dtypes
import numpy as np

from tests.fuzz.memory import fenced
from tests.fuzz.operators import Held, Sample
from tests.fuzz.values import UNSIGNED

SIZES = (0, 1, 2, 3, 5, 7, 11, 13, 3, 4, 5, 7, 8, 9, 15, 16, 17)
"""Zero, one, two, primes, and around the tiles 4, 8 and 16."""

PLACEMENTS = (
    "plain", "fenced", "fenced", "fortran", "negative", "strided", "unaligned", "frozen", "repeated"
)  # fmt: skip

Array = np.ndarray[Any, Any]
NUMPY: dict[str, Any] = {
    "f32": "f4", "f64": "f8", "f16": "f2", "bf16": ml_dtypes.bfloat16, "bool": "?",
    "i8": "i1", "i16": "i2", "i32": "i4", "i64": "i8",
    "u8": "u1", "u16": "u2", "u32": "u4", "u64": "u8",
}  # fmt: skip


def draw_sizes(random: Random, dims: Sequence[str]) -> dict[str, int]:
    return {name: random.choice(SIZES) for name in dims}


def shape_of(shape: Sequence[str], sizes: Mapping[str, int]) -> tuple[int, ...]:
    return tuple(eval(extent, dict(sizes)) for extent in shape)


def draw_placements(random: Random, sample: Sample) -> list[str]:
    """Draw how each array lies in memory; a version is compiled for each kind of strides."""
    if random.random() < 0.5:
        return [random.choice(["plain", "fenced"]) for _ in sample.inputs]
    return [random.choice(PLACEMENTS) for _ in sample.inputs]


def draw_arguments(
    random: Random, sample: Sample, sizes: Mapping[str, int], placements: Sequence[str]
) -> list[Any]:
    """Return the arguments of a call; floats may be NaN or infinite where the sample allows."""
    special = not sample.orders_matter and random.random() < 0.1
    generator = np.random.default_rng(random.randrange(2**32))
    arguments: list[Any] = []
    for held, placement in zip(sample.inputs, placements, strict=True):
        shape = shape_of(held.shape, sizes)
        below = eval(held.below, dict(sizes)) if held.below else None
        array = _elements(generator, random, held, shape, below)
        if special and held.element.is_float:
            kinds = np.array([np.nan, np.inf, -np.inf, -0.0], array.dtype)
            spread = generator.random(shape) < 0.2
            array = np.where(spread, kinds[generator.integers(0, 4, shape)], array)
        arguments.append(lay_out(random, array, placement))
    for held in sample.scalars:
        number = random.randrange(-4, 5)
        number = abs(number) if held.element.dtype in UNSIGNED else number
        arguments.append(float(number) if held.element.is_float else number)
    return arguments


def _elements(
    generator: np.random.Generator,
    random: Random,
    held: Held,
    shape: tuple[int, ...],
    below: int | None,
) -> Array:
    dtype = np.dtype(NUMPY[held.element.dtype])
    if below is not None:
        high = max(below, 1) + (1 if random.random() < 0.05 else 0)
        low = -1 if random.random() < 0.03 else 0
        return generator.integers(low, high, shape).astype(dtype)
    if held.element.dtype == "bool":
        return generator.random(shape) < random.choice([0.1, 0.5, 0.9])
    if held.element.bound > 4:
        info = np.iinfo(dtype)
        array = generator.integers(info.min, info.max, shape, dtype, endpoint=True)
        return np.where(generator.random(shape) < 0.1, info.min, array)
    return generator.integers(0 if dtype.kind == "u" else -4, 5, shape).astype(dtype)


def lay_out(random: Random, array: Array, placement: str) -> Array:
    """Return equal elements, lying in memory in another way."""
    if array.ndim == 0:
        return array
    axis = random.randrange(array.ndim)
    match placement:
        case "fenced":
            return fenced(array)
        case "fortran":
            return np.asfortranarray(array)
        case "negative":
            return np.flip(np.flip(array, axis).copy(), axis)
        case "strided":
            wide = np.repeat(array, 2, axis)
            return wide[(slice(None),) * axis + (slice(None, None, 2),)]
        case "unaligned":
            raw = np.empty(array.nbytes + 1, np.uint8)
            view = raw[1:].view(array.dtype).reshape(array.shape)
            view[...] = array
            return view
        case "frozen":
            array.flags.writeable = False
            return array
        case "repeated" if array.shape[0]:
            return np.broadcast_to(array[:1], array.shape)
        case _:
            return array
