"""The rules of form of lowered programs.

Input:  a statement and its ``Scope``      Output: a sentence for each breach
"""

from __future__ import annotations

from collections.abc import Iterator

from tensorlang.ir.expr import Expr, Load, Placeholder, ScalarRef, iterate
from tensorlang.ir.lowered import Allocate, FlatLoad, Store
from tensorlang.ir.program import Alloc, Compute, For, Fused, If, Prefetch, Seq, Stmt
from tensorlang.ir.verify_expr import agree, expr_faults, unknown_variables
from tensorlang.ir.verify_rules import COMMON, Rule, Scope, extents_depend_on_no_data
from tensorlang.ir.walk import iterate as iterate_stmts


def scheduled_statements_are_absent(stmt: Stmt, scope: Scope) -> Iterator[str]:
    """Check that instances, fused loops, boxes and unrolled loops are gone after lowering."""
    if isinstance(stmt, Compute | Fused | Alloc | Prefetch):
        yield f"{type(stmt).__name__} belongs to scheduled programs"
    if isinstance(stmt, For) and stmt.kind == "unrolled":
        yield f"{stmt.variable} is still to be unrolled"


def vectorized_loops_hold_stores_and_masks(stmt: Stmt, scope: Scope) -> Iterator[str]:
    """Check that inside a vectorized loop there are no loops and no allocations."""
    if isinstance(stmt, For) and stmt.kind == "vectorized":
        for inner in iterate_stmts(stmt.body):
            if not isinstance(inner, Seq | If | Store):
                yield f"{type(inner).__name__} stands inside the vectorized loop {stmt.variable}"


def stores_have_storage(stmt: Stmt, scope: Scope) -> Iterator[str]:
    """Check that what a store accesses is the caller's, or allocated around it."""
    if not isinstance(stmt, Store):
        return
    if len(stmt.targets) != len(stmt.values):
        yield f"{len(stmt.targets)} targets and {len(stmt.values)} values"
    for buffer, _ in stmt.targets:
        if buffer in scope.read_only:
            yield f"the input {buffer} is written"
        elif buffer not in scope.places:
            yield f"{buffer} is written and not allocated there"
    for node in iterate(*stmt.values):
        if isinstance(node, FlatLoad) and node.buffer not in scope.places:
            yield f"{node.buffer} is read and not allocated there"


def stored_values_are_well_formed(stmt: Stmt, scope: Scope) -> Iterator[str]:
    """Check that values have the dtype of their buffer, and no node of scheduled programs."""
    if not isinstance(stmt, Store):
        return
    for (buffer, _), value in zip(stmt.targets, stmt.values, strict=False):
        if not agree(buffer.dtype, value.dtype):
            yield f"{buffer} has dtype {buffer.dtype.name} and its value {value.dtype.name}"
    yield from expr_faults(*stmt.values)
    yield from unknown_variables(stmt.values, scope.variables)
    for node in iterate(*stmt.values):
        yield from _leftover(node, scope)


def _leftover(node: Expr, scope: Scope) -> Iterator[str]:
    match node:
        case Load():
            yield f"{node.tensor} is not a flat buffer"
        case Placeholder():
            yield f"{node.name} is the state of a combiner"
        case ScalarRef() if node.scalar not in scope.scalars:
            yield f"{node.scalar.name} is no parameter"
        case _:
            pass


def local_buffers_have_constant_sizes(stmt: Stmt, scope: Scope) -> Iterator[str]:
    """Check that what is meant for registers has a size known to the compiler."""
    if isinstance(stmt, Allocate):
        buffer = stmt.buffer
        if buffer.scope == "local" and not buffer.size.is_constant:
            yield f"the local buffer {buffer} has the size {buffer.size}"


LOWERED: tuple[Rule, ...] = (
    *COMMON,
    extents_depend_on_no_data,
    scheduled_statements_are_absent,
    vectorized_loops_hold_stores_and_masks,
    stores_have_storage,
    stored_values_are_well_formed,
    local_buffers_have_constant_sizes,
)
