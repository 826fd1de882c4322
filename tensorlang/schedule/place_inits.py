"""Materialise the init that every reduction implies, before its outermost reduction loop.

Input::                                 Output::

    for i.o in (M + 5) // 6:                for i.o in (M + 5) // 6:
        for k in K:                             for i.i in 6:
            for i.i in 6:                           C[6 * i.o + i.i] = 0
                C[6 * i.o + i.i] += A[...]      for k in K:
                                                    for i.i in 6:
                                                        C[6 * i.o + i.i] += A[...]

An ``if k == 0`` inside the loop would never run where K = 0; the nest above does, so that an empty
sum is zero. The data loops below that place are cloned for the init, with fresh variables of the
same names; the reduction loops are left out, and with them the guards that mention them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeAlias

from tensorlang.ir.affine import Affine, Var, depends_on, substitute, variables_of
from tensorlang.ir.definition import Tensor
from tensorlang.ir.interval import Extents, bounds
from tensorlang.ir.program import EMPTY, Alloc, Compute, For, Fused, Program, Run, Seq, Stmt
from tensorlang.ir.walk import computes_of, iterate, loop_variables, map_children, sequence
from tensorlang.schedule.guards import inside_tensor, tails_of

Path: TypeAlias = tuple[Stmt, ...]
"""The statements around a ``Compute``, outermost first."""


def place_inits(program: Program) -> Program:
    """Return the program in which every "whole" reduction is an "init" nest and an "update".

    The result is what the proof and the interpreter see. Reductions that are decomposed already
    are left alone.
    """
    body, unplaced = _visit(program.body, ())
    assert not unplaced
    return program if body is program.body else replace(program, body=body)


def _visit(stmt: Stmt, path: Path) -> tuple[Stmt, list[tuple[int, Stmt]]]:
    """Return the new statement and the init nests that wait for a place, with its depth."""
    if isinstance(stmt, Compute):
        if not stmt.stage.is_reduction or stmt.part != "whole":
            return stmt, []
        depth = depth_of_place(path, reduction_variables(stmt))
        waiting = [(depth, init_nest(stmt, path[depth:]))]
        stmt = replace(stmt, part="update")
    else:
        waiting: list[tuple[int, Stmt]] = []
        inner_path = (*path, stmt)

        def visit_child(child: Stmt) -> Stmt:
            new, inner = _visit(child, inner_path)
            waiting.extend(inner)
            return new

        stmt = map_children(stmt, visit_child)
        if isinstance(stmt, Seq) and any(isinstance(child, Seq) for child in stmt.stmts):
            stmt = sequence(*stmt.stmts)
    here = [init for depth, init in waiting if depth == len(path)]
    if here:
        stmt = sequence(*here, stmt)
    return stmt, [(depth, init) for depth, init in waiting if depth < len(path)]


def reduction_variables(compute: Compute) -> frozenset[Var]:
    """Return the loop variables that move through the reduction axes of an instance."""
    return _variables_of_all(compute.binding[len(compute.stage.axes) :])


def _variables_of_all(forms: tuple[Affine, ...]) -> frozenset[Var]:
    return frozenset(variable for form in forms for variable in variables_of(form))


def depth_of_place(path: Path, reduction_variables: frozenset[Var]) -> int:
    """Return the index in ``path`` of the outermost reduction loop; its length if there is none."""
    for depth, stmt in enumerate(path):
        loops = stmt if isinstance(stmt, For | Fused) else None
        if loops is None or reduction_variables.isdisjoint(loop_variables(loops)):
            continue
        # The loop over the positions of a fused loop belongs to it.
        run = loops.run if isinstance(loops, Fused) else None
        above = path[depth - 1] if depth else None
        if run is not None and isinstance(above, For) and above.variable is run.chunk:
            return depth - 1
        return depth
    return len(path)


def init_nest(compute: Compute, below: Path) -> Stmt:
    """Return the init of ``compute`` inside clones of the data loops among ``below``."""
    stage = compute.stage
    data_binding = compute.binding[: len(stage.axes)]
    kept = _kept_variables(below, _variables_of_all(data_binding))
    dropped = _extents_below(below, kept)
    fresh = {variable: Var(variable.name) for variable in kept}
    gone = set(dropped)
    bounded = False
    loops: list[For | Fused] = []
    for stmt in below:
        if isinstance(stmt, For | Fused):
            new, exact = _clone(stmt, fresh, dropped)
            loops.extend(new)
            bounded |= not exact
    guard = [form for form in tails_of(compute) if not depends_on(form, gone)]
    if bounded:  # the box that the loops span may be larger than what is updated
        guard.extend(form for form in inside_tensor(compute) if form not in guard)
    nest: Stmt = Compute(
        stage,
        tuple([substitute(form, fresh) for form in data_binding]),
        tuple([substitute(form, fresh) for form in guard]),
        _outer_redirections(compute, below),
        "init",
    )
    for loop in reversed(loops):
        nest = replace(loop, body=nest)
    return nest


def _kept_variables(below: Path, data_variables: frozenset[Var]) -> tuple[Var, ...]:
    """Return the variables below the place that the init needs: those of the data binding.

    A run of a fused loop that is kept whole needs the loop over its positions too.
    """
    kept = [
        variable
        for stmt in below
        if isinstance(stmt, For | Fused)
        for variable in loop_variables(stmt)
        if variable in data_variables
    ]
    for stmt in below:
        if isinstance(stmt, Fused) and stmt.run is not None and set(stmt.variables) <= set(kept):
            kept.append(stmt.run.chunk)
    return tuple(kept)


def _extents_below(below: Path, kept: tuple[Var, ...]) -> Extents:
    """Return the extents of the variables that the init does not have."""
    extents: dict[Var, Affine] = {}
    for stmt in below:
        if isinstance(stmt, For):
            extents[stmt.variable] = stmt.extent
        elif isinstance(stmt, Fused):
            extents.update(zip(stmt.variables, stmt.extents, strict=True))
    return {variable: extent for variable, extent in extents.items() if variable not in kept}


def _clone(
    loop: For | Fused, fresh: dict[Var, Var], dropped: Extents
) -> tuple[list[For | Fused], bool]:
    """Return the init's copies of a loop, and whether they run over exactly what it runs over."""
    gone = set(dropped)
    exact = True

    def extent_of(extent: Affine) -> Affine:
        nonlocal exact
        if depends_on(extent, gone):
            exact = False
            interval = bounds(extent, dropped)
            assert interval is not None, "loop extents never depend on data"
            extent = interval[1]
        return substitute(extent, fresh)

    if isinstance(loop, For):
        if loop.variable not in fresh:
            return [], True
        variable = fresh[loop.variable]
        owner = f"{loop.owner}.init"
        extent = extent_of(loop.extent)
        return [For(variable, extent, loop.kind, EMPTY, loop.tail, owner=owner)], exact
    if all(variable in fresh for variable in loop.variables):
        run = loop.run and Run(fresh[loop.run.chunk], Var(loop.run.offset.name), loop.run.size)
        variables = tuple([fresh[variable] for variable in loop.variables])
        extents = tuple([extent_of(extent) for extent in loop.extents])
        shares = run is not None and loop.run is not None and loop.handle is loop.run.offset
        handle = run.offset if run is not None and shares else Var(loop.handle.name)
        return [Fused(handle, variables, extents, loop.kind, EMPTY, run, loop.tail)], exact
    # Fused over data and reduction alike: the init runs over the data variables alone.
    pairs = zip(loop.variables, loop.extents, strict=True)
    data = [(fresh[variable], extent_of(extent)) for variable, extent in pairs if variable in fresh]
    return [For(variable, extent, "serial", EMPTY) for variable, extent in data], exact


