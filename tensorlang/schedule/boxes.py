"""Which box of a tensor a piece of a program touches: what a copy or an inner stage must cover.

Input:  reads ``h[32*io + ii + d, j]`` for ii < 32 and d in 0..2, seen from inside io
Output: origins ``(32*io, 0)``, extents ``(34, N)``

Tail guards are ignored, so that extents stay constant; the box is clipped by guards on what fills
it. Where bounds cannot be compared, the box takes the whole axis, which is always enough.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tensorlang.ir.affine import (
    ZERO,
    Affine,
    Var,
    affine,
    depends_on,
    linear_coefficient,
    substitute,
    variables_of,
)
from tensorlang.ir.definition import Stage, Tensor
from tensorlang.ir.expr import loads_of
from tensorlang.ir.interval import Extents, Interval, bounds, is_nonnegative
from tensorlang.schedule.guards import tails_of
from tensorlang.schedule.tree import Place

Box = tuple[Interval, ...]
"""Per axis: origin and extent."""


def reads_box(places: Iterable[Place], tensor: Tensor) -> Box:
    """Return the box of ``tensor`` that the statements read; places are relative to a loop body."""
    return _union_box(places, tensor, _read_indices)


def writes_box(places: Iterable[Place], tensor: Tensor) -> Box:
    """Return the box of ``tensor`` that the statements write, beyond the tensor's end perhaps.

    Not clipped: a tile of 32 columns stays one in registers where the tensor ends after 30.
    """
    return _union_box(places, tensor, _write_indices, clip=False)


def accesses_box(places: Iterable[Place], tensor: Tensor) -> Box:
    """Return the box of ``tensor`` that the statements read or write."""

    def indices(place: Place, tensor: Tensor) -> list[tuple[Affine, ...]]:
        return _write_indices(place, tensor) + _read_indices(place, tensor)

    return _union_box(places, tensor, indices)


def covers_box(place: Place) -> bool:
    """Tell whether structure shows that the loops write every element of the box they span.

    ``place`` is relative to the loop at which the box was taken. ``6*i.o + i.i`` with ``i.i < 6``
    does, ``8*i.o + i.i`` leaves holes; ``C[i, i]`` fills no box, as ``i`` moves along two axes.
    """
    inside = place.extents()
    used: set[Var] = set()
    for index in place.data_binding:
        moving = {v for v in variables_of(index) if v in inside}
        if not moving.isdisjoint(used) or not _is_dense(index, moving, inside):
            return False
        used |= moving
    return True


def _is_dense(index: Affine, moving: set[Var], extents: Extents) -> bool:
    """Tell whether ``index`` takes every value between its least and its greatest."""
    steps: list[tuple[int, Var]] = []
    for variable in moving:
        step = linear_coefficient(index, variable)
        if step is None or not variables_of(extents[variable]).isdisjoint(moving):
            return False
        steps.append((abs(step), variable))
    rest = substitute(index, dict.fromkeys(moving, ZERO))
    if moving and bounds(rest, {}) != (rest, rest):
        return False  # the box is larger than what is written
    reach = 0
    known = True
    for step, variable in sorted(steps, key=lambda pair: pair[0]):
        if step > 1 and (not known or step > reach + 1):
            return False
        extent = extents[variable]
        known = known and extent.is_constant
        reach += step * max(0, extent.constant - 1)
    return True


def _read_indices(place: Place, tensor: Tensor) -> list[tuple[Affine, ...]]:
    compute = place.compute
    if compute.part == "init":
        return []
    mapping = dict(zip(compute.stage.variables, compute.binding, strict=True))
    return [
        tuple(substitute(index, mapping) for index in load.indices)
        for load in loads_of(*compute.stage.values)
        if compute.redirect(load.tensor) is tensor
    ]


def _write_indices(place: Place, tensor: Tensor) -> list[tuple[Affine, ...]]:
    compute = place.compute
    if not any(compute.redirect(own) is tensor for own in compute.stage.tensors):
        return []
    return [place.data_binding]


def _union_box(
    places: Iterable[Place],
    tensor: Tensor,
    indices_of: Callable[[Place, Tensor], list[tuple[Affine, ...]]],
    *,
    clip: bool = True,
) -> Box:
    ranges: list[Interval | None] = [None] * len(tensor.shape)
    for place in places:
        extents = place.extents()
        for indices in indices_of(place, tensor):
            for axis, index in enumerate(indices):
                whole = (ZERO, tensor.shape[axis] - 1)
                found = _range(index, extents)
                if clip or found is None:
                    found = _clipped(found, whole)
                ranges[axis] = _hull(ranges[axis], found, whole)
    box: list[Interval] = []
    for axis, interval in enumerate(ranges):
        whole = (ZERO, tensor.shape[axis] - 1)
        # Parts that reach out on either side may cover the axis together.
        low, high = _clipped(interval, whole) if clip or interval is None else interval
        box.append((low, high - low + 1))
    return tuple(box)


def _range(index: Affine, extents: Extents) -> Interval | None:
    """Return the bounds of ``index`` over loops; where none of them moves it, itself."""
    return bounds(index, extents) if depends_on(index, set(extents)) else _fixed(index)


def _fixed(index: Affine) -> Interval | None:
    return None if bounds(index, {}) is None else (index, index)  # None: taken from data


def _clipped(found: Interval | None, whole: Interval) -> Interval:
    """Return the whole axis where it is plainly covered; else the range, whose size is fixed."""
    if found is None:
        return whole
    covers = is_nonnegative(-found[0]) and is_nonnegative(found[1] - whole[1])
    return whole if covers else found


def _hull(left: Interval | None, right: Interval, whole: Interval) -> Interval:
    if left is None:
        return right
    low = _lesser(left[0], right[0])
    high = _lesser(-left[1], -right[1])
    if low is None or high is None:
        return whole
    return low, -high


def _lesser(left: Affine, right: Affine) -> Affine | None:
    if is_nonnegative(right - left):
        return left
    return right if is_nonnegative(left - right) else None


def clipping_guard(stage: Stage, box: Box, around: Extents) -> tuple[Affine, ...]:
    """Return the forms, over the stage's own variables, that keep a box inside the stage's axes.

    Only those that interval arithmetic (with the loops ``around``) does not know to hold anyway.
    """
    forms: list[Affine] = []
    for axis, (origin, extent) in zip(stage.axes, box, strict=True):
        if not is_nonnegative(origin, around):
            forms.append(ZERO + axis.variable)
        if not is_nonnegative(axis.extent - origin - extent, around):
            forms.append(axis.extent - 1 - axis.variable)
    return tuple(forms)


def keeping_guard(stage: Stage, box: Box, kept: Box, around: Extents) -> tuple[Affine, ...]:
    """Return the forms, over the stage's own variables, that keep a box inside another one."""
    forms: list[Affine] = []
    pairs = zip(stage.axes, box, kept, strict=True)
    for axis, (origin, extent), (first, count) in pairs:
        if not is_nonnegative(origin - first, around):
            forms.append(axis.variable - first)
        if not is_nonnegative(first + count - origin - extent, around):
            forms.append(first + count - 1 - axis.variable)
    return tuple(forms)


