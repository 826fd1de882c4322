"""Run the instances beyond a tensor's end where that touches nothing but spare private storage.

Input (the edge tile of a matmul, C.acc local, B packed into panels of 16 lanes)::

    C.acc[i, j] += A[i, k] * B.copy[k, j]      # if i < M and j < N

Output::

    C.acc[i, j] += A[min(i, M - 1), k] * B.copy[k, j]

A guard in the inner loop costs branches and masked accesses, and one masked access keeps an
accumulator out of the registers. An element beyond the end of its tensor is never read by an
instance that counts, so it may hold anything, as long as the storage has room for it
(``storage.has_room``) and every read stays in memory: a read along an unguarded axis is proved in
bounds, or clamped, or, where it depends on a vector's lane, made lazy (``where(j < N, ..., 0)``).

This is done for writes to ``local`` storage, for loops with ``tail="pad"``, for vectors that end in
the gap behind a row, and for copies: the lanes that a packed copy has beyond the tensor are filled
with zeros.
"""

from __future__ import annotations

from dataclasses import replace

from tensorlang.ir.affine import Affine, depends_on
from tensorlang.ir.definition import Stage
from tensorlang.ir.expr import Load, iterate
from tensorlang.ir.interval import bounds
from tensorlang.ir.program import Alloc, Compute, For, Program, Stmt
from tensorlang.ir.walk import map_children
from tensorlang.lower.data import depends_on_data
from tensorlang.lower.known import Known, known_of
from tensorlang.lower.place import Place
from tensorlang.lower.safe_reads import Filled, SafeReads
from tensorlang.lower.storage import has_gaps, has_room, is_lane_axis, room_along


def run_private_tails(program: Program) -> Program:
    """Return ``program`` with guards dropped where only private spare elements are written."""
    place = Place(known_of(program))
    filled = _filled_axes(program.body, place)
    return replace(program, body=_visit(program.body, place, filled))


def zero_filled_guards(program: Program) -> frozenset[tuple[int, Affine]]:
    """Return the guards (with the id of their stage) that lane-filling copies will drop."""
    found: set[tuple[int, Affine]] = set()

    def visit(stmt: Stmt, place: Place) -> None:
        if isinstance(stmt, Compute) and stmt.stage.copies is not None:
            axes = _droppable(stmt, place)
            found.update((id(stmt.stage), form) for form, axis in _tails(stmt) if axis in axes)
        inside = place.inside(stmt)
        map_children(stmt, lambda child: (visit(child, inside), child)[1])

    visit(program.body, Place(known_of(program)))
    return frozenset(found)


def _tails(compute: Compute) -> list[tuple[Affine, int]]:
    """Return the guards that keep an instance below the end of its tensor, with their axes."""
    pairs = zip(compute.stage.axes, compute.binding, strict=False)
    ends = {axis.extent - 1 - form: n for n, (axis, form) in enumerate(pairs)}
    return [(form, ends[form]) for form in compute.guard if form in ends]


def _droppable(compute: Compute, place: Place) -> set[int]:
    """Return the axes whose tail guard ``compute`` may ignore, as far as its write goes."""
    tails = _tails(compute)
    if not tails or _reads_data_dependent(compute.stage):
        return set()
    allocs = [place.storage.get(compute.redirect(tensor)) for tensor in compute.stage.tensors]
    dropped: set[int] = set()
    for form, axis in tails:
        wanted = all(
            alloc is not None
            and _is_wanted(compute, alloc, form, axis, place)
            and has_room(alloc, axis, compute.binding[axis], place.known)
            for alloc in allocs
        )
        if wanted:
            dropped.add(axis)
    return dropped


def _is_wanted(compute: Compute, alloc: Alloc, form: Affine, axis: int, place: Place) -> bool:
    """Tell whether ignoring a tail guard is worth it."""
    if alloc.scope == "local":
        return True
    if any(
        isinstance(loop, For) and loop.tail == "pad" and depends_on(form, {loop.variable})
        for loop in place.loops
    ):
        return True
    if not is_lane_axis(alloc, axis):
        return False
    is_vector = depends_on(form, place.variables("vectorized"))
    if compute.stage.copies is None:
        return is_vector and has_gaps(alloc)
    return is_vector or alloc.layout is not None


def _reads_data_dependent(stage: Stage) -> bool:
    return any(
        depends_on_data(index)
        for node in iterate(*stage.values)
        if isinstance(node, Load)
        for index in node.indices
    )


def _filled_axes(body: Stmt, place: Place) -> Filled:
    """Return, for each ``Alloc`` (by id), the axes along which all its writers fill the spare room.

    A reader may then look there; what it finds is defined, if meaningless.
    """
    filled: Filled = {}

    def visit(stmt: Stmt, place: Place) -> None:
        if isinstance(stmt, Compute):
            guarded = {axis for _, axis in _tails(stmt)} - _droppable(stmt, place)
            for tensor in stmt.stage.tensors:
                alloc = place.storage.get(stmt.redirect(tensor))
                if alloc is not None:
                    axes = {
                        axis
                        for axis in range(len(alloc.shape))
                        if axis not in guarded and _reaches_end(alloc, axis, stmt, place.known)
                    }
                    known = filled.setdefault(id(alloc), axes)
                    known &= axes
        inside = place.inside(stmt)
        map_children(stmt, lambda child: (visit(child, inside), child)[1])

    visit(body, place)
    return filled


def _reaches_end(alloc: Alloc, axis: int, compute: Compute, known: Known) -> bool:
    """Whether the loops around a writer run on to the end of the storage."""
    interval = bounds(compute.binding[axis], known.extents)
    if interval is None:
        return False
    return known.proves(interval[1] - alloc.origin[axis] - room_along(alloc, axis) + 1)


def _visit(stmt: Stmt, place: Place, filled: Filled) -> Stmt:
    if isinstance(stmt, Compute):
        axes = {
            axis for axis in _droppable(stmt, place) if _stays_in_box(stmt, axis, place, filled)
        }
        return _run_everywhere(stmt, axes, place, filled) if axes else stmt
    inside = place.inside(stmt)
    body = map_children(stmt, lambda child: _visit(child, inside, filled))
    if isinstance(stmt, Alloc) and isinstance(body, Alloc) and stmt.layout is not None:
        # The box grows to all that the writers fill.
        axes = filled.get(id(stmt), set())
        rooms = [
            room_along(stmt, axis) if axis in axes else extent
            for axis, extent in enumerate(stmt.shape)
        ]
        return replace(body, shape=tuple(rooms))
    return body


def _stays_in_box(compute: Compute, axis: int, place: Place, filled: Filled) -> bool:
    """Whether writes along ``axis`` stay in the box, as it is or as it grows."""
    for tensor in compute.stage.tensors:
        alloc = place.storage[compute.redirect(tensor)]
        position = compute.binding[axis] - alloc.origin[axis]
        grows = axis in filled.get(id(alloc), set())
        if not grows and not place.known.proves(alloc.shape[axis] - 1 - position):
            return False
    return True


def _run_everywhere(
    compute: Compute,
    axes: set[int],
    place: Place,
    filled: Filled,
) -> Compute:
    """Return ``compute`` without the tail guards of ``axes``, its reads made safe."""
    dropped = {form for form, axis in _tails(compute) if axis in axes}
    guard = tuple([form for form in compute.guard if form not in dropped])
    stage = compute.stage
    if compute.part != "init":
        stage = SafeReads(compute, axes, place, filled).stage()
    return replace(compute, stage=stage, guard=guard)
