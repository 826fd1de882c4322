"""Instance sets: each ``Compute`` with the loops, the storage and the time it has.

Input:  the tree of a scheduled program
Output: for ``C[6 * i.o + i.i] = ...`` under two loops, one ``Instance`` whose points are
``S0[l0, l1] : 0 <= l0, 6 * l0 < M + 5, 0 <= l1 < 6, 6 * l0 + l1 < M``

Time is a vector: the number of a statement in its sequence, or a loop's variable, from the root
down. The loop over the positions of a fused loop is dropped: running through the positions in
order is running through the pieces in order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import islpy as isl

from tensorlang.ir.affine import Affine, Var, affine
from tensorlang.ir.definition import Tensor
from tensorlang.ir.interval import is_nonnegative
from tensorlang.ir.program import (
    BLOCK_AXES,
    THREAD_AXES,
    Alloc,
    Barrier,
    Compute,
    For,
    Fused,
    LoopKind,
    Prefetch,
    Program,
    Seq,
    Stmt,
)
from tensorlang.poly.isl_text import NotProvedError, Parameters, form_text, holds_text


@dataclass(frozen=True, slots=True)
class Place:
    """The block or the thread along ``axis`` that runs an iteration; None where it is no form."""

    axis: LoopKind
    form: Affine | None


@dataclass(frozen=True, slots=True, eq=False)
class Crossing:
    """A barrier: the loops around it, its time, and what bounds its loops."""

    loops: tuple[Loop, ...]
    time: tuple[int | Var, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Loop:
    """A loop over one variable, or over several in lexicographic order."""

    handles: tuple[Var, ...]
    variables: tuple[Var, ...]
    extents: tuple[Affine, ...]
    kind: LoopKind
    places: tuple[Place, ...] = ()
    """For loops bound to a GPU's axes: which block or thread runs an iteration."""

    @property
    def is_concurrent(self) -> bool:
        """Whether iterations may run at once (unrolled ones run in order)."""
        return self.kind not in ("serial", "unrolled")

    @property
    def is_in_pieces(self) -> bool:
        """Whether it is a fused loop and the loop over its pieces, taken as one."""
        return len(self.handles) > 1


@dataclass(frozen=True, slots=True, eq=False)
class Storage:
    """Memory of a tensor: the caller's, or an ``Alloc``'s, anew for each iteration around it.

    A cell is named by the iteration of the loops around the ``Alloc`` and the logical index, so
    that what one iteration left behind is never taken for what the next one wrote.
    """

    number: int
    tensor: Tensor
    prefix: tuple[Var, ...]
    origin: tuple[Affine, ...]
    shape: tuple[Affine, ...]
    alloc: Alloc | None
    outer: tuple[Storage, ...]
    is_input: bool = False

    @property
    def name(self) -> str:
        """The name of its cells in isl text."""
        return f"B{self.number}"

    @property
    def is_folded(self) -> bool:
        """Whether several elements follow one another in one place."""
        return self.alloc is not None and self.alloc.layout is not None and self.alloc.layout.folded


@dataclass(frozen=True, slots=True, eq=False)
class Instance:
    """All the instances of one ``Compute``: a point for each iteration that its guard lets run."""

    number: int
    compute: Compute
    loops: tuple[Loop, ...]
    time: tuple[int | Var, ...]
    storages: Mapping[Tensor, Storage]
    variables: tuple[Var, ...]
    extents: Mapping[Var, Affine]
    names: Mapping[Var, str]

    @property
    def data_binding(self) -> tuple[Affine, ...]:
        """The logical index of the element that is written."""
        return self.compute.binding[: len(self.compute.stage.axes)]

    @property
    def is_copy(self) -> bool:
        """Whether the stage copies another tensor."""
        return self.compute.stage.copies is not None

    def tuple_text(self, tag: str) -> str:
        """Return ``tag[l0, l1]``."""
        return f"{tag}[{', '.join(self.names[variable] for variable in self.variables)}]"

    def holds(self, form: Affine) -> bool:
        """Whether ``form`` >= 0 is plain from the guard or the extents; False: not known."""
        for known in self.compute.guard:
            difference = form - known
            if difference.is_constant and difference.constant >= 0:
                return True
        return is_nonnegative(form, self.extents)

    def unknown_tails(self) -> tuple[Affine, ...]:
        """Return what must be >= 0 for an instance to lie in its stage's domain, if not plain."""
        forms: list[Affine] = []
        for axis, index in zip(self.compute.stage.axes, self.data_binding, strict=True):
            forms.extend(form for form in (index, axis.extent - 1 - index) if not self.holds(form))
        return tuple(forms)


