"""Expressions compared node by node, and a stage's value substituted for loads of its tensor.

Input:  ``e[i, j] / total[i]`` and the stage ``e[i, j] = exp(X[i, j])``
Output: ``exp(X[i, j]) / total[i]``

This is the proof's own substitution, made independently of the primitive that inlines.
"""

from __future__ import annotations

from collections.abc import Iterator

from tensorlang.dtypes import bf16, f16
from tensorlang.ir.affine import (
    Affine,
    AffineLike,
    Atom,
    FloorDiv,
    Min,
    Product,
    SymbolicDiv,
    ValueAtom,
    map_atoms,
)
from tensorlang.ir.definition import Stage, Tensor
from tensorlang.ir.expr import (
    Bitcast,
    Call,
    Cast,
    Const,
    Expr,
    IndexValue,
    Load,
    ScalarRef,
    Select,
    children,
    index_from_value,
)
from tensorlang.ir.walk import rewrite_expr, substitute_in_expr


def inline(expr: Expr, inlined: Stage) -> Expr:
    """Return ``expr`` with the loads of the tensors of ``inlined`` replaced by its values."""
    values = dict(zip(inlined.tensors, inlined.values, strict=True))

    def visit(node: Expr) -> Expr:
        match node:
            case IndexValue():
                return IndexValue(_inline_in_index(node.index, inlined), node.dtype)
            case Load():
                indices = tuple(_inline_in_index(index, inlined) for index in node.indices)
                if node.tensor not in values:
                    return Load(node.tensor, indices)
                mapping = {a.variable: i for a, i in zip(inlined.axes, indices, strict=True)}
                return _rounded(substitute_in_expr(values[node.tensor], mapping), node.tensor)
            case _:
                return node

    return rewrite_expr(expr, visit)


def _inline_in_index(index: Affine, inlined: Stage) -> Affine:
    def replace(atom: Atom) -> AffineLike:
        if isinstance(atom, ValueAtom):
            return index_from_value(inline(atom.expr, inlined))
        return atom

    return map_atoms(index, replace)


def _rounded(value: Expr, tensor: Tensor) -> Expr:
    """Round as storing the value would: also when the stage is gone."""
    if value.dtype is tensor.dtype and tensor.dtype not in (f16, bf16):
        return value
    return Cast(value, tensor.dtype)


def is_same(left: Expr, right: Expr) -> bool:
    """Whether two expressions are built alike, bit for bit in their constants."""
    return _is_same(left, right, set())


def _is_same(left: Expr, right: Expr, seen: set[tuple[int, int]]) -> bool:
    if left is right or (id(left), id(right)) in seen:
        return True
    operands, others = children(left), children(right)
    alike = (
        type(left) is type(right)
        and left.dtype is right.dtype
        and len(operands) == len(others)
        and _is_same_node(left, right, seen)
        and all(_is_same(a, b, seen) for a, b in zip(operands, others, strict=True))
    )
    if alike:
        seen.add((id(left), id(right)))
    return alike


def _is_same_node(left: Expr, right: Expr, seen: set[tuple[int, int]]) -> bool:
    """Compare what two nodes of one type hold besides their operands."""
    if isinstance(left, Const) and isinstance(right, Const):
        return type(left.value) is type(right.value) and repr(left.value) == repr(right.value)
    if isinstance(left, IndexValue) and isinstance(right, IndexValue):
        return _is_same_index(left.index, right.index, seen)
    if isinstance(left, Load) and isinstance(right, Load):
        return left.tensor is right.tensor and all(
            _is_same_index(a, b, seen) for a, b in zip(left.indices, right.indices, strict=True)
        )
    if isinstance(left, ScalarRef) and isinstance(right, ScalarRef):
        return left.scalar is right.scalar
    if isinstance(left, Call) and isinstance(right, Call):
        return left.function == right.function
    # A conversion or a selection is its operands and its dtype; a placeholder is only itself.
    return isinstance(left, Cast | Bitcast | Select)


def _is_same_index(left: Affine, right: Affine, seen: set[tuple[int, int]]) -> bool:
    if left != right:
        return False
    pairs = zip(_value_atoms(left), _value_atoms(right), strict=True)
    return all(_is_same(a.expr, b.expr, seen) for a, b in pairs)


def _value_atoms(index: Affine) -> Iterator[ValueAtom]:
    for atom, _ in index.terms:
        yield from _value_atoms_of(atom)


def _value_atoms_of(atom: Atom) -> Iterator[ValueAtom]:
    match atom:
        case ValueAtom():
            yield atom
        case FloorDiv():
            yield from _value_atoms(atom.operand)
        case SymbolicDiv():
            yield from _value_atoms(atom.operand)
            yield from _value_atoms(atom.divisor)
        case Product():
            for factor in atom.factors:
                yield from _value_atoms_of(factor)
        case Min():
            for operand in atom.operands:
                yield from _value_atoms(operand)
        case _:
            pass
