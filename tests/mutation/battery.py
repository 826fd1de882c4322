"""The three nets: the proof, the interpreter, and compiled code beside NumPy.

Input:  the name of a case
Output: for each net, whether it noticed anything; a process that dies was noticed too
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any

import numpy as np

import tensorlang as tl
from tensorlang.interpreter.run import run_lowered, run_program
from tensorlang.ir.affine import evaluate
from tensorlang.lang.binding import bind_sizes
from tensorlang.lower.pipeline import lower
from tensorlang.schedule.place_inits import place_inits
from tests.fuzz.memory import fenced
from tests.mutation.cases import CASES, Case
from tests.mutation.mutate import Mutation, applied

NETS = ("proof", "interpreter", "property test")
SECONDS = 60


def notices(mutation: Mutation | None, cases: tuple[str, ...]) -> dict[str, str]:
    """Return which nets notice something in the cases, and what; in a process of its own."""
    context = multiprocessing.get_context("forkserver")  # a fork of a process without threads
    context.set_forkserver_preload([__name__])
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(mutation, cases, sender))
    process.start()
    sender.close()
    found: dict[str, str] = {}
    net, done = NETS[0], False
    try:
        while not done and receiver.poll(SECONDS):
            net, text = receiver.recv()
            done = net == "done"
            if text and not done:
                found.setdefault(net, text)
    except EOFError:
        pass
    if not done:
        found.setdefault(net, "the process died or hung")
        process.kill()
    process.join()
    return found


def _work(mutation: Mutation | None, cases: tuple[str, ...], sender: Any) -> None:
    with nullcontext() if mutation is None else applied(mutation):
        for name in cases:
            for net, check in _checks(CASES[name]):
                sender.send((net, ""))  # it begins: should the process die, it died here
                sender.send((net, check()))
    sender.send(("done", ""))


def _checks(case: Case) -> Iterator[tuple[str, Callable[[], str]]]:
    try:
        schedule = case.schedule()
    except tl.ScheduleError as error:
        text = "" if case.refused else f"refused: {_first_line(error)}"
        yield "proof", lambda: text
        return
    yield "proof", lambda: _prove(schedule)
    for arguments in case.arguments:
        yield "interpreter", lambda a=arguments: _compare(case, a, lambda: _interpret(schedule, a))
    yield "property test", lambda: _run(case, schedule)


def _prove(schedule: tl.Schedule) -> str:
    try:
        schedule.verify()
    except Exception as error:
        return _first_line(error)
    return ""


def _run(case: Case, schedule: tl.Schedule) -> str:
    try:
        function = tl.compile(schedule, verify=False, opt_level=1)
    except Exception as error:
        return _first_line(error)
    for arguments in case.arguments:
        text = _compare(case, arguments, lambda a=arguments: [_call(function, a)])
        if text:
            return text
    return ""


def _call(function: Any, arguments: list[Any]) -> Any:
    """Call with a result to fill that lies against a page that may not be touched."""
    result = function(*arguments)
    return function(*arguments, out=fenced(np.zeros_like(result)))


def _compare(case: Case, arguments: list[Any], run: Callable[[], list[Any]]) -> str:
    """Return how results differ from NumPy's, or from the error that is right here."""
    try:
        expected, right = case.expected(*arguments), None
    except Exception as error:
        expected, right = None, type(error)
    try:
        results = run()
    except Exception as error:
        return "" if right is not None and isinstance(error, right) else _first_line(error)
    if right is not None:
        return f"no {right.__name__}"
    for result in results:
        if result.shape != expected.shape or not np.array_equal(result, expected, equal_nan=True):
            return f"{result.tolist()} instead of {expected.tolist()}"[:200]
    return ""


def _interpret(schedule: tl.Schedule, arguments: list[Any]) -> list[Any]:
    """Return the result of the scheduled program and of the lowered one."""
    program = schedule.program
    definition = program.definition
    arrays = dict(zip(definition.inputs, arguments, strict=True))
    shapes = {tensor: array.shape for tensor, array in arrays.items()}
    sizes = bind_sizes(definition, shapes)
    (output,) = definition.outputs
    scheduled = run_program(place_inits(program), arrays, sizes)[output]
    if any(stride < 0 for array in arrays.values() for stride in array.strides):
        return [scheduled]  # the lowered program would read before the first element
    layouts = {tensor: _layout(array) for tensor, array in arrays.items()}
    lowered = lower(program, layouts)
    strides = [
        array.strides[axis] // array.itemsize
        for tensor, array in arrays.items()
        for axis in range(array.ndim)
        if layouts[tensor] == "any"
    ]
    values = [*[sizes[size] for size in definition.sizes], *strides]
    shape = tuple(evaluate(extent, sizes) for extent in output.shape)
    return [scheduled, *run_lowered(lowered, arguments, (), values, [shape])]


def _layout(array: Any) -> Any:
    return "contiguous" if array.flags.c_contiguous else "any"


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0]
