"""The rules of form of scheduled programs, and of the stages that they compute.

Input:  a statement and its ``Scope``, or a stage      Output: a sentence for each breach
"""

from __future__ import annotations

from collections.abc import Iterator

from tensorlang.ir.affine import variables_of
from tensorlang.ir.definition import Combiner, Stage
from tensorlang.ir.expr import Placeholder, ScalarRef, iterate, loads_of
from tensorlang.ir.lowered import Allocate, FlatLoad, PrefetchLine, Store
from tensorlang.ir.program import Alloc, Compute, For, Fused, If, Stmt
from tensorlang.ir.routines import routine_faults
from tensorlang.ir.verify_expr import agree, expr_faults, unknown_variables
from tensorlang.ir.verify_rules import (
    COMMON,
    Rule,
    Scope,
    control_depends_on_no_data,
    in_order,
)


def lowered_statements_are_absent(stmt: Stmt, scope: Scope) -> Iterator[str]:
    """Check that there are no stores, flat buffers and conditions, which lowering makes."""
    if isinstance(stmt, Store | Allocate | PrefetchLine | If):
        yield f"{type(stmt).__name__} belongs to lowered programs"


def bindings_cover_the_axes(stmt: Stmt, scope: Scope) -> Iterator[str]:
    """Check that an instance binds data axes, then reduction axes; an init the former only."""
    if isinstance(stmt, Compute):
        axes = stmt.stage.axes if stmt.part == "init" else stmt.stage.all_axes
        if len(stmt.binding) != len(axes):
            yield f"{stmt.stage.name} binds {len(stmt.binding)} of its {len(axes)} axes"


def only_reductions_have_parts(stmt: Stmt, scope: Scope) -> Iterator[str]:
    """Check that a map is one statement: "init" and "update" are halves of a reduction."""
    if isinstance(stmt, Compute) and stmt.part != "whole" and stmt.stage.combiner is None:
        yield f"{stmt.stage.name} is no reduction and has an {stmt.part}"


def storage_ranks_agree(stmt: Stmt, scope: Scope) -> Iterator[str]:
    """Check that a box, its origin and its layout have as many axes as the tensor."""
    if not isinstance(stmt, Alloc):
        return
    rank = len(stmt.tensor.shape)
    if len(stmt.origin) != rank or len(stmt.shape) != rank:
        yield f"{stmt.tensor} has {rank} axes, its box {len(stmt.origin)} and {len(stmt.shape)}"
    if stmt.layout is None:
        return
    if len(stmt.layout.variables) != rank:
        yield f"{stmt.tensor} has {rank} axes, its layout {len(stmt.layout.variables)}"
    if len(stmt.layout.indices) != len(stmt.layout.shape):
        yield f"the layout of {stmt.tensor} has indices and a shape of different lengths"
    known = scope.sizes | set(stmt.layout.variables)
    for form in stmt.layout.indices:
        for variable in in_order(variables_of(form) - known):
            yield f"the layout of {stmt.tensor} uses {variable}"
    for form in stmt.layout.shape:
        for variable in in_order(variables_of(form) - scope.sizes):
            yield f"the layout of {stmt.tensor} has a shape with {variable}"


def redirections_keep_dtype_and_rank(stmt: Stmt, scope: Scope) -> Iterator[str]:
    """Check that a copy is like what it stands for, and that a tensor has one copy at a time."""
    if not isinstance(stmt, Compute):
        return
    sources = [source for source, _ in stmt.via]
    for number, (source, target) in enumerate(stmt.via):
        if source.dtype is not target.dtype or len(source.shape) != len(target.shape):
            yield f"{source} is redirected to {target}, of another dtype or rank"
        if source in sources[:number]:
            yield f"{source} is redirected twice"


