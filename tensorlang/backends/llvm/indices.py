"""Index expressions as i64 instructions.

Input:  ``N * i + j + 3``, in a vectorized loop over j
Output: a scalar ``N * i + 3`` and the stride 1, or a vector where the stride varies

Terms are added outer variables first, and partial sums are remembered, so that addresses of one
tile share what they have in common and LLVM moves it out of the loops.
"""

from __future__ import annotations

from functools import cache, partial
from math import gcd

from tensorlang.backends.llvm.context import Context
from tensorlang.backends.llvm.group_terms import Moving, group_terms
from tensorlang.backends.llvm.types import I64, Value, constant, lane_constants
from tensorlang.ir.affine import (
    ONE,
    Affine,
    Atom,
    FloorDiv,
    Min,
    Product,
    SymbolicDiv,
    ValueAtom,
    Var,
    affine,
    atom_variables,
    linear_coefficient,
    substitute,
)
from tensorlang.ir.interval import bounds, is_nonnegative
from tensorlang.lower.data import depends_on_data, holds_value

_MANY_TERMS = 12
"""Terms from which an index is a product of sums that was multiplied out, and is put together."""

_LONG_SUM = 3
"""Terms from which a sum of sizes is the distance of planes, say, and not a size more or less."""


def lane_stride(context: Context, index: Affine) -> int | None:
    """Return how ``index`` moves from lane to lane, 0 where it does not; None if that varies."""
    if context.lane is None:
        return 0
    return linear_coefficient(index, context.lane.variable)


def lane_zero(context: Context, index: Affine) -> Affine:
    """Return the form of ``index``, whose stride is known, in lane 0."""
    if context.lane is None:
        return index
    return substitute(index, {context.lane.variable: 0})


def emit_index(context: Context, index: Affine) -> Value:
    """Return the value of ``index``: a scalar if it is the same in every lane, else a vector."""
    if not index.terms:
        return constant(index.constant, I64)
    known = context.indices.get(index)
    if known is not None:
        return known
    stride = lane_stride(context, index)
    if stride:
        value = _moving(context, emit_index(context, lane_zero(context, index)), stride)
    else:
        value = _emit_sum(context, index)
    if not depends_on_data(index):
        context.indices.set(index, value)
    return value


def _moving(context: Context, start: Value, stride: int) -> Value:
    steps = lane_constants(range(0, stride * context.lanes, stride), "i64")
    return context.builder.binary("add nsw", start, steps)


def _emit_sum(context: Context, index: Affine) -> Value:
    """Add the terms of ``index``, outer variables first, each after its weight was multiplied."""
    builder = context.builder
    if index.constant:
        total = emit_index(context, Affine(0, index.terms))
        return builder.binary("add nsw", total, constant(index.constant, I64))
    if len(index.terms) < _MANY_TERMS:
        groups = [((atom,), Affine(coefficient)) for atom, coefficient in index.terms]
    else:
        groups = group_terms(index, cache(partial(_is_fixed, context)))
    if len(groups) > 1:
        groups.sort(key=lambda group: _depth(context, group[0]))
    total: Value | None = None
    is_kept = True
    for moving, weight in groups:
        is_kept = is_kept and not any(map(holds_value, moving))
        before = None if total is None else total.ref
        known = context.indices.get((before, moving, weight))
        if known is not None:
            total = known
            continue
        value = _emit_product(context, moving, weight)
        total = value if total is None else builder.binary("add nsw", total, value)
        if is_kept:
            context.indices.set((before, moving, weight), total)
    assert total is not None
    return total


def _emit_product(context: Context, moving: Moving, weight: Affine) -> Value:
    if not moving:
        return _emit_fixed(context, weight)
    value = _multiply(context, moving)
    if weight == ONE:
        return value
    by = _emit_fixed(context, weight) if weight.terms else constant(weight.constant, I64)
    return context.builder.binary("mul nsw", value, by)


def _emit_fixed(context: Context, weight: Affine) -> Value:
    """Return a sum of sizes; a long one is computed where the function begins."""
    known = context.sizes.get(weight) or context.indices.get(weight)
    if known is not None:
        return known
    if len(weight.terms) < _LONG_SUM:
        return _add_terms(context, weight)
    with context.at_entry():
        return _add_terms(context, weight)


def _add_terms(context: Context, weight: Affine) -> Value:
    builder = context.builder
    total: Value | None = None
    for atom, coefficient in weight.terms:
        value = _emit_atom(context, atom)
        if coefficient != 1:
            value = builder.binary("mul nsw", value, constant(coefficient, I64))
        total = value if total is None else builder.binary("add nsw", total, value)
    assert total is not None
    if weight.constant:
        total = builder.binary("add nsw", total, constant(weight.constant, I64))
    context.indices.set(weight, total)
    return total


