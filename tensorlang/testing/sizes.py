"""The sizes to try an operator with: 0, 1, primes and numbers beside a tile, in every mixture.

Input:  a definition over M and N with the condition N < 2 * M
Output: ``[{M: 1, N: 0}, {M: 1, N: 1}, ...]``, small ones first, none that breaks the condition
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterable, Iterator, Mapping

from tensorlang.ir.affine import Affine, Var, evaluate
from tensorlang.ir.definition import Definition, Stage

EXTENTS = (0, 1, 2, 3, 4, 5, 7, 8, 13, 16, 17, 19)
_MOST_COMBINATIONS = 4_000
_MOST_POINTS = 20_000

Sizes = dict[Var, int]


def candidate_sizes(definition: Definition) -> list[Sizes]:
    """Return values for the sizes that satisfy every condition, the least work first.

    Raises ValueError for conditions that no combination of small sizes satisfies.
    """
    fitting = [sizes for sizes in _combinations(definition.sizes) if fits(definition, sizes)]
    if not fitting:
        conditions = "; ".join(condition.message for condition in definition.conditions)
        raise ValueError(
            f"no small sizes satisfy the conditions of {definition.name}: {conditions}; "
            "fix some, as in tlt.arguments(op, N=24)"
        )
    quick = [sizes for sizes in fitting if points(definition, sizes) <= _MOST_POINTS]
    chosen = quick or [min(fitting, key=lambda sizes: points(definition, sizes))]
    return sorted(chosen, key=lambda sizes: sum(sizes.values()))


def _combinations(variables: tuple[Var, ...]) -> Iterator[Sizes]:
    """Yield every mixture of extents, or as many of them as are worth trying."""
    values: Iterable[tuple[int, ...]]
    if len(EXTENTS) ** len(variables) <= _MOST_COMBINATIONS:
        values = itertools.product(EXTENTS, repeat=len(variables))
    else:
        generator = random.Random(0)
        values = [
            tuple(generator.choices(EXTENTS, k=len(variables))) for _ in range(_MOST_COMBINATIONS)
        ]
    for combination in values:
        yield dict(zip(variables, combination, strict=True))


def fits(definition: Definition, sizes: Mapping[Var, int]) -> bool:
    """Tell whether sizes satisfy the conditions and make no extent negative."""
    for condition in definition.conditions:
        value = evaluate(condition.form, sizes)
        if value < 0 or (condition.equality and value != 0):
            return False
    return all(evaluate(extent, sizes) >= 0 for extent in _extents(definition))


def _extents(definition: Definition) -> Iterator[Affine]:
    for tensor in definition.inputs:
        yield from tensor.shape
    for stage in definition.stages:
        for axis in stage.all_axes:
            yield axis.extent


def points(definition: Definition, sizes: Mapping[Var, int]) -> int:
    """Return how many points the largest stage has."""
    return max((_points_of(stage, sizes) for stage in definition.stages), default=0)


def _points_of(stage: Stage, sizes: Mapping[Var, int]) -> int:
    return math.prod(evaluate(axis.extent, sizes) for axis in stage.all_axes)


def most_terms(definition: Definition, sizes: Mapping[Var, int]) -> int:
    """Return how many values the longest reduction combines; 0 without reductions."""
    return max(
        (
            math.prod(evaluate(axis.extent, sizes) for axis in stage.reduction_axes)
            for stage in definition.stages
            if stage.is_reduction
        ),
        default=0,
    )
