"""Schedules made by hand: naive loops and a few rewrites, enough to have programs to prove.

They check nothing; the proof has to.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tensorlang.ir.affine import Affine, Var, affine, substitute
from tensorlang.ir.definition import Axis, Definition, Stage, Tensor
from tensorlang.ir.expr import Load, loads_of
from tensorlang.ir.interval import bounds
from tensorlang.ir.program import (
    Alloc,
    Compute,
    For,
    Fused,
    LoopKind,
    Program,
    Run,
    Scope,
    Seq,
    Stmt,
)
from tensorlang.ir.walk import (
    computes_of,
    iterate,
    rewrite,
    sequence,
    substitute_in_stmt,
)


def naive(definition: Definition) -> Program:
    nests = [nest_of(stage) for stage in definition.stages]
    body: Stmt = sequence(*nests)
    for stage in reversed(definition.stages):
        for tensor in stage.tensors:
            if tensor not in definition.outputs:
                body = whole_alloc(tensor, body)
    return Program(definition, definition.stages, body)


def whole_alloc(tensor: Tensor, body: Stmt) -> Alloc:
    return Alloc(tensor, tuple(affine(0) for _ in tensor.shape), tensor.shape, "global", body)


def nest_of(stage: Stage) -> Stmt:
    fresh = {axis.variable: Var(axis.variable.name) for axis in stage.all_axes}
    guard = tuple(substitute(form, fresh) for form in stage.predicate)
    body: Stmt = Compute(stage, tuple(affine(v) for v in fresh.values()), guard)
    for axis in reversed(stage.all_axes):
        body = For(fresh[axis.variable], axis.extent, "serial", body)
    return body


def loop(program: Program, name: str, number: int = 0) -> For:
    found = [s for s in iterate(program.body) if isinstance(s, For) and s.variable.name == name]
    return found[number]


def transform(program: Program, change: Callable[[Stmt], Stmt]) -> Program:
    return replace(program, body=rewrite(program.body, change))


def replace_stmt(program: Program, old: Stmt, new: Stmt) -> Program:
    found: list[Stmt] = []

    def visit(stmt: Stmt) -> Stmt:
        if stmt is old:
            found.append(stmt)
            return new
        match stmt:
            case For() | Fused() | Alloc():
                body = visit(stmt.body)
                return stmt if body is stmt.body else replace(stmt, body=body)
            case Seq():
                return Seq(tuple(visit(child) for child in stmt.stmts))
            case _:
                return stmt

    program = replace(program, body=visit(program.body))
    assert found, "the statement is not in the program"
    return program


def guard_all(stmt: Stmt, form: Affine) -> Stmt:
    def add(child: Stmt) -> Stmt:
        if isinstance(child, Compute):
            return replace(child, guard=(*child.guard, form))
        return child

    return rewrite(stmt, add)


def split(program: Program, name: str, factor: int, number: int = 0) -> Program:
    old = loop(program, name, number)
    outer, inner = Var(f"{name}.o"), Var(f"{name}.i")
    value = affine(outer) * factor + inner
    body = substitute_in_stmt(old.body, {old.variable: value})
    if not (old.extent.is_constant and old.extent.constant % factor == 0):
        body = guard_all(body, old.extent - 1 - value)
    count = (old.extent + factor - 1) // factor
    new = For(outer, count, old.kind, For(inner, affine(factor), "serial", body))
    return replace_stmt(program, old, new)


def reorder(program: Program, *names: str) -> Program:
    """Reorder a perfect nest, given by the names of its loops in the new order."""
    members = [loop(program, name) for name in names]
    depth = {id(s): n for n, s in enumerate(iterate(program.body))}
    top = min(members, key=lambda member: depth[id(member)])
    innermost = max(members, key=lambda member: depth[id(member)])
    body = innermost.body
    for member in reversed(members):
        body = replace(member, body=body)
    return replace_stmt(program, top, body)


def set_kind(program: Program, name: str, kind: LoopKind, number: int = 0) -> Program:
    old = loop(program, name, number)
    return replace_stmt(program, old, replace(old, kind=kind))


def fuse(program: Program, outer: str, inner: str) -> Program:
    first = loop(program, outer)
    second = first.body
    assert isinstance(second, For)
    assert second.variable.name == inner
    variables = (first.variable, second.variable)
    fused = Fused(
        Var(f"{outer}.{inner}"), variables, (first.extent, second.extent), "serial", second.body
    )
    return replace_stmt(program, first, fused)


def split_fused(program: Program, size: int, kind: LoopKind = "serial") -> Program:
    old = next(s for s in iterate(program.body) if isinstance(s, Fused))
    chunk, offset = Var(f"{old.handle.name}.o"), Var(f"{old.handle.name}.i")
    positions = affine(1)
    for extent in old.extents:
        positions = positions * extent
    piece = replace(old, handle=offset, run=Run(chunk, offset, size))
    new = For(chunk, (positions + size - 1) // size, kind, piece)
    return replace_stmt(program, old, new)


def box_below(program: Program, at: Stmt, tensor: Tensor) -> list[tuple[Affine, Affine]]:
    """The box of ``tensor`` that the loops below ``at`` access: origin and shape."""
    extents: dict[Var, Affine] = {}
    for child in iterate(at):
        if child is not at and isinstance(child, For):
            extents[child.variable] = child.extent
        elif child is not at and isinstance(child, Fused):
            extents.update(zip(child.variables, child.extents, strict=True))
    box: list[tuple[Affine, Affine]] = []
    for compute in computes_of(at):
        mapping = dict(zip(compute.stage.variables, compute.binding, strict=False))
        accesses = [
            tuple(substitute(index, mapping) for index in load.indices)
            for load in loads_of(*compute.stage.values)
            if load.tensor is tensor
        ]
        if tensor in compute.stage.tensors:
            accesses.append(compute.binding[: len(compute.stage.axes)])
        for indices in accesses:
            ranges = [bounds(index, extents) for index in indices]
            if not box:
                box = [(low, high - low + 1) for low, high in ranges if True]  # type: ignore[misc]
                continue
            for axis, interval in enumerate(ranges):
                assert interval is not None
                low, size = box[axis]
                first = interval[0] if (interval[0] - low).constant < 0 else low
                last = interval[1]
                end = low + size - 1
                last = last if (last - end).constant > 0 else end
                box[axis] = (first, last - first + 1)
    return box


def copy_stage(target: Tensor, source: Tensor) -> Stage:
    stage_axes = tuple(Axis(Var(f"c{n}"), extent) for n, extent in enumerate(source.shape))
    value = Load(source, tuple(affine(axis.variable) for axis in stage_axes))
    return Stage((target,), stage_axes, (value,), copies=source)


def copy_nest(
    stage: Stage,
    box: list[tuple[Affine, Affine]],
    via: tuple[tuple[Tensor, Tensor], ...] = (),
    guarded: bool = True,
) -> Stmt:
    variables = [Var(f"{stage.name}.c{axis}") for axis in range(len(box))]
    binding = tuple(origin + v for (origin, _), v in zip(box, variables, strict=True))
    guard: tuple[Affine, ...] = ()
    if guarded:
        guard = tuple(
            axis.extent - 1 - index
            for axis, index, (_, size) in zip(stage.axes, binding, box, strict=True)
            if size != axis.extent
        )
    body: Stmt = Compute(stage, binding, guard, via)
    for variable, (_, size) in reversed(list(zip(variables, box, strict=True))):
        body = For(variable, size, "serial", body)
    return body


def local_copy(tensor: Tensor, suffix: str = "local") -> Tensor:
    return Tensor(f"{tensor.name}.{suffix}", tensor.shape, tensor.dtype)


def redirect(stmt: Stmt, source: Tensor, target: Tensor) -> Stmt:
    def visit(child: Stmt) -> Stmt:
        if isinstance(child, Compute) and (
            source in child.stage.tensors
            or any(load.tensor is source for load in loads_of(*child.stage.values))
        ):
            return replace(child, via=(*child.via, (source, target)))
        return child

    return rewrite(stmt, visit)


def cache_read(program: Program, tensor: Tensor, at: str, scope: Scope = "global") -> Program:
    """Copy the box of ``tensor`` that one iteration of ``at`` reads, first thing in its body."""
    outer = loop(program, at)
    box = box_below(program, outer, tensor)
    target = local_copy(tensor)
    stage = copy_stage(target, tensor)
    body = sequence(copy_nest(stage, box), redirect(outer.body, tensor, target))
    inside = Alloc(target, tuple(o for o, _ in box), tuple(s for _, s in box), scope, body)
    program = replace(program, stages=(*program.stages, stage))
    return replace_stmt(program, outer, replace(outer, body=inside))


def cache_write(
    program: Program, tensor: Tensor, at: str, copy_in: bool = False, scope: Scope = "local"
) -> Program:
    """Compute ``tensor`` in a private box under ``at``, then copy it out (and in, if asked)."""
    outer = loop(program, at)
    box = box_below(program, outer, tensor)
    target = local_copy(tensor)
    out_stage, in_stage = copy_stage(tensor, target), copy_stage(target, tensor)
    parts = [redirect(outer.body, tensor, target), copy_nest(out_stage, box)]
    stages = (*program.stages, out_stage)
    if copy_in:
        parts.insert(0, copy_nest(in_stage, box))
        stages = (*stages, in_stage)
    inside = Alloc(
        target, tuple(o for o, _ in box), tuple(s for _, s in box), scope, sequence(*parts)
    )
    program = replace(program, stages=stages)
    return replace_stmt(program, outer, replace(outer, body=inside))


def compute_at(program: Program, stage: Stage, at: str) -> Program:
    """Compute the box of a map stage that one iteration of ``at`` reads, in a private buffer."""

    def is_nest(stmt: Stmt) -> bool:
        while isinstance(stmt, For):
            stmt = stmt.body
        return isinstance(stmt, Compute) and stmt.stage is stage

    def drop(stmt: Stmt) -> Stmt:
        if isinstance(stmt, Alloc) and stmt.tensor is stage.tensor:
            return stmt.body
        if isinstance(stmt, Seq):
            return sequence(*[child for child in stmt.stmts if not is_nest(child)])
        return stmt

    program = transform(program, drop)
    outer = loop(program, at)
    box = box_below(program, outer, stage.tensor)
    body = sequence(copy_nest(stage, box), outer.body)
    inside = Alloc(stage.tensor, tuple(o for o, _ in box), tuple(s for _, s in box), "global", body)
    return replace_stmt(program, outer, replace(outer, body=inside))
