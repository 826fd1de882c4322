"""Which stages are computed together: each group has an anchor whose outer loops the others join.

A stage joins its readers' group when they read it, along the anchor's leading axes, at the same
positions or a few neighbouring ones: the rows of a softmax (the same row), the strips of a stencil
(some rows more). ``Group.depth`` axes are shared exactly; if ``halo`` is not None, the next axis
is shared in strips, of which each member computes up to ``halo`` positions more. The last axis is
never shared position by position: that would leave no loop to run in vectors.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from tensorlang.ir.affine import Affine, Var, affine, linear_coefficient
from tensorlang.ir.definition import Stage
from tensorlang.ir.program import Program
from tensorlang.schedule.rules.convolution import is_wide
from tensorlang.schedule.rules.kinds import as_contraction, is_map, is_window, reads
from tensorlang.schedule.rules.machine import Machine
from tensorlang.schedule.rules.windows import as_convolution
from tensorlang.schedule.tree import nest_of

_MAX_HALO = 64


@dataclass(frozen=True, slots=True)
class Group:
    """An anchor and the stages that join it, in order of computation.

    An anchor that is a contraction has no members, but may have an ``epilogue``: the map that
    alone reads it, element by element, in whose tiles it is computed. One that is a convolution may
    have a ``padding``: the map that makes the image that it alone reads.
    """

    anchor: Stage
    members: tuple[Stage, ...]
    depth: int = 0
    halo: int | None = None
    epilogue: Stage | None = None
    padding: Stage | None = None
    is_convolution: bool = False


def group_stages(program: Program, machine: Machine) -> list[Group]:
    """Return the groups in the order in which they are computed."""
    stages = [stage for stage in program.stages if nest_of(program.body, stage) is not None]
    outputs = program.definition.outputs
    group_of: dict[int, _Growing] = {}
    for stage in reversed(stages):
        readers = [other for other in stages if other is not stage and reads(other, stage)]
        groups = {id(group_of[id(reader)]): group_of[id(reader)] for reader in readers}
        group = next(iter(groups.values())) if len(groups) == 1 else None
        is_output = any(tensor in outputs for tensor in stage.tensors)
        if group is not None and not is_output and group.accepts(stage, readers):
            group.add(stage, readers)
        elif group is not None and not is_output and group.ends(stage):
            group.contraction = stage
        elif group is not None and not is_output and group.begins(stage, readers):
            group.padding = stage
        else:
            group = _Growing(stage, machine)
        group_of[id(stage)] = group
    return [
        group
        for stage in stages
        if group_of[id(stage)].anchor is stage
        for group in _spread(group_of[id(stage)].finished(stages), machine)
    ]


def _spread(group: Group, machine: Machine) -> list[Group]:
    """Return a group of maps as one group each, if its shared loops cannot occupy the cores."""
    stages = (*group.members, group.anchor)
    extents = [axis.extent for axis in group.anchor.axes[: group.depth]]
    known = group.halo is None and all(extent.is_constant for extent in extents)
    if not group.members or not known or not all(map(is_map, stages)):
        return [group]
    if prod(extent.constant for extent in extents) >= machine.cores:
        return [group]
    return [Group(stage, ()) for stage in stages]


class _Growing:
    """A group while stages are added, readers before what they read.

    ``reach[stage][axis]`` is how many positions more than the anchor's the stage computes along a
    leading axis; the list ends before the first axis that is not shared.
    """

    def __init__(self, anchor: Stage, machine: Machine) -> None:
        self.anchor = anchor
        self.machine = machine
        self.padding: Stage | None = None
        self.members: list[Stage] = []
        self.contraction: Stage | None = None
        self.reach: dict[int, list[int]] = {id(anchor): [0] * len(anchor.axes)}

    def accepts(self, stage: Stage, readers: list[Stage]) -> bool:
        if _is_product(stage) or _is_product(self.anchor):
            return False
        if self.contraction is not None:
            return False
        if stage.is_recurrence or self.anchor.is_recurrence or not stage.axes:
            return False
        if stage.routine is not None or self.anchor.routine is not None:
            return False
        reach = self._reach(stage, readers)
        if not reach or reach[0] > _MAX_HALO:
            return False
        recomputed = any(reach[: self._shared(reach)])
        return not recomputed or not stage.is_reduction or is_window(stage)

    def ends(self, stage: Stage) -> bool:
        """Tell whether the anchor is all that happens to the results of a contraction."""
        if not _is_product(stage) or self.contraction is not None or self.members:
            return False
        return is_map(self.anchor) and _is_pointwise(self.anchor, stage)

    def begins(self, stage: Stage, readers: list[Stage]) -> bool:
        """Tell whether a stage makes the image of the group's convolution, and nothing else."""
        last = self._convolution()
        if last is None or self.padding is not None or not is_map(stage) or readers != [last]:
            return False
        convolution = as_convolution(last)
        return convolution is not None and reads(last, stage) == [convolution.image]

    def _convolution(self) -> Stage | None:
        stage = self.anchor if self.contraction is None else self.contraction
        convolution = as_convolution(stage)
        if convolution is None or not is_wide(stage, convolution, self.machine):
            return None
        return stage

    def add(self, stage: Stage, readers: list[Stage]) -> None:
        self.reach[id(stage)] = self._reach(stage, readers)
        self.members.append(stage)

    def _shared(self, reach: list[int]) -> int:
        """Return how many leading axes are shared, one in strips at most."""
        for axis, positions in enumerate(reach):
            if positions:
                return axis + 1 if positions <= _MAX_HALO else axis
        return len(reach)

    def _reach(self, stage: Stage, readers: list[Stage]) -> list[int]:
        found: list[int] | None = None
        for reader in readers:
            known = self.reach[id(reader)]
            for load in reads(reader, stage):
                here: list[int] = []
                for axis, index in enumerate(load.indices[: len(known)]):
                    offsets = _offsets(index, reader.axes[axis].variable, reader)
                    if offsets is None:
                        break
                    here.append(known[axis] + offsets[1] - offsets[0] + abs(offsets[0]))
                found = here if found is None else _wider(found, here)
        return found or []

    def finished(self, stages: list[Stage]) -> Group:
        if self.contraction is not None:
            return Group(
                self.contraction,
                (),
                epilogue=self.anchor,
                padding=self.padding,
                is_convolution=self._convolution() is not None,
            )
        members = tuple(stage for stage in stages if stage in self.members)
        if not members:
            is_convolution = self._convolution() is not None
            return Group(self.anchor, (), padding=self.padding, is_convolution=is_convolution)
        shared = min(len(self.reach[id(member)]) for member in members)
        widths = [max(self.reach[id(m)][axis] for m in members) for axis in range(shared)]
        depth = next((axis for axis, width in enumerate(widths) if width), shared)
        halo = widths[depth] if depth < shared and widths[depth] <= _MAX_HALO else None
        if depth == len(self.anchor.axes):  # a strip of the last axis, so that vectors remain
            depth, halo = depth - 1, 0
        return Group(self.anchor, members, depth, halo)


def _is_product(stage: Stage) -> bool:
    return as_contraction(stage) is not None or as_convolution(stage) is not None


def _is_pointwise(reader: Stage, stage: Stage) -> bool:
    """Tell whether each element of the reader comes from the stage's element at the same place."""
    extents = [axis.extent for axis in reader.axes]
    here = tuple([affine(axis.variable) for axis in reader.axes])
    same = extents == [axis.extent for axis in stage.axes]
    return same and all(load.indices == here for load in reads(reader, stage))


def _wider(one: list[int], other: list[int]) -> list[int]:
    return [max(a, b) for a, b in zip(one, other, strict=False)]


def _offsets(index: Affine, axis: Var, reader: Stage) -> tuple[int, int] | None:
    """Return the least and greatest offset of an index from an axis of the reader."""
    if linear_coefficient(index, axis) != 1:
        return None
    low = high = index.constant
    extents = {a.variable: a.extent for a in reader.reduction_axes}
    for atom, coef in index.terms:
        if atom is axis:
            continue
        extent = extents.get(atom) if isinstance(atom, Var) else None
        if extent is None or not extent.is_constant:
            return None
        reach = coef * max(0, extent.constant - 1)
        low, high = low + min(0, reach), high + max(0, reach)
    return low, high
