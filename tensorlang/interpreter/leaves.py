"""The statements that compute: an instance of a stage, a store to flat buffers.

Input:  ``C[i, j] += A[i, k] * B[k, j]  # if i < M`` (an update)
Output: the guard, the values of the stage's variables, the state read, the values combined, and
        the result stored
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from tensorlang.dtypes import DType, evaluation_dtype
from tensorlang.interpreter.accesses import Element, Origin, claim, commit, locate, read
from tensorlang.interpreter.arithmetic import widen
from tensorlang.interpreter.context import Context, Place, Storage
from tensorlang.interpreter.conversions import rounding_to, scalar_cast
from tensorlang.interpreter.expressions import write_forms, write_values
from tensorlang.interpreter.failures import InterpreterError
from tensorlang.interpreter.forms import condition_text, form_text
from tensorlang.interpreter.routines import write_routine
from tensorlang.ir.definition import Combiner
from tensorlang.ir.expr import Const, Expr
from tensorlang.ir.lowered import Store
from tensorlang.ir.program import Compute


def write_compute(context: Context, compute: Compute) -> list[Storage]:
    """Write an instance; return the storages that it writes, in the order of its tensors."""
    stage, combiner = compute.stage, compute.stage.combiner
    if combiner is not None and compute.part == "whole":
        raise InterpreterError(f"{stage.name} is a reduction whose init is not placed yet")
    targets = [_target(context, compute.redirect(t), stage.name) for t in stage.tensors]
    with _instance(context, compute) as origin:
        rank = len(stage.axes)
        elements = [
            locate(context, target, origin.values[:rank], origin, "writes") for target in targets
        ]
        roots: tuple[Expr, ...]
        if stage.routine is not None:
            roots = (Const(0, stage.tensor.dtype),)  # only its dtype matters
            texts = (write_routine(context, compute, origin, elements[0]),)
        elif combiner is None:
            roots = stage.values
            moves = stage.copies is not None
            texts = write_values(context, origin, roots, redirect=compute.redirect, moves=moves)
        elif compute.part == "init":
            roots = combiner.identity
            texts = write_values(context, origin, roots)
        else:
            roots = combiner.result
            texts = _combined(context, compute, combiner, origin, elements)
        _store(context, elements, roots, texts)
    return targets


def _combined(
    context: Context,
    compute: Compute,
    combiner: Combiner,
    origin: Origin,
    elements: list[Element],
) -> tuple[str, ...]:
    """Write an update: read the state, compute the values, combine the two."""
    states = [_read_state(context, element) for element in elements]
    values = write_values(context, origin, compute.stage.values, redirect=compute.redirect)
    placeholders = dict(zip(combiner.left, states, strict=True))
    placeholders |= zip(combiner.right, values, strict=True)
    return write_values(context, origin, combiner.result, placeholders)


def _read_state(context: Context, element: Element) -> str:
    state = read(context, element)
    if evaluation_dtype(element.storage.dtype) is element.storage.dtype:
        return state
    return f"{context.writer.constant(widen)}({state})"


@contextmanager
def _instance(context: Context, compute: Compute) -> Generator[Origin, None, None]:
    """Write the guard and give values to the stage's variables."""
    stage, writer = compute.stage, context.writer
    axes = stage.axes if compute.part == "init" else stage.all_axes
    if len(axes) != len(compute.binding):
        raise InterpreterError(
            f"{stage.name} binds {len(compute.binding)} of its {len(axes)} variables"
        )
    names = [writer.fresh("a") for _ in axes]
    with writer.block(f"if {condition_text(compute.guard, context.names)}:"):
        for name, form in zip(names, compute.binding, strict=True):
            writer.line(f"{name} = {form_text(form, context.names)}")
        outer = context.names
        variables = [axis.variable for axis in axes]
        context.names = {**outer, **dict(zip(variables, names, strict=True))}
        part = "" if compute.part == "whole" else compute.part
        yield Origin(stage.name, tuple(v.name for v in variables), tuple(names), part)
        context.names = outer


def write_store(context: Context, store: Store) -> list[Storage]:
    """Write a store of a lowered program; return the storages that it writes."""
    left = ", ".join(f"{buffer.name}[{offset}]" for buffer, offset in store.targets)
    variables = tuple([v.name for v in context.visible])
    values = tuple([context.name(v) for v in context.visible])
    origin = Origin(left, variables, values)
    targets = [_target(context, buffer, left) for buffer, _ in store.targets]
    texts = write_values(context, origin, store.values, moves=True)
    places = write_forms(context, origin, tuple([offset for _, offset in store.targets]))
    elements = [
        locate(context, target, (place,), origin, "writes")
        for target, place in zip(targets, places, strict=True)
    ]
    _store(context, elements, store.values, texts)
    return targets


def _target(context: Context, place: Place, statement: str) -> Storage:
    storage = context.storages.get(place)
    if storage is None:
        raise InterpreterError(f"{statement} writes {place}, which has no storage")
    if storage.is_input:
        raise InterpreterError(f"{statement} writes the input {place}")
    return storage


def _store(
    context: Context, elements: list[Element], values: tuple[Expr, ...], texts: tuple[str, ...]
) -> None:
    writes: list[tuple[Element, str]] = []
    for element, value, text in zip(elements, values, texts, strict=True):
        claim(context, element)
        writes.append((element, _stored(context, text, value.dtype, element.storage.dtype)))
    commit(context, writes)


def _stored(context: Context, text: str, source: DType, dtype: DType) -> str:
    """Return the source of a value as the storage holds it."""
    if evaluation_dtype(source) is not evaluation_dtype(dtype):
        text = f"{context.writer.constant(scalar_cast(source, dtype))}({text})"
    if evaluation_dtype(dtype) is dtype:
        return text
    rounded = context.writer.constant(rounding_to(dtype))
    return f"{rounded}({text})"
