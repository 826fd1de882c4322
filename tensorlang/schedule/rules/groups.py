"""Which stages are computed together: each group has an anchor whose outer loop the others join.

A stage joins its readers' group when they read, for one position of the anchor's first axis, a few
neighbouring positions of the stage's first axis: the rows of a softmax (the same row), the strips
of a stencil (some rows more).
"""

from __future__ import annotations

from dataclasses import dataclass

from tensorlang.ir.affine import Affine, Var, linear_coefficient
from tensorlang.ir.definition import Stage
from tensorlang.ir.program import Program
from tensorlang.schedule.rules.kinds import as_contraction, reads

_MAX_HALO = 64


@dataclass(frozen=True, slots=True)
class Group:
    """An anchor and the stages that join it, in order of computation; ``halo`` in rows."""

    anchor: Stage
    members: tuple[Stage, ...]
    halo: int


def group_stages(program: Program) -> list[Group]:
    """Return the groups in the order in which they are computed."""
    outputs = program.definition.outputs
    stages = [stage for stage in program.stages if not _is_gone(program, stage)]
    anchor_of: dict[int, Stage] = {}
    halo_of: dict[int, int] = {}
    for stage in reversed(stages):
        anchor_of[id(stage)], halo_of[id(stage)] = stage, 0
        readers = [other for other in stages if reads(other, stage) and other is not stage]
        anchors = {id(anchor_of[id(reader)]): anchor_of[id(reader)] for reader in readers}
        is_output = any(tensor in outputs for tensor in stage.tensors)
        if len(anchors) != 1 or is_output or not _may_join(stage):
            continue
        (anchor,) = anchors.values()
        halos = [_halo(reader, stage) for reader in readers]
        known = [halo for halo in halos if halo is not None]
        if len(known) != len(halos) or as_contraction(anchor) is not None:
            continue
        total = max(halo + halo_of[id(reader)] for halo, reader in zip(known, readers, strict=True))
        if total <= _MAX_HALO and (total == 0 or not stage.is_reduction or _is_small(stage)):
            anchor_of[id(stage)], halo_of[id(stage)] = anchor, total
    groups: list[Group] = []
    for stage in stages:
        if anchor_of[id(stage)] is stage:
            members = [s for s in stages if anchor_of[id(s)] is stage and s is not stage]
            halo = max((halo_of[id(member)] for member in members), default=0)
            groups.append(Group(stage, tuple(members), halo))
    return groups


def _is_gone(program: Program, stage: Stage) -> bool:
    """Whether a stage has been inlined away."""
    from tensorlang.schedule.tree import nest_of

    return nest_of(program.body, stage) is None


def _may_join(stage: Stage) -> bool:
    return bool(stage.axes) and as_contraction(stage) is None and not stage.is_recurrence


def _is_small(stage: Stage) -> bool:
    """Whether a reduction is over a small constant window, cheap to repeat in a halo."""
    points = 1
    for axis in stage.reduction_axes:
        if not axis.extent.is_constant:
            return False
        points *= axis.extent.constant
    return points <= _MAX_HALO


def _halo(reader: Stage, stage: Stage) -> int | None:
    """Return how many more rows of ``stage`` one row of ``reader`` needs; None if not a few."""
    if not reader.axes:
        return None
    first = reader.axes[0].variable
    offsets: list[int] = []
    for load in reads(reader, stage):
        interval = _offsets(load.indices[0], first, reader)
        if interval is None:
            return None
        offsets.extend(interval)
    return max(offsets) - min(offsets)


def _offsets(index: Affine, first: Var, reader: Stage) -> tuple[int, int] | None:
    """Return the least and greatest offset of a row index from the reader's first axis."""
    if linear_coefficient(index, first) != 1:
        return None
    low = high = index.constant
    extents = {axis.variable: axis.extent for axis in reader.reduction_axes}
    for atom, coef in index.terms:
        if atom is first:
            continue
        extent = extents.get(atom) if isinstance(atom, Var) else None
        if extent is None or not extent.is_constant:
            return None
        reach = coef * max(0, extent.constant - 1)
        low, high = low + min(0, reach), high + max(0, reach)
    return low, high
