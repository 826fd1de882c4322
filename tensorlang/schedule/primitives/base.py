"""What a primitive is, and what those that take loops have in common."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from tensorlang.ir.affine import Affine, Var
from tensorlang.ir.definition import Stage
from tensorlang.ir.program import Alloc, For, Fused, Program, Seq, Stmt
from tensorlang.ir.walk import children_of
from tensorlang.schedule.refusal import Refusal
from tensorlang.schedule.tree import Loop, find_loop, handle_of


@dataclass(frozen=True, slots=True)
class Outcome:
    """The program after a step, and the loops and stages that the step returns, in order."""

    program: Program
    results: tuple[Var | Stage, ...] = ()


class Primitive(Protocol):
    """A step with its arguments resolved to handles and stages of the program."""

    def check(self, program: Program) -> None:
        """Raise ``Refusal`` if the step may not be taken; decide by structure where possible."""
        ...

    def apply(self, program: Program) -> Outcome:
        """Return the rewritten program; ``check`` has passed."""
        ...


def the_loop(program: Program, handle: Var) -> Loop:
    """Return the loop of a handle that is known to be in the program."""
    loop = find_loop(program.body, handle)
    assert loop is not None, f"loop {handle} is gone"
    return loop


def require_plain(loop: Loop, step: str) -> For:
    """Refuse a fused loop over several variables where ``step`` needs a loop over one."""
    if isinstance(loop, For):
        return loop
    raise Refusal(
        f"{step} needs a loop over one variable, and {loop.handle} runs over "
        f"({', '.join(map(str, loop.variables))})",
        f"{step} before fuse; loops of one stage's axes fuse to one variable if the sizes are "
        "fixed: tl.schedule(op, N=1024)",
        loops=(loop.handle,),
    )


def require_no_pieces(loop: Loop, step: str) -> None:
    """Refuse the loop over the pieces of a fused loop: the two belong together."""
    piece = loop.body
    if isinstance(loop, For) and isinstance(piece, Fused) and piece.run is not None:
        raise Refusal(
            f"{loop.variable} runs over pieces of a fused loop, and nothing may stand between it "
            f"and {piece.handle}",
            f"{step} before the fused loop is split; or fix the sizes: tl.schedule(op, N=1024)",
            loops=(loop.variable, piece.handle),
        )


def require_room(program: Program, handle: Var, step: str) -> None:
    """Refuse to place storage or statements inside a loop that may hold nothing new."""
    loop = the_loop(program, handle)
    require_no_pieces(loop, step)
    for around in (*enclosing_loops(program.body, handle), loop):
        if around.kind == "vectorized":
            raise Refusal(
                f"{step} would place storage inside the vectorized loop {handle_of(around)}, once "
                "for each lane",
                f"a loop around it, or {step} before vectorize",
                loops=(handle_of(around),),
            )


def require_serial(loop: Loop, step: str) -> None:
    """Refuse a loop whose kind has been chosen already."""
    if loop.kind == "serial":
        return
    handle = handle_of(loop)
    advice = f"{step} first, and choose how the resulting loops run afterwards"
    if step in ("parallel", "vectorize", "unroll"):
        advice = "one choice a loop: s.undo() takes back the last step"
    raise Refusal(
        f"{step} needs a serial loop, and {handle} is {loop.kind}", advice, loops=(handle,)
    )


def enclosing(body: Stmt, handle: Var) -> tuple[Stmt, ...]:
    """Return the statements around a loop, outermost first."""

    def visit(stmt: Stmt, way: tuple[Stmt, ...]) -> tuple[Stmt, ...] | None:
        if isinstance(stmt, For | Fused) and handle_of(stmt) is handle:
            return way
        for child in children_of(stmt):
            found = visit(child, (*way, stmt))
            if found is not None:
                return found
        return None

    return visit(body, ()) or ()


def enclosing_loops(body: Stmt, handle: Var) -> tuple[Loop, ...]:
    """Return the loops around a loop, outermost first."""
    return tuple(stmt for stmt in enclosing(body, handle) if isinstance(stmt, For | Fused))


def own_extents(loop: Loop) -> dict[Var, Affine]:
    """Return the extents of the variables of one loop."""
    if isinstance(loop, For):
        return {loop.variable: loop.extent}
    return dict(zip(loop.variables, loop.extents, strict=True))


def extents_around(body: Stmt, handle: Var) -> dict[Var, Affine]:
    """Return the extents of the loops around a loop."""
    found: dict[Var, Affine] = {}
    for loop in enclosing_loops(body, handle):
        found |= own_extents(loop)
    return found


def obstacle(stmt: Stmt) -> str:
    """Say what stands between two loops that are not perfectly nested."""
    match stmt:
        case Seq():
            return "several statements"
        case Alloc():
            return f"the storage of {stmt.tensor}"
        case _:
            return "a statement"
