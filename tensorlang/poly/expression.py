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
    seen: set[tuple[int, int]] = set()
    waiting = [(left, right)]
    while waiting:
        one, other = waiting.pop()
        if one is other or (id(one), id(other)) in seen:
            continue
        seen.add((id(one), id(other)))
        inner = _operands_if_alike(one, other)
        if inner is None:
            return False
        waiting.extend(inner)
    return True


def _operands_if_alike(left: Expr, right: Expr) -> list[tuple[Expr, Expr]] | None:
    """Return the pairs of operands still to compare, None if the nodes themselves differ."""
    operands, others = children(left), children(right)
    if (
        type(left) is not type(right)
        or left.dtype is not right.dtype
        or len(operands) != len(others)
    ):
        return None
    pairs = list(zip(operands, others, strict=True))
    match left, right:
        case Const(), Const():
            same = type(left.value) is type(right.value) and repr(left.value) == repr(right.value)
            return pairs if same else None
        case IndexValue(), IndexValue():
            return _values_if_alike((left.index,), (right.index,))
        case Load(), Load() if left.tensor is right.tensor:
            return _values_if_alike(left.indices, right.indices)
        case ScalarRef(), ScalarRef() if left.scalar is right.scalar:
            return pairs
        case Call(), Call() if left.function == right.function:
            return pairs
        case ((Cast() | Bitcast() | Select()), _):
            return pairs
        case _:  # a placeholder is only itself
            return None


def _values_if_alike(
    left: tuple[Affine, ...], right: tuple[Affine, ...]
) -> list[tuple[Expr, Expr]] | None:
    if left != right:
        return None
    pairs: list[tuple[Expr, Expr]] = []
    for one, other in zip(left, right, strict=True):
        atoms = zip(_value_atoms(one), _value_atoms(other), strict=True)
        pairs.extend((a.expr, b.expr) for a, b in atoms)
    return pairs


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