class Nest:
    """The instance sets of a program, with their points as isl sets."""

    def __init__(self, program: Program) -> None:
        definition = program.definition
        self.program = program
        self.parameters = Parameters(
            definition.sizes, (*definition.conditions, *program.conditions)
        )
        self.storages: list[Storage] = []
        self.outer: dict[Tensor, Storage] = {}
        for tensor in (*definition.inputs, *definition.outputs):
            if tensor not in self.outer:
                self.outer[tensor] = self._outer_storage(tensor, tensor in definition.inputs)
        self.barriers: list[Crossing] = []
        self.instances: list[Instance] = []
        for instance in self._visit(program.body, (), (0,), self.outer):
            self.instances.append(instance)
        self.depth = max((len(instance.time) for instance in self.instances), default=1)
        self._points: dict[Instance, isl.Set] = {}
        self._sound: dict[Instance, isl.Set] = {}

    def _outer_storage(self, tensor: Tensor, is_input: bool) -> Storage:
        origin = tuple(affine(0) for _ in tensor.shape)
        number = len(self.storages)
        storage = Storage(number, tensor, (), origin, tensor.shape, None, (), is_input)
        self.storages.append(storage)
        return storage

    def _visit(
        self,
        stmt: Stmt,
        loops: tuple[Loop, ...],
        time: tuple[int | Var, ...],
        storages: Mapping[Tensor, Storage],
    ) -> Iterator[Instance]:
        match stmt:
            case Seq():
                for number, child in enumerate(stmt.stmts):
                    yield from self._visit(child, loops, (*time, number), storages)
            case For(body=Fused(run=run) as piece) if run is not None:
                if run.chunk is not stmt.variable or stmt.extent != _pieces(piece, run.size):
                    raise NotProvedError(
                        f"the loop {stmt.variable} does not run over the pieces of {piece.handle}"
                    )
                kind = piece.kind if stmt.kind in ("serial", "unrolled") else stmt.kind
                handles = (stmt.variable, piece.handle)
                places = _places_of_pieces(stmt, piece, run.size)
                loop = Loop(handles, piece.variables, piece.extents, kind, places)
                yield from self._enter(loop, piece.body, loops, time, storages)
            case For():
                places = _places(stmt.kind, affine(stmt.variable))
                variables, extents = (stmt.variable,), (stmt.extent,)
                loop = Loop(variables, variables, extents, stmt.kind, places)
                yield from self._enter(loop, stmt.body, loops, time, storages)
            case Fused(run=None):
                places = _places(stmt.kind, _position(stmt))
                loop = Loop((stmt.handle,), stmt.variables, stmt.extents, stmt.kind, places)
                yield from self._enter(loop, stmt.body, loops, time, storages)
            case Fused():
                raise NotProvedError(
                    f"a statement stands between the positions and the pieces of {stmt.handle}"
                )
            case Alloc():
                prefix = tuple(variable for loop in loops for variable in loop.variables)
                storage = Storage(
                    len(self.storages),
                    stmt.tensor,
                    prefix,
                    stmt.origin,
                    stmt.shape,
                    stmt,
                    tuple(storages.values()),
                )
                self.storages.append(storage)
                inside = {**storages, stmt.tensor: storage}
                yield from self._visit(stmt.body, loops, time, inside)
            case Prefetch():
                pass  # it has no effect on any value
            case Barrier():
                self.barriers.append(Crossing(loops, time))
            case Compute():
                variables = tuple(variable for loop in loops for variable in loop.variables)
                extents = {
                    variable: extent
                    for loop in loops
                    for variable, extent in zip(loop.variables, loop.extents, strict=True)
                }
                names = {variable: f"l{n}" for n, variable in enumerate(variables)}
                number = len(self.instances)
                yield Instance(number, stmt, loops, time, storages, variables, extents, names)
            case _:
                raise NotProvedError(f"a {type(stmt).__name__} is not part of a scheduled program")

    def _enter(
        self,
        loop: Loop,
        body: Stmt,
        loops: tuple[Loop, ...],
        time: tuple[int | Var, ...],
        storages: Mapping[Tensor, Storage],
    ) -> Iterator[Instance]:
        if any(variable in outer.variables for outer in loops for variable in loop.variables):
            raise NotProvedError(
                f"the variable of loop {loop.handles[0]} belongs to an outer loop too"
            )
        yield from self._visit(body, (*loops, loop), (*time, *loop.variables), storages)

    def constraints(self, instance: Instance, names: Mapping[Var, str] | None = None) -> str:
        """Return the points of ``instance`` as a condition on its loop variables."""
        names = instance.names if names is None else names
        parts: list[str] = []
        for variable, extent in instance.extents.items():
            parts.append(f"{names[variable]} >= 0")
            parts.append(holds_text(extent - 1 - variable, names, self.parameters))
        parts.extend(holds_text(form, names, self.parameters) for form in instance.compute.guard)
        return " and ".join(parts) or "true"

    def points(self, instance: Instance) -> isl.Set:
        """Return the points ``S[l0, l1]`` of ``instance``."""
        known = self._points.get(instance)
        if known is None:
            tag = instance.tuple_text(f"S{instance.number}")
            known = self.parameters.set(f"{tag} : {self.constraints(instance)}")
            self._points[instance] = known
        return known

    def sound_points(self, instance: Instance) -> isl.Set:
        """Return the points that lie in the domain of the stage, data axes only.

        The others (padded tails) compute nothing that the definition names: they may read
        anything that is in bounds, and nobody may see what they write.
        """
        known = self._sound.get(instance)
        if known is None:
            known = self.points(instance)
            tails = instance.unknown_tails()
            if tails:
                tag = instance.tuple_text(f"S{instance.number}")
                text = " and ".join(
                    holds_text(form, instance.names, self.parameters) for form in tails
                )
                known = known.intersect(self.parameters.set(f"{tag} : {text}"))
            self._sound[instance] = known
        return known

    def relation(self, instance: Instance, tag: str, target: str, points: isl.Set) -> isl.Map:
        """Return ``tag[l0, l1] -> target`` at ``points``, whose tuple is renamed to ``tag``."""
        relation = self.parameters.map(f"{instance.tuple_text(tag)} -> {target}")
        return relation.intersect_domain(points.set_tuple_name(tag))

    def form(self, instance: Instance, form: Affine) -> str:
        """Return a form over the loops of ``instance`` as isl text."""
        return form_text(form, instance.names, self.parameters)

    def parameters_text(self, form: Affine) -> str:
        """Return a form over the sizes as isl text."""
        return form_text(form, {}, self.parameters)

    def time_text(self, instance: Instance) -> str:
        """Return the time of ``instance`` as isl text, of the same length for all instances."""
        parts = [
            str(part) if isinstance(part, int) else instance.names[part] for part in instance.time
        ]
        return f"[{', '.join(parts + ['0'] * (self.depth - len(parts)))}]"

    def end_text(self) -> str:
        """Return a time after every instance."""
        return f"[{', '.join(['1'] + ['0'] * (self.depth - 1))}]"


def _places(kind: LoopKind, form: Affine | None) -> tuple[Place, ...]:
    return (Place(kind, form),) if kind in (*BLOCK_AXES, *THREAD_AXES) else ()


def _places_of_pieces(chunks: For, piece: Fused, size: int) -> tuple[Place, ...]:
    position = _position(piece)
    chunk = None if position is None else position // size
    offset = None if position is None else position % size
    return _places(chunks.kind, chunk) + _places(piece.kind, offset)


def _position(loop: Fused) -> Affine | None:
    """Return the position of an iteration of a fused loop, None if it is not affine."""
    if not all(extent.is_constant for extent in loop.extents[1:]):
        return None
    position = affine(0)
    for variable, extent in zip(loop.variables, loop.extents, strict=True):
        position = position * extent + variable if extent.is_constant else affine(variable)
    return position


def _pieces(piece: Fused, size: int) -> Affine:
    positions = affine(1)
    for extent in piece.extents:
        positions = positions * extent
    return (positions + (size - 1)) // size
