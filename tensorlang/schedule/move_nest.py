"""A stage's loops, as they were split, ordered and vectorized, around another box of the stage.

Input (rows of a blur, j split)                 Output, over the box ``(3, W) at [i, 0]``
::

    for i in H + 2:                                 for i' in 3:
        for j.o in (W + 7) // 8:                        for j.o in (W + 7) // 8:
            vectorized for j.i in 8:                        vectorized for j.i in 8:
                rows[i, 8 * j.o + j.i] = ...                    rows[i + i', 8 * j.o + j.i] = ...

The loops of an axis count positions in mixed radix: the inner ones a fixed number each, the
outermost as many blocks as the box needs. So a nest that ``split``, ``tile``, ``reorder`` and the
kinds of loops have made fits any box by that one number and by the guard of the last block.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tensorlang.ir.affine import ONE, ZERO, Affine, Var, affine, substitute, variables_of
from tensorlang.ir.definition import Stage
from tensorlang.ir.interval import Extents
from tensorlang.ir.program import Compute, For, LoopKind, Program, Stmt
from tensorlang.schedule.boxes import Box
from tensorlang.schedule.guards import inside_tensor, is_implied
from tensorlang.schedule.tree import find_alloc, nest_of, places_of

KINDS: tuple[LoopKind, ...] = ("serial", "parallel", "vectorized", "unrolled")


Digit = tuple[int, For]


@dataclass(frozen=True, slots=True)
class Axis:
    """The loops of one data axis: ``(12, i.o)`` over blocks, ``(4, i.i.o), (1, i.i.i)`` inside.

    A box of one position has no loops.
    """

    outermost: Digit | None
    inner: tuple[Digit, ...]

    @property
    def position(self) -> Affine:
        """The position inside the box, as a form over the loops."""
        return self.above(1)

    def above(self, step: int) -> Affine:
        """Return the start of the block of ``step`` positions in which the position lies."""
        digits = self.inner if self.outermost is None else (self.outermost, *self.inner)
        return sum((affine(loop.variable) * size for size, loop in digits if size >= step), ZERO)


@dataclass(frozen=True, slots=True)
class Nest:
    """A chain of loops around one statement, taken apart."""

    loops: tuple[For, ...]
    compute: Compute
    axes: tuple[Axis, ...]
    kept: tuple[Affine, ...]  # guards that speak of inner and of reduction loops alone

    def over(self, box: Box, guard: tuple[Affine, ...]) -> Stmt:
        """Return the nest over ``box``; ``guard`` holds over the stage's own variables."""
        stage = self.compute.stage
        reduction = zip(stage.reduction_axes, self.compute.binding[len(self.axes) :], strict=True)
        mapping = {axis.variable: form for axis, form in reduction}
        extents: dict[Var, Affine] = {loop.variable: loop.extent for loop in self.loops}
        dropped: set[Var] = set()
        tails: list[Affine] = []
        missing: list[For] = []
        for own, axis, (origin, extent) in zip(self.axes, stage.axes, box, strict=True):
            mapping[axis.variable] = origin + own.position
            if own.outermost is None:
                if extent != ONE:  # a box of one row had no loop
                    name = Var(axis.variable.name)
                    missing.append(For(name, extent, "serial", self.compute, owner=stage.name))
                    mapping[axis.variable] = origin + name
                continue
            size, outermost = own.outermost
            if extent == ONE != axis.extent and (size, outermost.kind) == (1, "serial"):
                dropped.add(outermost.variable)  # one row of a box needs no loop
            extents[outermost.variable] = (extent + (size - 1)) // size
            if extent % size != ZERO:
                tails.append(extent - 1 - own.position)
        needed = [substitute(form, mapping) for form in (*guard, *stage.predicate)]
        needed += [form for form in tails if not is_implied(form, tuple(needed), extents)]
        without = dict.fromkeys(dropped, ZERO)
        forms = dict.fromkeys(substitute(form, without) for form in (*self.kept, *needed))
        binding = tuple(substitute(mapping[v], without) for v in stage.variables)
        body: Stmt = replace(self.compute, binding=binding, guard=tuple(forms))
        for loop in reversed((*missing, *self.loops)):
            if loop.variable not in dropped:
                body = replace(loop, extent=extents.get(loop.variable, loop.extent), body=body)
        return body


