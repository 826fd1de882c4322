"""Run a kernel the way a GPU does: each thread by itself, in a random order, waiting at barriers.

Knows nothing of the passes: a thread is a coroutine over the kernel's statements that gives way
after each store. Only small grids, and the few functions that the test kernels use.
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from tensorlang.ir.affine import Var, evaluate
from tensorlang.ir.expr import Call, Cast, Const, Expr, IndexValue, Select
from tensorlang.ir.lowered import Allocate, Buffer, FlatLoad, Store
from tensorlang.ir.program import Barrier, For, If, Seq, Stmt
from tensorlang.lower.kernel import Kernel

FUNCTIONS = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "maximum": np.maximum,
    "exp": np.exp,
    "ge": np.greater_equal,
    "and": np.logical_and,
}
BARRIER, STORE = "barrier", "store"
Values = dict[Var, int]
Memory = dict[Buffer, Any]


def run_kernel(
    kernel: Kernel, inputs: Sequence[Any], sizes: Mapping[Var, int], seed: int = 0
) -> list[Any]:
    """Return the outputs, flat; elements that nobody writes are NaN."""
    generator = random.Random(seed)
    memory = {b: np.asarray(a).reshape(-1) for b, a in zip(kernel.inputs, inputs, strict=True)}
    for buffer in kernel.outputs:
        memory[buffer] = _fresh(buffer, sizes)
    grid = [range(evaluate(extent, sizes)) for extent in kernel.grid]
    blocks = list(product(*grid))
    generator.shuffle(blocks)
    for block in blocks:
        _run_block(
            kernel, memory, {**sizes, **dict(zip(kernel.blocks, block, strict=True))}, generator
        )
    return [memory[buffer] for buffer in kernel.outputs]


def _fresh(buffer: Buffer, values: Mapping[Var, int]) -> Any:
    return np.full(max(evaluate(buffer.size, values), 0), np.nan, np.float32)


def _run_block(kernel: Kernel, memory: Memory, values: Values, generator: random.Random) -> None:
    memory = {**memory, **{buffer: _fresh(buffer, values) for buffer in kernel.shared}}
    threads = []
    for place in product(*map(range, kernel.block)):
        own = {**values, **dict(zip(kernel.threads, place, strict=True))}
        threads.append(_steps(kernel.body, dict(memory), own))
    running, waiting = list(threads), []
    while running or waiting:
        if not running:
            running, waiting = waiting, []
            assert len(running) == len(threads), "a barrier that not all threads reach"
        thread = running.pop(generator.randrange(len(running)))
        event = next(thread, None)
        if event == STORE:
            running.append(thread)
        elif event == BARRIER:
            waiting.append(thread)
        else:
            threads.remove(thread)
            assert not waiting, "a thread ended while others wait at a barrier"


def _steps(stmt: Stmt, memory: Memory, values: Values) -> Iterator[str]:
    match stmt:
        case Seq():
            for child in stmt.stmts:
                yield from _steps(child, memory, values)
        case For():
            for position in range(evaluate(stmt.extent, values)):
                yield from _steps(stmt.body, memory, {**values, stmt.variable: position})
        case If():
            holds = all(evaluate(form, values) >= 0 for form in stmt.condition)
            branch = stmt.then if holds else stmt.otherwise
            if branch is not None:
                yield from _steps(branch, memory, values)
        case Allocate():
            inside = {**memory, stmt.buffer: _fresh(stmt.buffer, values)}
            yield from _steps(stmt.body, inside, values)
        case Barrier():
            yield BARRIER
        case Store():
            results = [_value(value, memory, values) for value in stmt.values]
            for (buffer, offset), result in zip(stmt.targets, results, strict=True):
                memory[buffer][_inside(offset, memory[buffer], values)] = result
            yield STORE
        case _:
            raise TypeError(type(stmt).__name__)


def _inside(offset: Any, array: Any, values: Values) -> int:
    place = evaluate(offset, values)
    assert 0 <= place < len(array), f"{offset} = {place} leaves a buffer of {len(array)}"
    return place


def _value(expr: Expr, memory: Memory, values: Values) -> Any:
    match expr:
        case Const():
            return np.float32(expr.value)
        case FlatLoad():
            return memory[expr.buffer][_inside(expr.offset, memory[expr.buffer], values)]
        case IndexValue():
            return evaluate(expr.index, values)
        case Cast():
            return _value(expr.operand, memory, values)
        case Select():
            chosen = expr.then if _value(expr.condition, memory, values) else expr.otherwise
            return _value(chosen, memory, values)
        case Call():
            args = [_value(arg, memory, values) for arg in expr.args]
            return FUNCTIONS[expr.function](*args)
        case _:
            raise TypeError(type(expr).__name__)
