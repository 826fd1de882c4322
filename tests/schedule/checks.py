"""What every test of a schedule asks: is it proved, does it compute the reference's result.

``check`` is for what must be accepted, ``refused`` for what must not.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import pytest

import tensorlang as tl
from tensorlang.interpreter.run import run_program
from tensorlang.ir.affine import evaluate
from tensorlang.ir.program import Program
from tensorlang.ir.verify import verify_scheduled
from tensorlang.lang.reference import evaluate_definition
from tensorlang.schedule.place_inits import place_inits
from tests.schedule.golden import same
from tests.schedule.operators import BY_NAME, Case, arrays_for

Sizes = Mapping[str, int]

SIZES = (0, 1, 2, 3, 7, 8, 9)
"""Nothing, one, primes, and the sizes around a tile of 8."""


def reference(case: Case, definition: Any, sizes: Sizes, seed: int = 0) -> tuple[Any, ...]:
    """Return what the definition itself gives."""
    arrays = arrays_for(definition, sizes, case, seed)
    values = {size: sizes[size.name] for size in definition.sizes}
    return evaluate_definition(definition, arrays, scalars_for(definition), values)


def interpreted(case: Case, program: Program, sizes: Sizes, seed: int = 0) -> list[Any]:
    """Return what the scheduled program gives in the interpreter, races detected."""
    definition = program.definition
    arrays = arrays_for(definition, sizes, case, seed)
    values = {size: sizes[size.name] for size in definition.sizes}
    found = run_program(place_inits(program), arrays, values, scalars_for(definition), seed=seed)
    return [found[output] for output in definition.outputs]


def scalars_for(definition: Any) -> dict[Any, Any]:
    return {scalar: 3 for scalar in definition.scalars}


def assert_agree(case: Case, found: Iterable[Any], expected: Iterable[Any], note: str) -> None:
    """Compare outputs: exactly, or up to rounding where the operator divides."""
    for one, other in zip(found, expected, strict=True):
        assert one.shape == other.shape, note
        assert one.dtype == other.dtype, note
        if case.exact:
            np.testing.assert_array_equal(one, other, note)
        else:
            np.testing.assert_allclose(one, other, 1e-5, 1e-6, equal_nan=True, err_msg=note)


def agrees(case: Case, program: Program, sizes: Sizes, seed: int = 0) -> None:
    """Assert that a program gives the reference's result, or fails as the reference does."""
    note = f"{case.name} at {dict(sizes)}:\n{program}"
    try:
        expected = reference(case, program.definition, sizes, seed)
    except (ValueError, IndexError):  # an empty argmax, a gather from nothing
        return
    assert_agree(case, interpreted(case, program, sizes, seed), expected, note)


def sizes_of(case: Case, schedule: tl.Schedule, values: Iterable[int]) -> list[dict[str, int]]:
    """Return the sizes of a case for each of ``values``; those left symbolic get it, or near it."""
    names = [size.name for size in schedule.definition.sizes]
    return [
        {name: max(0, value - number % 2) for number, name in enumerate(names)} for value in values
    ]


def meets_conditions(program: Program, sizes: Sizes) -> bool:
    """Tell whether sizes meet the definition's conditions and those that steps have added."""
    definition = program.definition
    values = {size: sizes[size.name] for size in definition.sizes}
    for condition in definition.conditions + program.conditions:
        value = evaluate(condition.form, values)
        if value < 0 or (condition.equality and value):
            return False
    return all(
        evaluate(axis.extent, values) >= 0 for stage in definition.stages for axis in stage.all_axes
    )


def check(case: Case, schedule: tl.Schedule, sizes: Iterable[int | Sizes] = SIZES) -> None:
    """Assert that an accepted schedule prints, is well formed, is proved, and computes."""
    assert str(schedule)
    verify_scheduled(schedule.program)
    assert schedule.verify().ok
    for entry in sizes:
        for values in [entry] if isinstance(entry, Mapping) else sizes_of(case, schedule, [entry]):
            if meets_conditions(schedule.program, values):
                agrees(case, schedule.program, values)


def prints(schedule: tl.Schedule, text: str) -> None:
    """Assert that the printed program is ``text``, without its first line."""
    same(textwrap.dedent("\n".join(str(schedule).splitlines()[1:])), text, depth=2)


def refused(schedule: tl.Schedule, step: Callable[[], object], text: str) -> None:
    """Assert that a step is refused with exactly ``text``, and leaves the schedule as it was.

    In ``text``, ``AT`` stands for the line that names the user's file, line and source.
    """
    before, trace = schedule.program, schedule.trace
    with pytest.raises(tl.ScheduleError) as caught:
        step()
    found = str(caught.value)
    assert re.search(rf"^  at {re.escape(step.__code__.co_filename)}:\d+: ", found, re.MULTILINE)
    same(re.sub(r"^  at .*$", "  AT", found, flags=re.MULTILINE), text, depth=2)
    assert schedule.program is before
    assert schedule.trace == trace


def start(name: str, **fixed: int) -> tl.Schedule:
    """Return an untouched schedule of an operator of ``operators.py``."""
    return BY_NAME[name].schedule(**fixed)


def accepts(
    name: str,
    steps: Callable[[tl.Schedule], object],
    sizes: Iterable[int | Sizes] = SIZES,
    **fixed: int,
) -> tl.Schedule:
    """Assert that steps are taken, and that what results is proved and computes; return it."""
    schedule = start(name, **fixed)
    steps(schedule)
    check(BY_NAME[name], schedule, sizes)
    return schedule


def compiles(
    name: str,
    steps: Callable[[tl.Schedule], object],
    sizes: Iterable[int] = (1, 8, 13),
    **fixed: int,
) -> None:
    """Assert that the compiled program of a schedule gives the reference's result."""
    case = BY_NAME[name]
    schedule = case.schedule(**fixed)
    steps(schedule)
    function = tl.compile(schedule)
    for values in (v for size in sizes for v in sizes_of(case, schedule, [size])):
        if meets_conditions(schedule.program, values):
            definition = schedule.definition
            arrays = [*arrays_for(definition, values, case).values()]
            found = function(*arrays, *scalars_for(definition).values())
            found = found if isinstance(found, tuple) else (found,)
            expected = reference(case, definition, values)
            assert_agree(case, found, expected, f"{name} at {values}, compiled:\n{schedule}")


def each(*names: str) -> Any:
    """Parametrize a test: names, then lines of values such as ``matmul:k argmax:j``."""
    return pytest.mark.parametrize(names[:-1], [spec.split(":") for spec in names[-1].split()])
