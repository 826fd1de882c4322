"""The rules of form that both grammars share, one small function each.

Input:  a statement and its ``Scope``      Output: a sentence for each breach

A rule is named as a sentence that is true of every program; ``verify`` prints the name. Add one by
writing it and listing it in ``COMMON``, ``SCHEDULED`` or ``LOWERED``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from tensorlang.ir.affine import (
    Affine,
    FloorDiv,
    Min,
    Product,
    SymbolicDiv,
    ValueAtom,
    Var,
    variables_of,
)
from tensorlang.ir.definition import Scalar, Tensor
from tensorlang.ir.lowered import Allocate, Buffer, PrefetchLine, Store
from tensorlang.ir.program import (
    THREAD_AXES,
    Alloc,
    Barrier,
    Compute,
    For,
    Fused,
    If,
    Prefetch,
    Seq,
    Stmt,
)
from tensorlang.ir.walk import loop_variables

Place: TypeAlias = Tensor | Buffer


@dataclass(frozen=True, slots=True)
class Scope:
    """What surrounds a statement: variables with a value, storage, the statements outside."""

    variables: frozenset[Var]
    places: frozenset[Place]
    read_only: frozenset[Place]
    scalars: frozenset[Scalar]
    sizes: frozenset[Var]
    parents: tuple[Stmt, ...] = ()


Rule: TypeAlias = Callable[[Stmt, Scope], Iterator[str]]


def bound_variables(loop: For | Fused) -> tuple[Var, ...]:
    """Return the variables that have a value inside ``loop``."""
    if isinstance(loop, Fused) and loop.run is not None:
        return (*loop.variables, loop.run.offset)
    return loop_variables(loop)


def forms_of(stmt: Stmt) -> tuple[Affine, ...]:
    """Return the index expressions of a statement itself, those of its values left out."""
    match stmt:
        case For():
            return (stmt.extent,)
        case Fused():
            return stmt.extents
        case Alloc() | Prefetch():
            return stmt.origin + stmt.shape
        case PrefetchLine():
            return (stmt.offset,)
        case Allocate():
            return (stmt.buffer.size,)
        case Compute():
            return stmt.binding + stmt.guard
        case If():
            return stmt.condition
        case Store():
            return tuple([offset for _, offset in stmt.targets])
        case Seq() | Barrier():
            return ()


def has_data(form: Affine) -> bool:
    """Tell whether an index expression depends on data."""
    for atom, _ in form.terms:
        stack = [atom]
        while stack:
            match stack.pop():
                case ValueAtom():
                    return True
                case FloorDiv(operand=operand):
                    stack.extend(atom for atom, _ in operand.terms)
                case SymbolicDiv(operand=operand, divisor=divisor):
                    stack.extend(atom for part in (operand, divisor) for atom, _ in part.terms)
                case Product(factors=factors):
                    stack.extend(factors)
                case Min(operands=operands):
                    stack.extend(atom for part in operands for atom, _ in part.terms)
                case Var():
                    pass
    return False


def in_order(variables: frozenset[Var]) -> list[Var]:
    """Return variables in the order in which they were made."""
    return sorted(variables, key=lambda variable: variable.serial)


# --- rules of both grammars ------------------------------------------------------------------


def variables_have_values_where_they_are_used(stmt: Stmt, scope: Scope) -> Iterator[str]:
    """Check that extents, boxes, bindings and addresses are over sizes and the loops around."""
    fused = set(stmt.variables) if isinstance(stmt, Fused) else set[Var]()
    for form in forms_of(stmt):
        for variable in in_order(variables_of(form) - scope.variables - fused):
            yield f"{variable} has no value in {form}"


def control_depends_on_no_data(stmt: Stmt, scope: Scope) -> Iterator[str]:
    """Check that in scheduled programs only the index of what is read is taken from data."""
    for form in forms_of(stmt):
        if has_data(form):
            yield f"{form} depends on data"


def extents_depend_on_no_data(stmt: Stmt, scope: Scope) -> Iterator[str]:
    """Check that lowered programs count iterations and allocate without looking at data."""
    for form in () if isinstance(stmt, If | Store) else forms_of(stmt):
        if has_data(form):
            yield f"{form} depends on data"


def vectorized_loops_have_constant_extents(stmt: Stmt, scope: Scope) -> Iterator[str]:
    """Check that lanes and copies of a body can be counted without the sizes."""
    match stmt:
        case For(kind="vectorized" | "unrolled") if not stmt.extent.is_constant:
            loop = f"{stmt.kind} loop {stmt.variable}"
            yield f"the extent {stmt.extent} of the {loop} is not constant"
        case Fused(kind="vectorized" | "unrolled", run=None) if not all(
            extent.is_constant for extent in stmt.extents
        ):
            yield f"the extents of the {stmt.kind} loop {stmt.handle} are not constant"
        case _:
            pass


def barriers_are_reached_by_all_threads(stmt: Stmt, scope: Scope) -> Iterator[str]:
    """Check that no barrier stands where only some threads of a block arrive."""
    if isinstance(stmt, Barrier):
        for parent in scope.parents:
            if isinstance(parent, For | Fused) and parent.kind in (*THREAD_AXES, "vectorized"):
                handle = parent.variable if isinstance(parent, For) else parent.handle
                yield f"a barrier stands inside the {parent.kind} loop {handle}"


def storage_is_allocated_once(stmt: Stmt, scope: Scope) -> Iterator[str]:
    """Check that no input or output is allocated, nor a tensor inside its own storage."""
    match stmt:
        case Alloc(tensor=place) | Allocate(buffer=place) if place in scope.places:
            yield f"{place} has storage already"
        case _:
            pass


def prefetches_name_storage(stmt: Stmt, scope: Scope) -> Iterator[str]:
    """Check that what is prefetched has storage there, and is no matter of single lanes."""
    match stmt:
        case Prefetch(tensor=place) | PrefetchLine(buffer=place):
            if place not in scope.places:
                yield f"{place} is prefetched and has no storage there"
            for parent in scope.parents:
                if isinstance(parent, For | Fused) and parent.kind == "vectorized":
                    yield f"{place} is prefetched inside a vectorized loop"
        case _:
            pass


COMMON: tuple[Rule, ...] = (
    variables_have_values_where_they_are_used,
    vectorized_loops_have_constant_extents,
    storage_is_allocated_once,
    barriers_are_reached_by_all_threads,
    prefetches_name_storage,
)