def accesses_have_storage(stmt: Stmt, scope: Scope) -> Iterator[str]:
    """Check that what an instance accesses is the caller's, or allocated around it."""
    if not isinstance(stmt, Compute):
        return
    for tensor in map(stmt.redirect, stmt.stage.tensors):
        if tensor in scope.read_only:
            yield f"{stmt.stage.name} writes the input {tensor}"
        elif tensor not in scope.places:
            yield f"{stmt.stage.name} writes {tensor}, which has no storage there"
    if stmt.part != "init":
        for load in loads_of(*stmt.stage.values):
            if stmt.redirect(load.tensor) not in scope.places:
                target = stmt.redirect(load.tensor)
                yield f"{stmt.stage.name} reads {target}, which has no storage there"


def runs_stand_directly_in_their_position_loops(stmt: Stmt, scope: Scope) -> Iterator[str]:
    """Check that nothing stands between position and run, or the order would be another."""
    if isinstance(stmt, Fused) and stmt.run is not None:
        parent = scope.parents[-1] if scope.parents else None
        if not isinstance(parent, For) or parent.variable is not stmt.run.chunk:
            yield f"{stmt.handle} is a run of {stmt.run.chunk} and not the body of that loop"
        if stmt.run.size < 1:
            yield f"{stmt.handle} is a run of {stmt.run.size} positions"


# --- rules of stages -------------------------------------------------------------------------


def stage_faults(stage: Stage, scope: Scope) -> Iterator[str]:
    """Yield what is wrong with a stage itself: counts, dtypes, variables, where states stand."""
    combiner = stage.combiner
    states = () if combiner is None else combiner.result + combiner.identity
    yield from expr_faults(*stage.values, *states)
    yield from _value_faults(stage)
    known = scope.sizes | set(stage.variables)
    yield from unknown_variables(stage.values, known)
    for form in stage.predicate:
        for variable in in_order(variables_of(form) - known):
            yield f"{variable} is used where it has no value"
    if combiner is not None:
        yield from _combiner_faults(combiner, len(stage.tensors))
    elif stage.reduction_axes or stage.predicate:
        yield "reduction axes or a predicate, and no combiner"
    for node in iterate(*stage.values, *states):
        if isinstance(node, FlatLoad):
            yield f"{node.buffer} is a flat buffer"
        if isinstance(node, ScalarRef) and node.scalar not in scope.scalars:
            yield f"{node.scalar.name} is no parameter"


def _value_faults(stage: Stage) -> Iterator[str]:
    if stage.routine is not None:
        yield from routine_faults(stage)
        return
    if len(stage.values) != len(stage.tensors):
        yield f"{len(stage.tensors)} tensors and {len(stage.values)} values"
    for tensor, value in zip(stage.tensors, stage.values, strict=False):
        if not agree(tensor.dtype, value.dtype):
            yield f"{tensor} has dtype {tensor.dtype.name} and its value {value.dtype.name}"
        if len(tensor.shape) != len(stage.axes):
            yield f"{tensor} has {len(tensor.shape)} axes and its stage {len(stage.axes)}"
    if any(isinstance(node, Placeholder) for node in iterate(*stage.values)):
        yield "a state stands outside a combiner"


def _combiner_faults(combiner: Combiner, width: int) -> Iterator[str]:
    parts = (combiner.left, combiner.right, combiner.result, combiner.identity)
    if any(len(part) != width for part in parts):
        yield f"{width} tensors and a combiner of another width"
    states = combiner.left + combiner.right
    for node in iterate(*combiner.result, *combiner.identity):
        if isinstance(node, Placeholder) and node not in states:
            yield f"the combiner uses {node.name}, which is no part of its states"
    for state, result in zip(combiner.left, combiner.result, strict=False):
        if not agree(state.dtype, result.dtype):
            yield f"the state {state.name} of {state.dtype.name} becomes {result.dtype.name}"


SCHEDULED: tuple[Rule, ...] = (
    *COMMON,
    control_depends_on_no_data,
    lowered_statements_are_absent,
    storage_ranks_agree,
    bindings_cover_the_axes,
    only_reductions_have_parts,
    redirections_keep_dtype_and_rank,
    accesses_have_storage,
    runs_stand_directly_in_their_position_loops,
)
