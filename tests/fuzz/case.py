"""One case: an operator, a schedule of it, and sizes; everything that runs it must agree.

Input:  a seed
Output: an ``Account``: what was accepted and refused, and every fault, with what shows it
"""

from __future__ import annotations

import traceback
from collections import Counter
from dataclasses import dataclass, field
from random import Random
from typing import Any

import tensorlang as tl
from tensorlang.interpreter.run import run_program
from tensorlang.lang.binding import bind_sizes
from tensorlang.schedule.place_inits import place_inits
from tests.fuzz.arrays import draw_arguments, draw_placements, draw_sizes
from tests.fuzz.compare import disagreement
from tests.fuzz.operators import Sample, draw_operator
from tests.fuzz.plain import Empty, run_plain
from tests.fuzz.schedules import draw_schedule

SIZES_A_CASE = 3
POINTS = 6000  # what the interpreter may execute in one run


@dataclass
class Fault:
    """Something wrong: ``kind`` says who, ``text`` how."""

    kind: str
    text: str


@dataclass
class Account:
    """What happened to one seed."""

    seed: int
    faults: list[Fault] = field(default_factory=list)
    accepted: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    runs: int = 0  # results that agreed with the reference
    plain: int = 0  # references that agreed with the text run as plain Python
    unproved: int = 0  # schedules whose steps were accepted, but that compile would refuse
    errors: Counter[str] = field(default_factory=Counter)  # calls that rightly failed, alike
    operator: str = ""
    steps: str = ""


def run_case(seed: int, sizes_a_case: int = SIZES_A_CASE) -> Account:
    account = Account(seed)
    random = Random(seed)
    try:
        sample = draw_operator(random)
        account.operator = sample.text
        sample.operator.definition()
    except Exception:
        account.faults.append(Fault("definition", traceback.format_exc()))
        return account
    try:
        drawn = draw_schedule(random, sample.operator)
    except Exception:
        account.faults.append(Fault("primitive", traceback.format_exc()))
        return account
    account.accepted, account.refused = drawn.accepted, drawn.refused
    schedule = drawn.schedule
    account.steps = "\n".join(map(str, schedule.trace))
    try:
        schedule.verify()
    except Exception as error:
        if "not proved" not in str(error):
            account.faults.append(Fault("proof", f"{type(error).__name__}: {error}"))
            return account
        account.unproved = 1
    if account.unproved:
        return _finish(account, random, sample, schedule, {}, sizes_a_case)
    try:
        level = random.choice([0, 1, 1, 3])
        compiled: Any = tl.compile(schedule, verify=False, opt_level=level)  # proved above
        default: Any = None
        if random.random() < 0.5:
            default = tl.compile(sample.operator, opt_level=1)
    except Exception:
        account.faults.append(Fault("compile", traceback.format_exc()))
        return account
    functions = {"machine code": compiled, "default schedule": default}
    return _finish(account, random, sample, schedule, functions, sizes_a_case)


def _finish(
    account: Account,
    random: Random,
    sample: Sample,
    schedule: Any,
    functions: dict[str, Any],
    sizes_a_case: int,
) -> Account:
    """Call everything with several sizes."""
    placements = draw_placements(random, sample)
    for _ in range(sizes_a_case):
        sizes = _small_sizes(random, sample)
        arguments = draw_arguments(random, sample, sizes, placements)
        _check_call(account, sample, schedule, functions, sizes, arguments)
    return account


def _small_sizes(random: Random, sample: Sample) -> dict[str, int]:
    """Draw sizes for which the interpreter has an answer soon."""
    sizes = draw_sizes(random, sample.dims)
    while _points(sample, sizes) > POINTS:
        largest = max(sizes, key=lambda name: sizes[name])
        sizes[largest] = random.choice([n for n in (1, 2, 3, 4, 5, 7, 8, 9) if n < sizes[largest]])
    return sizes


