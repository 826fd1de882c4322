"""Evaluates value expressions on whole arrays at once.

Input:  ``X[i + 1] * 2`` with i an array of points
Output: an array that broadcasts against those points

Every node is evaluated once and everywhere, with indices clipped, and ``where`` selects
afterwards. Only if an index leaves its tensor somewhere, it is worked out from the conditions where
that load really happens; if it does there, that is an IndexError.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from typing import cast as typed

import numpy as np

from tensorlang.dtypes import DType, bf16, evaluation_dtype, f16, to_numpy
from tensorlang.interpreter import arithmetic
from tensorlang.ir.affine import (
    Affine,
    Atom,
    FloorDiv,
    Min,
    Product,
    SymbolicDiv,
    ValueAtom,
    Var,
)
from tensorlang.ir.definition import Scalar, Tensor
from tensorlang.ir.expr import (
    Bitcast,
    Call,
    Cast,
    Const,
    Expr,
    IndexValue,
    Load,
    Placeholder,
    ScalarRef,
    Select,
    children,
    index_values,
    iterate,
)

Array = Any
"""An ndarray, or a NumPy scalar."""


@dataclass(slots=True, eq=False)
class Environment:
    """What expressions refer to; ``mask`` is true at the points that are really computed."""

    arrays: Mapping[Tensor, np.ndarray[Any, Any]]
    variables: Mapping[Var, Array]
    scalars: Mapping[Scalar, Array] = field(default_factory=dict[Scalar, Any])
    placeholders: Mapping[Placeholder, Array] = field(default_factory=dict[Placeholder, Any])
    mask: Array = True
    memo: dict[int, tuple[Expr, Array]] = field(default_factory=dict[int, tuple[Expr, Any]])
    outside: dict[int, list[_Outside]] = field(default_factory=dict[int, "list[_Outside]"])


@dataclass(frozen=True, slots=True, eq=False)
class _Outside:
    """Points at which an index of ``load`` leaves its tensor, if the load happens there."""

    load: Load
    axis: int
    index: Array
    extent: int
    points: Array


def evaluate_expr(expr: Expr, env: Environment) -> Array:
    """Return the value of ``expr`` at every point of ``env``, in its evaluation dtype.

    Raises IndexError where a load that happens leaves its tensor.
    """
    if id(expr) not in env.memo:
        for node in iterate(expr):
            if id(node) not in env.memo:
                # the node is kept too: its id is not used again
                env.memo[id(node)] = (node, _evaluate(node, env))
    if env.outside:
        _check_indices(expr, env)
    return env.memo[id(expr)][1]


def _check_indices(expr: Expr, env: Environment) -> None:
    """Raise IndexError if a load below ``expr`` is needed where it leaves its tensor.

    A node is needed where one of its users is, and by the branch that it stands in.
    """
    nodes = list(iterate(expr))
    needed: dict[int, Array] = {id(node): np.False_ for node in nodes}
    needed[id(expr)] = env.mask
    for node in reversed(nodes):
        here = needed[id(node)]
        if isinstance(node, Select):
            condition = env.memo[id(node.condition)][1]
            needed[id(node.then)] = needed[id(node.then)] | (here & condition)
            needed[id(node.otherwise)] = needed[id(node.otherwise)] | (here & ~condition)
            operands: tuple[Expr, ...] = (node.condition,)
        else:
            operands = children(node) + index_values(node)
        for operand in operands:
            needed[id(operand)] = needed[id(operand)] | here
    for node in nodes:
        for found in env.outside.get(id(node), ()):
            wrong = found.points & needed[id(node)]
            if np.any(wrong):
                bad = np.broadcast_to(found.index, np.shape(wrong))[wrong].flat[0]
                raise IndexError(
                    f"index {int(bad)} is out of range for axis {found.axis} of "
                    f"{found.load.tensor}, which has {found.extent} elements"
                )


def _value(expr: Expr, env: Environment) -> Array:
    """Return the value of an operand, which was evaluated before."""
    return env.memo[id(expr)][1]


def _evaluate(expr: Expr, env: Environment) -> Array:
    match expr:
        case Const():
            return to_numpy(evaluation_dtype(expr.dtype)).type(expr.value)
        case IndexValue():
            index = np.asarray(evaluate_index(expr.index, env), np.int64)[()]
            return _convert(index, expr.dtype)
        case ScalarRef():
            return env.scalars[expr.scalar]
        case Placeholder():
            return env.placeholders[expr]
        case Load():
            return _load(expr, env)
        case Call():
            args = [_value(arg, env) for arg in expr.args]
            return arithmetic.apply(expr.function, args, expr.dtype)
        case Cast():
            value = _value(expr.operand, env)
            return arithmetic.cast(value, expr.operand.dtype, expr.dtype)
        case Bitcast():
            value = _value(expr.operand, env)
            return arithmetic.bitcast(value, expr.operand.dtype, expr.dtype)
        case Select():
            parts = (expr.condition, expr.then, expr.otherwise)
            condition, then, otherwise = [_value(part, env) for part in parts]
            return select(condition, then, otherwise)
        case _:
            raise TypeError(f"{expr} belongs to a lowered program")


def select(condition: Array, then: Array, otherwise: Array) -> Array:
    """Return ``np.where``, and a scalar for scalars."""
    return typed("Array", np.where(condition, then, otherwise))[()]


def _convert(index: Array, dtype: DType) -> Array:
    return index.astype(to_numpy(evaluation_dtype(dtype)))


def _load(load: Load, env: Environment) -> Array:
    array = env.arrays[load.tensor]
    indices: list[Array] = []
    left: list[_Outside] = []
    for axis, form in enumerate(load.indices):
        index = evaluate_index(form, env)
        extent = array.shape[axis]
        outside = (index < 0) | (index >= extent)
        if np.any(outside):
            left.append(_Outside(load, axis, index, extent, outside))
        indices.append(np.clip(index, 0, max(extent - 1, 0)))
    if left:
        env.outside[id(load)] = left
    if 0 in array.shape:  # nothing is really read: any value will do
        shape = np.broadcast_shapes(*[np.shape(index) for index in indices])
        value: Array = np.zeros(shape, array.dtype)[()]
    else:
        value = array[tuple(indices)]
    return value.astype(np.float32) if load.dtype in (f16, bf16) else value


def evaluate_index(form: Affine, env: Environment) -> Array:
    """Return the value of an index expression at every point, as int64."""
    total: Array = np.int64(form.constant)
    for atom, coef in form.terms:
        total = total + _evaluate_atom(atom, env) * np.int64(coef)
    return total


def _evaluate_atom(atom: Atom, env: Environment) -> Array:
    match atom:
        case Var():
            return np.asarray(env.variables[atom], np.int64)[()]
        case FloorDiv():
            return evaluate_index(atom.operand, env) // np.int64(atom.divisor)
        case SymbolicDiv():
            operands = evaluate_index(atom.operand, env), evaluate_index(atom.divisor, env)
            with np.errstate(all="ignore"):
                return operands[0] // operands[1]
        case Product():
            result: Array = np.int64(1)
            for factor in atom.factors:
                result = result * _evaluate_atom(factor, env)
            return result
        case Min():
            parts = [evaluate_index(operand, env) for operand in atom.operands]
            least = parts[0]
            for part in parts[1:]:
                least = np.minimum(least, part)
            return least
        case ValueAtom():
            known = env.memo.get(id(atom.expr))
            value = evaluate_expr(atom.expr, env) if known is None else known[1]
            return np.asarray(value).astype(np.int64)[()]
