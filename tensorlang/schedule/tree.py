"""Where things stand in a scheduled program: loops by handle, the way down to a statement.

Everything here reads a program or rebuilds the path to one statement; the rest is shared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tensorlang.ir.affine import Affine, Var
from tensorlang.ir.definition import Stage, Tensor
from tensorlang.ir.program import Alloc, Compute, For, Fused, Seq, Stmt
from tensorlang.ir.walk import children_of, map_children

Loop = For | Fused


def handle_of(loop: Loop) -> Var:
    """Return the variable that stands for a loop."""
    return loop.variable if isinstance(loop, For) else loop.handle


def find_loop(body: Stmt, handle: Var) -> Loop | None:
    """Return the loop with this handle, None if it is gone."""
    for loop in loops_of(body):
        if handle_of(loop) is handle:
            return loop
    return None


def loops_of(body: Stmt) -> Iterator[Loop]:
    """Yield every loop below ``body``, outer ones first."""
    if isinstance(body, For | Fused):
        yield body
    for child in children_of(body):
        yield from loops_of(child)


def replace_loop(body: Stmt, handle: Var, replacement: Callable[[Loop], Stmt]) -> Stmt:
    """Return ``body`` with the loop of this handle replaced."""
    if isinstance(body, For | Fused) and handle_of(body) is handle:
        return replacement(body)
    return map_children(body, lambda child: replace_loop(child, handle, replacement))


def replace_stmt(body: Stmt, old: Stmt, new: Stmt) -> Stmt:
    """Return ``body`` with the statement ``old`` (the very object) replaced by ``new``."""
    if body is old:
        return new
    return map_children(body, lambda child: replace_stmt(child, old, new))


@dataclass(frozen=True, slots=True)
class Place:
    """A ``Compute`` and the statements on the way to it, outermost first (itself excluded)."""

    compute: Compute
    ancestors: tuple[Stmt, ...]

    @property
    def loops(self) -> tuple[Loop, ...]:
        """The loops around the statement, outermost first."""
        return tuple(stmt for stmt in self.ancestors if isinstance(stmt, For | Fused))

    @property
    def data_binding(self) -> tuple[Affine, ...]:
        """The index of the element that the statement writes."""
        return self.compute.binding[: len(self.compute.stage.axes)]

    def inside(self, handle: Var) -> Place:
        """Return the same place as seen from the body of the loop ``handle``."""
        for position, stmt in enumerate(self.ancestors):
            if isinstance(stmt, For | Fused) and handle_of(stmt) is handle:
                return Place(self.compute, self.ancestors[position + 1 :])
        return self

    def extents(self) -> dict[Var, Affine]:
        """Return the extent of every loop variable around the statement."""
        found: dict[Var, Affine] = {}
        for loop in self.loops:
            if isinstance(loop, For):
                found[loop.variable] = loop.extent
            else:
                found.update(zip(loop.variables, loop.extents, strict=True))
        return found

    def is_private(self, tensor: Tensor) -> bool:
        """Tell whether ``tensor`` is allocated somewhere on the way."""
        return any(isinstance(stmt, Alloc) and stmt.tensor is tensor for stmt in self.ancestors)


def places_of(body: Stmt, ancestors: tuple[Stmt, ...] = ()) -> Iterator[Place]:
    """Yield every ``Compute`` below ``body`` with the way to it."""
    if isinstance(body, Compute):
        yield Place(body, ancestors)
        return
    for child in children_of(body):
        yield from places_of(child, (*ancestors, body))


def find_alloc(body: Stmt, tensor: Tensor) -> Alloc | None:
    """Return the storage of ``tensor``; None for the caller's."""
    if isinstance(body, Alloc) and body.tensor is tensor:
        return body
    for child in children_of(body):
        found = find_alloc(child, tensor)
        if found is not None:
            return found
    return None


def without_alloc(body: Stmt, tensor: Tensor) -> Stmt:
    """Return ``body`` with the storage of ``tensor`` taken away and its contents left in place."""
    body = map_children(body, lambda child: without_alloc(child, tensor))
    return body.body if isinstance(body, Alloc) and body.tensor is tensor else body


def nest_of(body: Stmt, stage: Stage) -> Stmt | None:
    """Return the outermost statement that holds instances of ``stage`` and of nothing else."""
    holds = [place.compute.stage is stage for place in places_of(body)]
    if holds and all(holds):
        return body.body if isinstance(body, Alloc) else body
    for child in children_of(body):
        found = nest_of(child, stage)
        if found is not None:
            return found
    return None


def without_stmt(body: Stmt, gone: Stmt) -> Stmt:
    """Return ``body`` without the statement ``gone``; sequences close over the gap."""
    if body is gone:
        return Seq(())
    if isinstance(body, Seq):
        kept = [without_stmt(child, gone) for child in body.stmts]
        kept = [child for child in kept if not (isinstance(child, Seq) and not child.stmts)]
        return kept[0] if len(kept) == 1 else Seq(tuple(kept))
    return map_children(body, lambda child: without_stmt(child, gone))


def label_of(stage: Stage) -> str:
    """Return the name by which a schedule knows a stage; a copy back is ``C.write``."""
    copied = stage.copies
    if copied is not None and copied.name.startswith(f"{stage.name}."):
        return f"{stage.name}.write"
    return stage.name