def _points(sample: Sample, sizes: dict[str, int]) -> int:
    from tensorlang.ir.affine import evaluate

    definition = sample.operator.definition()
    values = {size: sizes[size.name] for size in definition.sizes}
    total = 0
    for stage in definition.stages:
        volume = 1
        for axis in stage.all_axes:
            volume *= max(0, evaluate(axis.extent, values))
        total += volume
    return total


def _check_call(
    account: Account,
    sample: Sample,
    schedule: Any,
    functions: dict[str, Any],
    sizes: dict[str, int],
    arguments: list[Any],
) -> None:
    expected = _outcome(lambda: sample.operator.reference(*arguments))
    if not isinstance(expected, Exception):
        _check_reference(account, sample, sizes, arguments, expected)
    runs: dict[str, Any] = {"interpreter": lambda: interpret(schedule.program, arguments)}
    for name, function in functions.items():
        if function is not None:
            runs[name] = lambda function=function: function(*arguments)
    for name, run in runs.items():
        found = _outcome(run)
        conditions = schedule.program.conditions if name != "default schedule" else ()
        text = _judge(sample, expected, found, bool(conditions))
        if (
            isinstance(expected, IndexError)
            and not isinstance(found, Exception)
            and _needs_nothing_outside(sample, sizes, arguments, found)
        ):
            text = None
        if text is None:
            if isinstance(found, Exception):
                account.errors[type(found).__name__] += 1
            else:
                account.runs += 1
        else:
            account.faults.append(Fault(name, f"sizes {sizes}: {text}"))


def _check_reference(
    account: Account, sample: Sample, sizes: dict[str, int], arguments: list[Any], expected: Any
) -> None:
    """Compare the reference with what plain Python makes of the operator's text."""
    try:
        text = disagreement(sample.outputs, expected, run_plain(sample, sizes, arguments))
    except Empty:
        return
    except Exception:
        text = traceback.format_exc()
    if text is None:
        account.plain += 1
    else:
        account.faults.append(Fault("reference", f"sizes {sizes}: {text}"))


def _needs_nothing_outside(
    sample: Sample, sizes: dict[str, int], arguments: list[Any], found: Any
) -> bool:
    """Tell whether a result is right whatever stands where the reference finds no element.

    A stage that is moved to its readers is computed where they need it, and fails only there.
    """
    try:
        results = [run_plain(sample, sizes, arguments, outside) for outside in (0, 1, 3)]
    except Empty:
        return True  # cannot be told
    return all(disagreement(sample.outputs, result, found) is None for result in results)


def _outcome(run: Any) -> Any:
    try:
        return run()
    except Exception as error:
        return error


def _judge(sample: Sample, expected: Any, found: Any, may_refuse: bool) -> str | None:
    if may_refuse and isinstance(found, ValueError):
        return None
    if isinstance(expected, Exception):
        alike = (IndexError, ValueError)
        if any(isinstance(found, kind) and isinstance(expected, kind) for kind in alike):
            return None
        return f"{_shown(found)}, but the reference raises {_shown(expected)}"
    if isinstance(found, Exception):
        return f"raises {_shown(found)}"
    return disagreement(sample.outputs, expected, found)


def _shown(outcome: Any) -> str:
    if not isinstance(outcome, Exception):
        return "there is a result"
    return "".join(traceback.format_exception(outcome)[-4:])


def interpret(program: Any, arguments: list[Any]) -> Any:
    """Run the scheduled program in the interpreter, as a call would."""
    definition = program.definition
    count = len(definition.inputs)
    arrays = dict(zip(definition.inputs, arguments[:count], strict=True))
    sizes = bind_sizes(definition, {tensor: array.shape for tensor, array in arrays.items()})
    scalars = dict(zip(definition.scalars, arguments[count:], strict=True))
    results = run_program(place_inits(program), arrays, sizes, scalars)
    found = tuple(results[tensor] for tensor in definition.outputs)
    return found[0] if len(found) == 1 else found


def describe(account: Account) -> str:
    """Return the text from which a fault can be understood."""
    lines = [f"seed {account.seed}", account.operator, account.steps]
    lines += [f"--- {fault.kind}\n{fault.text}" for fault in account.faults]
    return "\n".join(lines)