def written_guard(
    place: Place, stage: Stage, box: Box, around: Extents
) -> tuple[tuple[Affine, ...], bool]:
    """Return the forms, over ``stage``'s axes, that hold exactly where the statement writes.

    ``place`` is relative to the loop at which the box was taken. The flag tells whether every
    guard of the statement could be said in terms of the axes: the form
    ``95 - (36*ip + i2)`` of a binding ``96*ic + 36*ip + i2`` becomes ``95 - (i - 96*ic)``.
    """
    compute = place.compute
    forms = list(clipping_guard(stage, box, around))
    inside = place.extents()
    reduction = compute.binding[len(compute.stage.axes) :]
    reduction_variables = {v for form in reduction for v in variables_of(form) if v in inside}
    complete = True
    for form in tails_of(compute):
        moving = {v for v in variables_of(form) if v in inside}
        if moving & reduction_variables:
            continue
        if not moving:
            forms.append(form)
            continue
        said = _over_axes(form, place, stage, moving)
        if said is None or depends_on(said, set(inside)):
            complete = False
        elif said not in forms and not _is_clip(said, stage):
            forms.append(said)
    return tuple(forms), complete


def _over_axes(form: Affine, place: Place, stage: Stage, moving: set[Var]) -> Affine | None:
    for axis, index in zip(stage.axes, place.compute.binding, strict=False):
        outer = substitute(index, {v: ZERO for v in moving})
        if depends_on(outer, set(place.extents())):
            continue  # the index moves with other loops too
        inner = index - outer
        times = _multiple(form, inner, moving)
        if times:
            rest = form - inner * times
            if not depends_on(rest, moving):
                return rest + (affine(axis.variable) - outer) * times
    return None


def _multiple(form: Affine, inner: Affine, moving: set[Var]) -> int:
    """Return how many times ``inner`` is in ``form``, by a variable of both; 0: not a whole time.

    A tail behind ``(H + 1) // 4`` positions is the form ``H - 3 - 4 * i``: four times the index.
    """
    for variable in moving:
        step, found = linear_coefficient(inner, variable), linear_coefficient(form, variable)
        if step and found and found % step == 0:
            return found // step
    return 0


def _is_clip(form: Affine, stage: Stage) -> bool:
    """Whether a form only repeats that an axis stays inside the tensor."""
    for axis in stage.axes:
        times = linear_coefficient(form, axis.variable)
        if not times:
            continue
        rest = form - affine(axis.variable) * times
        if times > 0 and rest == ZERO:
            return True
        if times < 0 and rest // -times == axis.extent - 1:
            return True
    return False