def _outer_redirections(compute: Compute, below: Path) -> tuple[tuple[Tensor, Tensor], ...]:
    """Return the redirections of the write to storage that exists where the init stands."""
    targets = {
        tensor: outer_target(compute.redirect(tensor), below) for tensor in compute.stage.tensors
    }
    return tuple(
        (tensor, target)
        for tensor, target in targets.items()
        if target is not None and target is not tensor
    )


def outer_target(target: Tensor, below: Path) -> Tensor | None:
    """Return where the value comes from that ``target`` has at the beginning of ``below``.

    A copy that lives further in is filled from another place first: that is where an init goes.
    None for storage that begins empty inside.
    """
    inside = {stmt.tensor for stmt in iterate(below[0]) if isinstance(stmt, Alloc)} if below else ()
    filled_from = _first_sources(below)
    seen = {target}
    while target in inside:
        source = filled_from.get(target)
        if source is None or source in seen:
            return None
        target = source
        seen.add(target)
    return target


def _first_sources(below: Path) -> dict[Tensor, Tensor]:
    """Return for each copy below the place what the first statement that fills it copies."""
    found: dict[Tensor, Tensor] = {}
    for copy in computes_of(below[0]) if below else ():
        if copy.stage.copies is not None:
            found.setdefault(copy.redirect(copy.stage.tensor), copy.redirect(copy.stage.copies))
    return found
