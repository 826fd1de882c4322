"""Run full register tiles without guards, and the others with them.

Input::                                         Output::

    for j.o in (N + 15) // 16:                      for j.o in (N + 15) // 16:
        vectorized for j.i in 16:                       if 16 * j.o + 15 < N:
            Y[16 * j.o + j.i] = ...  # if j < N             vectorized for j.i in 16:
                                                                Y[16 * j.o + j.i] = ...
                                                        else:
                                                            vectorized for j.i in 16:
                                                                Y[...] = ...  # if j < N

The test stands just outside the register tile: in the body of the innermost loop that the guards
of an instance depend on once its unrolled and vectorized loops are taken out. Guards of the data
axes are tested together, so that rows and columns make two versions, not four; the guard of an
unrolled reduction loop is tested inside. Instances never change, only the guards that are known.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from tensorlang.ir.affine import Affine, Var, variables_of
from tensorlang.ir.program import Alloc, Compute, For, Fused, If, Program, Seq, Stmt
from tensorlang.ir.walk import children_of, loop_variables, map_children, sequence
from tensorlang.lower.extremes import least

_DEEPEST = 2
"""How many tests may stand inside one another: each doubles the code of a tile."""


@dataclass(frozen=True, slots=True)
class _Test:
    """A condition under which guards of an instance hold throughout its tile."""

    holds: Affine
    compute: Compute
    guard: Affine


_Tests: TypeAlias = Mapping[int, list[_Test]]
"""The tests to make around each statement, by its id."""

_Met: TypeAlias = frozenset[tuple[int, Affine]]
"""Guards, with the id of their instance, that hold in the present version."""


def version_tiles(program: Program) -> Program:
    """Return ``program`` with an unguarded version of each register tile.

    Loops with ``tail="guard"`` or ``tail="mask"`` keep their guards in one version.
    """
    tests: dict[int, list[_Test]] = {}
    _collect(program.body, (), tests)
    return replace(program, body=_visit(program.body, tests, frozenset(), 0))


def _collect(stmt: Stmt, path: tuple[Stmt, ...], tests: dict[int, list[_Test]]) -> None:
    if isinstance(stmt, Compute):
        for guards in _groups(stmt):
            found = [test for form in guards if (test := _test(stmt, form, path)) is not None]
            if found:
                depth = max(_depth_of_registers(path), *(depth for depth, _ in found))
                anchor = path[depth] if depth < len(path) else stmt
                tests.setdefault(id(anchor), []).extend(test for _, test in found)
    for child in children_of(stmt):
        _collect(child, (*path, stmt), tests)


def _groups(compute: Compute) -> tuple[list[Affine], list[Affine]]:
    """Split the guards into those of the data axes and those of the reduction."""
    reduction: set[Var] = set()
    for form in compute.binding[len(compute.stage.axes) :]:
        reduction |= variables_of(form)
    data = [form for form in compute.guard if variables_of(form).isdisjoint(reduction)]
    return data, [form for form in compute.guard if form not in data]


def _test(compute: Compute, form: Affine, path: tuple[Stmt, ...]) -> tuple[int, _Test] | None:
    """Return the test for one guard and the depth in ``path`` of the statement it stands around."""
    loops = [(depth, loop) for depth, loop in enumerate(path) if isinstance(loop, For)]
    tile = {loop.variable: loop for _, loop in loops if _is_tile_loop(loop)}
    mine = [tile[variable] for variable in variables_of(form) if variable in tile]
    if not mine or any(loop.tail in ("guard", "mask") for loop in mine):
        return None
    holds = least(form, {variable: loop.extent for variable, loop in tile.items()})
    if holds is None or (holds.is_constant and holds.constant < 0):
        return None
    free = variables_of(holds)
    fixed = [
        depth
        for depth, loop in enumerate(path)
        if isinstance(loop, For | Fused) and not free.isdisjoint(loop_variables(loop))
    ]
    test = _Test(holds, compute, form)
    if fixed:
        return _below_run(path, fixed[-1]) + 1, test
    return min(depth for depth, loop in loops if _is_tile_loop(loop)), test


def _depth_of_registers(path: tuple[Stmt, ...]) -> int:
    """Return the depth of the outermost storage in registers, which a test never moves out of."""
    for depth, stmt in enumerate(path):
        if isinstance(stmt, Alloc) and stmt.scope == "local":
            return depth
    return 0


def _below_run(path: tuple[Stmt, ...], depth: int) -> int:
    """Nothing may stand between the position loop of a fused loop and its run."""
    inner = path[depth + 1] if depth + 1 < len(path) else None
    return depth + 1 if isinstance(inner, Fused) and inner.run is not None else depth


def _is_tile_loop(loop: For) -> bool:
    return loop.kind in ("unrolled", "vectorized") and loop.extent.is_constant


def _visit(stmt: Stmt, tests: _Tests, met: _Met, depth: int) -> Stmt:
    mine = tests.get(id(stmt))
    if mine is None or depth == _DEEPEST:
        return _visit_children(stmt, tests, met, depth)
    return _version(stmt, mine, tests, met, depth)


def _visit_children(stmt: Stmt, tests: _Tests, met: _Met, depth: int) -> Stmt:
    if isinstance(stmt, Compute):
        guard = tuple([form for form in stmt.guard if (id(stmt), form) not in met])
        return stmt if len(guard) == len(stmt.guard) else replace(stmt, guard=guard)
    return map_children(stmt, lambda child: _visit(child, tests, met, depth))


def _version(stmt: Stmt, mine: list[_Test], tests: _Tests, met: _Met, depth: int) -> Stmt:
    """Put the test around as little of ``stmt`` as holds all of its instances."""
    if isinstance(stmt, Seq):
        children: list[Stmt] = []
        for child in stmt.stmts:
            within = [test for test in mine if _holds(child, test.compute)]
            children.append(
                _version(child, within, tests, met, depth)
                if within
                else _visit(child, tests, met, depth)
            )
        return sequence(*children)
    if isinstance(stmt, Alloc) and stmt.scope != "local":
        return replace(stmt, body=_version(stmt.body, mine, tests, met, depth))
    mine = [*mine, *(test for test in tests.get(id(stmt), ()) if test not in mine)]
    conditions = tuple(dict.fromkeys(test.holds for test in mine))
    known = met | {(id(test.compute), test.guard) for test in mine}
    unguarded = _visit_children(stmt, tests, known, depth + 1)
    return If(conditions, unguarded, _visit_children(stmt, tests, met, depth + 1))


def _holds(stmt: Stmt, compute: Compute) -> bool:
    return stmt is compute or any(_holds(child, compute) for child in children_of(stmt))
