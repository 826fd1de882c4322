"""Turns a trace into a definition, once the operator's function has returned.

Input:  stages with provisional names, and what the function returned
Output: a ``Definition``: named, without unused stages, every stage with axes of its own

A stage is named after the user's variable that held it, a returned one failing that after the
operator, one from inside another operator ``softmax/e``, a hoisted reduction ``mean.sum``.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import GeneratorType
from typing import cast

from tensorlang.dtypes import evaluation_dtype
from tensorlang.ir.affine import Var, affine
from tensorlang.ir.definition import Axis, Stage, Tensor
from tensorlang.ir.expr import Load, loads_of
from tensorlang.ir.specialize import Replacement, rebuild_stages
from tensorlang.lang.application import as_value
from tensorlang.lang.conversion import convert
from tensorlang.lang.expression import Expression
from tensorlang.lang.mistakes import definition_error
from tensorlang.lang.stages import add_map
from tensorlang.lang.tensor import TensorHandle
from tensorlang.lang.trace import Trace
from tensorlang.lang.values import Value
from tensorlang.source import SourceLocation


def finish(
    trace: Trace, returned: object, location: SourceLocation
) -> tuple[tuple[Stage, ...], tuple[Tensor, ...]]:
    """Return the stages and the outputs of the operator that ``trace`` followed."""
    trace.note_locals()
    outputs = _outputs(trace, returned, location)
    stages = _needed(trace.stages, outputs)
    names = _names(trace, stages, outputs)
    rebuilt, tensors = rebuild_stages(stages, Replacement(), lambda tensor: names[tensor])
    return rebuilt, tuple([tensors[output] for output in outputs])


def _outputs(trace: Trace, returned: object, location: SourceLocation) -> tuple[Tensor, ...]:
    several = isinstance(returned, tuple | list)
    parts = list(cast("Sequence[object]", returned)) if several else [returned]
    if returned is None or not parts:
        raise definition_error(
            f"{trace.name} returns nothing; return a tensor, or a tuple of tensors", location
        )
    outputs: list[Tensor] = []
    for part in parts:
        if not isinstance(part, Expression | int | float):
            kind, cure = type(part).__name__, "return a tensor, or a tuple of tensors"
            if isinstance(part, GeneratorType):
                kind, cure = "a comprehension", "write return tl.tensor(... for i in N)"
            raise definition_error(f"{trace.name} returns {kind}; {cure}", location)
        outputs.append(_output(trace, part, outputs, location))
    return tuple(outputs)


def _output(trace: Trace, part: object, earlier: list[Tensor], location: SourceLocation) -> Tensor:
    if not isinstance(part, TensorHandle):
        handle = add_map(trace, (), (as_value(part),), location)[0]
        name = _variable_of(trace, part)
        if isinstance(part, Value) and handle.tensor.shape == ():
            handle = _unwrapped(trace, part, handle)
        if name is not None:
            trace.local_names.setdefault(handle.tensor, name)
        return handle.tensor
    tensor = part.tensor
    made_here = any(tensor in stage.tensors for stage in trace.stages)
    if made_here and tensor not in earlier:
        return tensor
    axes = tuple([Axis(Var(f"i{n}"), extent) for n, extent in enumerate(tensor.shape)])
    load = Load(tensor, tuple([affine(axis.variable) for axis in axes]))
    value = Value(convert(load, evaluation_dtype(tensor.dtype)), tensor.dtype)
    return add_map(trace, axes, (value,), location)[0].tensor


def _unwrapped(trace: Trace, part: Value, handle: TensorHandle) -> TensorHandle:
    """Return the stage of a lone reduction instead of a copy of its result."""
    from tensorlang.lang.read_reduction import ReductionValue

    if not isinstance(part, ReductionValue) or part.reduction.enclosing:
        return handle
    trace.stages = [stage for stage in trace.stages if handle.tensor not in stage.tensors]
    tensor = part.hoisted_tensors[0]
    if trace.derived_names.get(tensor, (tensor, ""))[0] is None:
        del trace.derived_names[tensor]
    return TensorHandle(tensor, trace)


def _variable_of(trace: Trace, part: object) -> str | None:
    if trace.frame is None:
        return None
    return next((n for n, value in trace.frame.f_locals.items() if value is part), None)


def _needed(stages: list[Stage], outputs: tuple[Tensor, ...]) -> tuple[Stage, ...]:
    wanted = set(outputs)
    kept: list[Stage] = []
    for stage in reversed(stages):
        if not wanted.isdisjoint(stage.tensors):
            kept.append(stage)
            wanted.update([load.tensor for load in loads_of(*stage.values)])
    return tuple(reversed(kept))


def _names(
    trace: Trace, stages: tuple[Stage, ...], outputs: tuple[Tensor, ...]
) -> dict[Tensor, str]:
    tensors = [tensor for stage in stages for tensor in stage.tensors]
    taken = {tensor.name for tensor in trace.inputs} | {scalar.name for scalar in trace.scalars}
    names: dict[Tensor, str] = {}

    def give(tensor: Tensor, wanted: str) -> None:
        name, number = wanted, 0
        while name in taken:
            number += 1
            name = f"{wanted}_{number}"
        taken.add(name)
        names[tensor] = name

    for tensor in tensors:
        own = _own_name(trace, tensor, outputs)
        if own is not None:
            give(tensor, own)
    reader = _first_readers(stages)

    def resolve(tensor: Tensor) -> str:
        if tensor not in names:
            base, suffix = trace.derived_names.get(tensor, (None, "stage"))
            base = reader.get(tensor) if base is None else base
            give(tensor, suffix if base is None else f"{resolve(base)}.{suffix}")
        return names[tensor]

    for tensor in tensors:
        resolve(tensor)
    return names


def _own_name(trace: Trace, tensor: Tensor, outputs: tuple[Tensor, ...]) -> str | None:
    given = trace.given_names.get(tensor) or trace.local_names.get(tensor)
    if given is not None:
        return given
    if tensor in outputs:
        return trace.name if len(outputs) == 1 else f"{trace.name}.{outputs.index(tensor)}"
    return trace.inlined_names.get(tensor)


def _first_readers(stages: tuple[Stage, ...]) -> dict[Tensor, Tensor]:
    """Return, for each tensor, the first tensor of the first stage that reads it."""
    readers: dict[Tensor, Tensor] = {}
    for stage in stages:
        for load in loads_of(*stage.values):
            if load.tensor not in stage.tensors:
                readers.setdefault(load.tensor, stage.tensor)
    return readers
