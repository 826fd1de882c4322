"""Copies of tensors: what cache_read and cache_write have in common."""

from __future__ import annotations

from dataclasses import replace

from tensorlang.ir.affine import Affine, Var, affine
from tensorlang.ir.definition import Axis, Stage, Tensor
from tensorlang.ir.expr import Load, loads_of
from tensorlang.ir.program import Alloc, Compute, Program, Scope, Stmt
from tensorlang.ir.walk import iterate, rewrite
from tensorlang.schedule.boxes import Box
from tensorlang.schedule.refusal import Refusal

_AXES = "ijklmnpqrs"


def cache_name(program: Program, tensor: Tensor, suffix: str) -> str:
    """Return a name for a copy of ``tensor`` that no stage has yet: ``B.local``, ``B.local_1``."""
    taken = {t.name for stage in program.stages for t in stage.tensors}
    taken |= {stmt.tensor.name for stmt in iterate(program.body) if isinstance(stmt, Alloc)}
    name = f"{tensor.name}.{suffix}"
    number = 1
    while name in taken:
        name, number = f"{tensor.name}.{suffix}_{number}", number + 1
    return name


def copy_stage(target: Tensor, source: Tensor) -> Stage:
    """Return the stage that copies ``source`` to ``target``, element by element."""
    axes = tuple(Axis(Var(axis_name(n)), extent) for n, extent in enumerate(source.shape))
    indices = tuple(affine(axis.variable) for axis in axes)
    return Stage((target,), axes, (Load(source, indices),), copies=source)


def axis_name(position: int) -> str:
    """Return a short name for an axis of a copy."""
    return _AXES[position] if position < len(_AXES) else f"i{position}"


def accessed_tensors(compute: Compute) -> set[Tensor]:
    """Return what an instance reads and writes, where it really goes."""
    touched = {*compute.stage.tensors, *(load.tensor for load in loads_of(*compute.stage.values))}
    return {compute.redirect(tensor) for tensor in touched}


def redirect(body: Stmt, tensor: Tensor, target: Tensor) -> Stmt:
    """Return ``body`` with reads and writes that go to ``tensor`` going to ``target``."""

    def visit(stmt: Stmt) -> Stmt:
        if not isinstance(stmt, Compute):
            return stmt
        touched = [*stmt.stage.tensors, *(load.tensor for load in loads_of(*stmt.stage.values))]
        sources = {id(t): t for t in touched if stmt.redirect(t) is tensor}
        if not sources:
            return stmt
        kept = tuple(pair for pair in stmt.via if id(pair[0]) not in sources)
        return replace(stmt, via=kept + tuple((t, target) for t in sources.values()))

    return rewrite(body, visit)


def require_constant_box(
    box: Box, tensor: Tensor, scope: Scope, loop: Var | None, what: str = "copy"
) -> None:
    """Refuse registers for a box whose size is not known when compiling."""
    if scope != "local" or all(extent.is_constant for _, extent in box):
        return
    extents = ", ".join(str(extent) for _, extent in box)
    raise Refusal(
        f"the {what} of {tensor} has the extents ({extents}), and registers need constant ones",
        "split the loops so that one iteration touches a constant box, or fix the sizes",
        loops=() if loop is None else (loop,),
    )


def origins(box: Box) -> tuple[Affine, ...]:
    """Return the origins of a box."""
    return tuple(origin for origin, _ in box)


def extents(box: Box) -> tuple[Affine, ...]:
    """Return the extents of a box."""
    return tuple(extent for _, extent in box)
