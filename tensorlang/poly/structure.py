"""What the proof takes for granted about a program's form, checked first.

Input:  a program and the stages that it may use
Output: the first fault in words: a reduction without its init placed, a copy that copies nothing,
a redirection to something that is no copy, an input that is written, ...

After this a tensor and its copies form a family around the one tensor that a stage computes (or
the caller supplies), so that a cell of any of them is named by the same logical index.
"""

from __future__ import annotations

from collections.abc import Iterable

from tensorlang.ir.affine import affine
from tensorlang.ir.definition import Stage, Tensor
from tensorlang.ir.expr import Load
from tensorlang.ir.program import Compute, Program
from tensorlang.ir.routines import find_broken_unit
from tensorlang.ir.walk import computes_of
from tensorlang.poly.access import reads_of_stage


class Families:
    """Tensors with their copies: ``C``, ``C.local`` and ``C.acc`` are one family."""

    def __init__(self, copies: Iterable[Stage]) -> None:
        self._parent: dict[Tensor, Tensor] = {}
        for stage in copies:
            if stage.copies is not None:
                self._join(stage.tensor, stage.copies)

    def of(self, tensor: Tensor) -> Tensor:
        """Return the tensor that stands for the family of ``tensor``."""
        while tensor in self._parent:
            tensor = self._parent[tensor]
        return tensor

    def _join(self, left: Tensor, right: Tensor) -> None:
        left, right = self.of(left), self.of(right)
        if left is not right:
            self._parent[left] = right


def families_of(program: Program) -> Families:
    """Return the families of the tensors of a program."""
    return Families(_used_stages(program))


def _used_stages(program: Program) -> tuple[Stage, ...]:
    computes = computes_of(program.body)
    return tuple(dict.fromkeys([*program.stages, *(compute.stage for compute in computes)]))


def find_fault(program: Program, accepted: frozenset[Stage]) -> tuple[str, Compute | None] | None:
    """Return what is wrong with the form of a program, None if nothing is.

    ``accepted`` are the stages known to compute what the definition says (``derivation``).
    """
    broken = find_broken_unit(program.body)
    if broken is not None:
        return f"{broken[0].stage} is not computed as a whole: {broken[1]}", broken[0]
    families = families_of(program)
    makers: dict[Tensor, Stage] = {}
    owners: dict[Tensor, Tensor] = {}
    made = [tensor for stage in accepted for tensor in stage.tensors]
    for tensor in dict.fromkeys([*program.definition.inputs, *made]):
        other = owners.setdefault(families.of(tensor), tensor)
        if other is not tensor:
            return f"{tensor.name} and {other.name} are different, but one is copied over", None
    for compute in computes_of(program.body):
        fault = _compute_fault(program, compute, accepted, families)
        if fault is not None:
            return fault, compute
        stage = compute.stage
        if stage.copies is not None:
            continue
        if any(makers.setdefault(tensor, stage) is not stage for tensor in stage.tensors):
            return f"two stages compute {stage.tensor.name}", compute
    return None


def _compute_fault(
    program: Program, compute: Compute, accepted: frozenset[Stage], families: Families
) -> str | None:
    stage = compute.stage
    if stage.copies is None:
        if stage not in accepted:
            return f"{stage} is not a stage of the definition, and nothing says how it derives"
    elif not _is_copy(stage):
        return f"{stage} claims to copy {stage.copies} but computes something else"
    for tensor in stage.tensors:
        if tensor.shape != tuple(axis.extent for axis in stage.axes):
            return f"the axes of {stage} do not run over {tensor.name}"
        if compute.redirect(tensor) in program.definition.inputs:
            return f"the input {compute.redirect(tensor).name} is written"
    bound = stage.axes if compute.part == "init" else stage.all_axes
    if len(compute.binding) != len(bound):
        return f"the binding of {stage} has {len(compute.binding)} forms for {len(bound)} axes"
    if compute.part == "whole" and stage.is_reduction:
        return f"the init of {stage} is not placed (place_inits comes before the proof)"
    if compute.part != "whole" and not stage.is_reduction:
        return f"{stage} is no reduction and has no {compute.part}"
    return _redirection_fault(compute, families)


def _redirection_fault(compute: Compute, families: Families) -> str | None:
    used = {*compute.stage.tensors, *(read.load.tensor for read in reads_of_stage(compute.stage))}
    for tensor in used:
        target = compute.redirect(tensor)
        if families.of(target) is not families.of(tensor):
            return f"{compute.stage} is redirected from {tensor.name} to {target.name}, no copy"
        if target.dtype is not tensor.dtype or target.shape != tensor.shape:
            return f"{target.name} has another type than {tensor.name}, which it stands for"
    return None


def _is_copy(stage: Stage) -> bool:
    indices = tuple(affine(axis.variable) for axis in stage.axes)
    source = stage.copies
    return (
        source is not None
        and len(stage.tensors) == 1
        and stage.combiner is None
        and stage.values == (Load(source, indices),)
        and stage.tensor.dtype is source.dtype
        and stage.tensor.shape == source.shape
    )