def find_nest(program: Program, stage: Stage) -> Nest | None:
    """Return the loops of ``stage`` if they can be moved; None where more than splits made them.

    Such are fused and peeled loops, shifted and padded blocks, blocks of more iterations than there
    are, copies, GPU loops, routines.
    """
    alloc = find_alloc(program.body, stage.tensor)
    stmt = nest_of(program.body, stage)
    if alloc is None or stmt is None or stage.routine is not None:
        return None
    if sum(place.compute.stage is stage for place in places_of(program.body)) != 1:
        return None
    loops: list[For] = []
    while isinstance(stmt, For):
        if stmt.owner != stage.name or stmt.kind not in KINDS:
            return None
        loops.append(stmt)
        stmt = stmt.body
    if not isinstance(stmt, Compute) or stmt.via or stmt.part != "whole":
        return None
    by_variable = {loop.variable: loop for loop in loops}
    axes: list[Axis] = []
    for form, origin, extent in zip(stmt.binding, alloc.origin, alloc.shape, strict=False):
        axis = _read_axis(form - origin, extent, by_variable)
        if axis is None:
            return None
        axes.append(axis)
    used = [v for axis in axes for v in variables_of(axis.position)]
    if len(set(used)) != len(used):
        return None
    sizes = set(program.definition.sizes)
    kept = _read_guards(stmt, tuple(axes), alloc.shape, by_variable, sizes)
    return None if kept is None else Nest(tuple(loops), stmt, tuple(axes), kept)


def _read_axis(position: Affine, extent: Affine, loops: dict[Var, For]) -> Axis | None:
    """Return the loops of a position in mixed radix; None if it is anything else."""
    digits: list[Digit] = []
    for atom, size in position.terms:
        if not isinstance(atom, Var) or atom not in loops or size < 1:
            return None
        digits.append((size, loops[atom]))
    digits.sort(key=lambda digit: (-digit[0], digit[1].extent == ONE))
    if position.constant != 0 or (digits and digits[-1][0] != 1):
        return None
    for digit in digits:
        size, loop = digit
        inner = tuple(other for other in digits if other is not digit)
        moving = [digit, *(other for other in inner if other[1].extent != ONE)]
        if loop.extent in _numbers_of_blocks(extent, size) and all(
            map(_continues, moving, moving[1:])
        ):
            return Axis(digit, inner)
    return None if digits else Axis(None, ())


def _numbers_of_blocks(extent: Affine, size: int) -> tuple[Affine, Affine]:
    """Return how many blocks there are, the last one with a guard; or if ``size`` divides."""
    return (extent + (size - 1)) // size, extent // size


def _continues(coarse: Digit, fine: Digit) -> bool:
    """Tell whether the finer loop covers one step of the coarser one."""
    (size, _), (step, loop) = coarse, fine
    return loop.extent.is_constant and step <= size <= step * loop.extent.constant


def _read_guards(
    compute: Compute,
    axes: tuple[Axis, ...],
    shape: tuple[Affine, ...],
    loops: dict[Var, For],
    sizes: set[Var],
) -> tuple[Affine, ...] | None:
    """Return the guards that do not depend on the box; None if one is not understood.

    Those that keep the last block inside the box, the box inside the tensor, and a reduction
    inside its predicate are made anew.
    """
    stage = compute.stage
    mapping = dict(zip(stage.variables, compute.binding, strict=True))
    anew = {substitute(form, mapping) for form in stage.predicate} | set(inside_tensor(compute))
    outermost: set[Var] = set()
    around: Extents = {loop.variable: loop.extent for loop in loops.values()}
    for axis, extent in zip(axes, shape, strict=True):
        if axis.outermost is None:
            continue
        size, loop = axis.outermost
        anew |= {extent - 1 - axis.above(step) for step, _ in (axis.outermost, *axis.inner)}
        outermost.add(loop.variable)
        guarded, _ = _numbers_of_blocks(extent, size)
        last = extent - 1 - axis.position
        if loop.extent == guarded and not is_implied(last, compute.guard, around):
            return None  # a padded block
    kept: list[Affine] = []
    for form in compute.guard:
        if form in anew:
            continue
        moving = variables_of(form) & set(loops)
        if not moving or moving & outermost or not variables_of(form) <= moving | sizes:
            return None
        kept.append(form)
    return tuple(kept)
