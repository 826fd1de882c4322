"""What every test of a schedule asks: is it proved, does it compute the reference's result.

``check`` is for what must be accepted, ``refused`` for what must not.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import pytest
from schedule_operators import Case, arrays_for

import tensorlang as tl
from tensorlang.interpreter.run import run_program
from tensorlang.ir.program import Program
from tensorlang.ir.verify import verify_scheduled
from tensorlang.lang.reference import evaluate_definition
from tensorlang.schedule.place_inits import place_inits

Sizes = Mapping[str, int]


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


def meets_conditions(schedule: tl.Schedule, sizes: Sizes) -> bool:
    """Tell whether sizes meet the definition's conditions and those that steps have added."""
    from tensorlang.ir.affine import evaluate

    values = {size: sizes[size.name] for size in schedule.definition.sizes}
    for condition in schedule.definition.conditions + schedule.program.conditions:
        value = evaluate(condition.form, values)
        if value < 0 or (condition.equality and value):
            return False
    return all(
        evaluate(axis.extent, values) >= 0
        for stage in schedule.definition.stages
        for axis in stage.all_axes
    )


def check(
    case: Case, schedule: tl.Schedule, sizes: Iterable[int | Sizes] = (0, 1, 2, 3, 7, 8, 9)
) -> None:
    """Assert that an accepted schedule prints, is well formed, is proved, and computes."""
    assert str(schedule)
    verify_scheduled(schedule.program)
    assert schedule.verify().ok
    for entry in sizes:
        for values in [entry] if isinstance(entry, Mapping) else sizes_of(case, schedule, [entry]):
            if meets_conditions(schedule, values):
                agrees(case, schedule.program, values)


def body(schedule: tl.Schedule) -> str:
    """Return the printed program without its first line, flush left."""
    import textwrap

    return textwrap.dedent("\n".join(str(schedule).splitlines()[1:])) + "\n"


def refused(schedule: tl.Schedule, step: Callable[[], object], text: str) -> None:
    """Assert that a step is refused with exactly ``text``, and leaves the schedule as it was.

    In ``text``, ``AT`` stands for the line that names the user's file, line and source.
    """
    before, trace = schedule.program, schedule.trace
    with pytest.raises(tl.ScheduleError) as caught:
        step()
    found = str(caught.value)
    assert re.search(rf"^  at {re.escape(step.__code__.co_filename)}:\d+", found, re.MULTILINE), found
    found = re.sub(r"^  at .*$", "  AT", found, flags=re.MULTILINE)
    assert found.strip() == text.strip()
    assert schedule.program is before
    assert schedule.trace == trace
