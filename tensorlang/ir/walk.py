"""Walks over expressions and statements: substitution, bottom-up rewriting, collection.

Expressions may share nodes, so every walk over them remembers results by identity: the work is
proportional to the nodes, not to the paths.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TypeAlias

from tensorlang.ir.affine import Affine, AffineLike, ValueAtom, Var, substitute
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
    index_forms,
    index_from_value,
    postorder,
)
from tensorlang.ir.lowered import Allocate, BoundsCheck, FlatLoad, PrefetchLine, Store
from tensorlang.ir.program import Alloc, Barrier, Compute, For, Fused, If, Prefetch, Seq, Stmt

# --- expressions -----------------------------------------------------------------------------


Done: TypeAlias = dict[int, tuple[Expr, Expr]]
"""Nodes and what became of them, by identity; a node is kept so that its id is not used again."""


def rewrite_expr(
    expr: Expr, replace_node: Callable[[Expr], Expr], done: Done | None = None
) -> Expr:
    """Return ``expr`` with ``replace_node`` applied to every node, operands first.

    Index expressions are left alone; use :func:`map_indices` for those. With ``done``, nodes that
    were rewritten before, by the same function, are not looked at again.
    """
    known: Done = {} if done is None else done

    def operands(node: Expr) -> tuple[Expr, ...]:
        return () if id(node) in known else children(node)

    for node in postorder((expr,), operands):
        if id(node) not in known:
            new = with_children(node, [known[id(operand)][1] for operand in children(node)])
            known[id(node)] = (node, replace_node(new))
    return known[id(expr)][1]


def with_children(node: Expr, operands: list[Expr]) -> Expr:
    """Return ``node`` on other operands, itself where none of them changed."""
    new = tuple(operands)
    if all(one is other for one, other in zip(new, children(node), strict=True)):
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
    return rewrite_expr(expr, lambda node: with_indices(node, transform))


def with_indices(node: Expr, transform: Callable[[Affine], Affine]) -> Expr:
    """Return a node with other index expressions, itself where none of them changed."""
    old = index_forms(node)
    if not old:
        return node
    new = tuple([transform(index) for index in old])
    if all(one is other for one, other in zip(new, old, strict=True)):
        return node
    match node:
        case IndexValue():
            return IndexValue(new[0], node.dtype)
        case Load():
            return Load(node.tensor, new)
        case FlatLoad():
            checks = tuple(
                [
                    BoundsCheck(index, extent, check.site)
                    for check, index, extent in zip(node.checks, new[1::2], new[2::2], strict=True)
                ]
            )
            return FlatLoad(node.buffer, new[0], checks)
        case _:
            return node


def substitute_in_expr(expr: Expr, mapping: Mapping[Var, AffineLike]) -> Expr:
    """Return ``expr`` with variables replaced in all of its index expressions."""
    return Substitution(mapping).expr(expr) if mapping else expr


class Substitution:
    """Replaces variables in any number of expressions, in what they share once.

    An index that is taken from data holds an expression, whose loads have such indices again: in
    a search over a table each step mentions the one before several times, and without a memory
    the work would double with every step.
    """

    def __init__(self, mapping: Mapping[Var, AffineLike]) -> None:
        self.mapping = mapping
        self._exprs: Done = {}
        self._values: dict[ValueAtom, AffineLike] = {}

    def expr(self, expr: Expr) -> Expr:
        """Return a value expression with the variables replaced."""
        return rewrite_expr(expr, lambda node: with_indices(node, self.index), self._exprs)

    def index(self, index: Affine) -> Affine:
        """Return an index expression with the variables replaced."""
        return substitute(index, self.mapping, self.value)

    def value(self, atom: ValueAtom) -> AffineLike:
        """Return what takes the place of a value that is taken from data."""
        if atom.variables.isdisjoint(self.mapping):
            return atom
        known = self._values.get(atom)
        if known is None:
            known = self._values[atom] = index_from_value(self.expr(atom.expr))
        return known


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
    replaced = Substitution(mapping)

    def forms(indices: tuple[Affine, ...]) -> tuple[Affine, ...]:
        return tuple([replaced.index(index) for index in indices])

    def visit(node: Stmt) -> Stmt:
        match node:
            case For():
                return replace(node, extent=replaced.index(node.extent))
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
                targets = tuple([(b, replaced.index(offset)) for b, offset in node.targets])
                values = tuple([replaced.expr(value) for value in node.values])
                return replace(node, targets=targets, values=values)
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