def _is_fixed(context: Context, factor: Atom) -> bool:
    """Tell whether a factor is made of sizes alone, for which no loop has an extent."""
    return not holds_value(factor) and not any(
        variable in context.extents or (context.lane and variable is context.lane.variable)
        for variable in atom_variables(factor)
    )


def _depth(context: Context, atoms: Moving) -> int:
    depths = [context.depths.get(v, 0) for atom in atoms for v in atom_variables(atom)]
    return max(depths, default=0)


def _emit_atom(context: Context, atom: Atom) -> Value:
    builder = context.builder
    match atom:
        case Var():
            if context.lane is not None and atom is context.lane.variable:
                return lane_constants(range(context.lanes), "i64")
            return context.variables[atom]
        case FloorDiv():
            nonnegative = least(context, atom.operand) >= 0
            dividend = emit_index(context, atom.operand)
            return floor_divide_by_constant(context, dividend, atom.divisor, nonnegative)
        case SymbolicDiv():
            nonnegative = least(context, atom.operand) >= 0
            dividend, divisor = (emit_index(context, part) for part in (atom.operand, atom.divisor))
            # At least 1: where the divisor is a size of 0 nothing uses the quotient.
            divisor = builder.intrinsic("smax", divisor, builder.constant(1, divisor))
            if nonnegative:
                return builder.binary("udiv", dividend, divisor)
            return _floor_divide(context, dividend, divisor)
        case Product():
            return _multiply(context, atom.factors)
        case Min():
            result = emit_index(context, atom.operands[0])
            for operand in atom.operands[1:]:
                pair = builder.unify(result, emit_index(context, operand))
                result = builder.intrinsic("smin", *pair)
            return result
        case ValueAtom():
            from tensorlang.backends.llvm.expressions import emit_expr

            value = emit_expr(context, atom.expr)
            signed = atom.expr.dtype.kind == "int"
            return builder.convert("sext" if signed else "zext", value, "i64")


def _multiply(context: Context, factors: tuple[Atom, ...]) -> Value:
    """Return the product of atoms; those that begin alike share what they have in common."""
    result = _emit_atom(context, factors[0])
    for factor in factors[1:]:
        key = ("product", result.ref, factor)
        known = context.indices.get(key)
        if known is None:
            known = context.builder.binary("mul nsw", result, _emit_atom(context, factor))
            if not holds_value(factor):
                context.indices.set(key, known)
        result = known
    return result


def floor_divide_by_constant(
    context: Context, dividend: Value, divisor: int, nonnegative: bool = False
) -> Value:
    """Return ``floor(dividend / divisor)`` for ``divisor`` > 0."""
    builder = context.builder
    if divisor == 1:
        return dividend
    if divisor & (divisor - 1) == 0:
        shift = builder.constant(divisor.bit_length() - 1, dividend)
        return builder.binary("ashr", dividend, shift)
    by = builder.constant(divisor, dividend)
    if nonnegative:
        return builder.binary("udiv", dividend, by)
    return _floor_divide(context, dividend, by)


def _floor_divide(context: Context, dividend: Value, divisor: Value) -> Value:
    builder = context.builder
    quotient = builder.binary("sdiv", dividend, divisor)
    remainder = builder.binary("srem", dividend, divisor)
    below = builder.compare("lt", remainder, builder.constant(0, remainder))
    return builder.add(quotient, builder.convert("sext", below, "i64"))


# --- facts ---------------------------------------------------------------------------------------


def least(context: Context, index: Affine) -> float:
    """Return a constant that ``index`` never goes below; -inf if none is known."""
    interval = bounds(index, context.extents)
    if interval is None:
        return float("-inf")
    form = interval[0]
    for atom, coefficient in form.terms:
        # d * (x // d) <= x: a bound such as N + 7 - 8 * ((N + 7) // 8) is a remainder.
        if isinstance(atom, FloorDiv) and coefficient < 0 and coefficient % atom.divisor == 0:
            factor = -coefficient // atom.divisor
            form = form - affine(atom) * coefficient - atom.operand * factor
    if not form.terms:
        return form.constant
    return 0 if is_nonnegative(form) else float("-inf")


def constant_bounds(context: Context, index: Affine) -> tuple[int, int] | None:
    """Return the least and the greatest value of ``index`` if both are known numbers."""
    if not index.terms:
        return index.constant, index.constant
    interval = bounds(index, context.extents)
    if interval is None or interval[0].terms or interval[1].terms:
        return None
    return interval[0].constant, interval[1].constant


def known_alignment(index: Affine, item_bytes: int, base: int) -> int:
    """Return by how many bytes an element at ``index`` is aligned, its buffer being by ``base``."""
    step = gcd(index.constant, *[coefficient for _, coefficient in index.terms])
    return gcd(step * item_bytes, base)
