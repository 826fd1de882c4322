"""Walks over expressions and statements: substitution, bottom-up rewriting, collection.

Expressions may share nodes, so every walk over them remembers results by identity: the work is
proportional to the nodes, not to the paths.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from tensorlang.ir.affine import Affine, AffineLike, Var, substitute
from tensorlang.ir.expr import (
    Bitcast,
    Call,
    Cast,
    Expr,
    IndexValue,
    Load,
    Placeholder,
    Select,
    children,
    postorder,
)
from tensorlang.ir.lowered import Allocate, BoundsCheck, FlatLoad, PrefetchLine, Store
from tensorlang.ir.program import Alloc, Barrier, Compute, For, Fused, If, Prefetch, Seq, Stmt

# --- expressions -----------------------------------------------------------------------------


def rewrite_expr(expr: Expr, replace_node: Callable[[Expr], Expr]) -> Expr:
    """Return ``expr`` with ``replace_node`` applied to every node, operands first.

    Index expressions are left alone; use :func:`map_indices` for those.
    """
    done: dict[int, Expr] = {}
    for node in postorder((expr,), children):
        done[id(node)] = replace_node(_with_children(node, done))
    return done[id(expr)]


def _with_children(node: Expr, done: Mapping[int, Expr]) -> Expr:
    """Return ``node`` on the rewritten operands, itself where none of them changed."""
    old = children(node)
    new = tuple([done[id(operand)] for operand in old])
    if all(one is other for one, other in zip(new, old, strict=True)):
        return node
    match node:
        case Call():
            return Call(node.function, new, node.dtype)
        case Cast():
            return Cast(new[0], node.dtype)
        case Bitcast():
            return Bitcast(new[0], node.dtype)
        case Select():
            return Select(new[0], new[1], new[2], node.dtype)
        case _:
            return node


def map_indices(expr: Expr, transform: Callable[[Affine], Affine]) -> Expr:
    """Return ``expr`` with ``transform`` applied to each index expression in it."""

    def visit(node: Expr) -> Expr:
        match node:
            case IndexValue():
                return IndexValue(transform(node.index), node.dtype)
            case Load():
                return Load(node.tensor, tuple([transform(index) for index in node.indices]))
            case FlatLoad():
                checks = tuple(
                    [
                        BoundsCheck(transform(c.index), transform(c.extent), c.site)
                        for c in node.checks
                    ]
                )
                return FlatLoad(node.buffer, transform(node.offset), checks)
            case _:
                return node

    return rewrite_expr(expr, visit)


def substitute_in_expr(expr: Expr, mapping: Mapping[Var, AffineLike]) -> Expr:
    """Return ``expr`` with variables replaced in all of its index expressions."""
    return map_indices(expr, lambda index: substitute(index, mapping)) if mapping else expr


def replace_placeholders(expr: Expr, values: Mapping[Placeholder, Expr]) -> Expr:
    """Return a combiner's expression with its placeholders replaced."""
    return rewrite_expr(expr, lambda node: values[node] if isinstance(node, Placeholder) else node)


# --- statements ------------------------------------------------------------------------------


def rewrite(stmt: Stmt, transform: Callable[[Stmt], Stmt]) -> Stmt:
    """Return ``stmt`` with ``transform`` applied to every statement, inner ones first."""
    return transform(map_children(stmt, lambda child: rewrite(child, transform)))


def map_children(stmt: Stmt, transform: Callable[[Stmt], Stmt]) -> Stmt:
    """Return ``stmt`` with ``transform`` applied to its direct children."""
    match stmt:
        case For() | Fused() | Alloc() | Allocate():
            body = transform(stmt.body)
            return stmt if body is stmt.body else replace(stmt, body=body)
        case Seq():
            stmts = tuple([transform(child) for child in stmt.stmts])
            same = all(new is old for new, old in zip(stmts, stmt.stmts, strict=True))
            return stmt if same else Seq(stmts)
        case If():
            otherwise = None if stmt.otherwise is None else transform(stmt.otherwise)
            return If(stmt.condition, transform(stmt.then), otherwise)
        case Compute() | Store() | Barrier() | Prefetch() | PrefetchLine():
            return stmt


def children_of(stmt: Stmt) -> tuple[Stmt, ...]:
    """Return the direct children of ``stmt``."""
    match stmt:
        case For() | Fused() | Alloc() | Allocate():
            return (stmt.body,)
        case Seq():
            return stmt.stmts
        case If():
            return (stmt.then,) if stmt.otherwise is None else (stmt.then, stmt.otherwise)
        case Compute() | Store() | Barrier() | Prefetch() | PrefetchLine():
            return ()


def iterate(stmt: Stmt) -> Iterator[Stmt]:
    """Yield ``stmt`` and every statement below it, in the order in which they are written."""
    yield stmt
    for child in children_of(stmt):
        yield from iterate(child)


def computes_of(stmt: Stmt) -> tuple[Compute, ...]:
    """Return the computing statements below ``stmt``."""
    return tuple(child for child in iterate(stmt) if isinstance(child, Compute))


def substitute_in_stmt(stmt: Stmt, mapping: Mapping[Var, AffineLike]) -> Stmt:
    """Return ``stmt`` with variables replaced in extents, boxes, bindings, guards and addresses."""
    if not mapping:
        return stmt

    def forms(indices: tuple[Affine, ...]) -> tuple[Affine, ...]:
        return tuple([substitute(index, mapping) for index in indices])

    def visit(node: Stmt) -> Stmt:
        match node:
            case For():
                return replace(node, extent=substitute(node.extent, mapping))
            case Fused():
                return replace(node, extents=forms(node.extents))
            case Alloc() | Prefetch():
                return replace(node, origin=forms(node.origin), shape=forms(node.shape))
            case PrefetchLine():
                return replace(node, offset=substitute(node.offset, mapping))
            case Compute():
                return replace(node, binding=forms(node.binding), guard=forms(node.guard))
            case If():
                return replace(node, condition=forms(node.condition))
            case Store():
                targets = tuple([(b, substitute(offset, mapping)) for b, offset in node.targets])
                values = tuple([substitute_in_expr(value, mapping) for value in node.values])
                return Store(targets, values)
            case Seq() | Allocate() | Barrier():
                return node

    return rewrite(stmt, visit)


def sequence(*stmts: Stmt) -> Stmt:
    """Return the statements in order, with nested sequences flattened; one stands for itself."""
    flat: list[Stmt] = []
    for stmt in stmts:
        flat.extend(stmt.stmts if isinstance(stmt, Seq) else (stmt,))
    return flat[0] if len(flat) == 1 else Seq(tuple(flat))


def loop_variables(loop: For | Fused) -> tuple[Var, ...]:
    """Return the variables that a loop gives values to."""
    return (loop.variable,) if isinstance(loop, For) else loop.variables
