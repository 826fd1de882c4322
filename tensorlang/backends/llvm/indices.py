"""Index expressions as i64 instructions.

Input:  ``N * i + j + 3``, in a vectorized loop over j
Output: a scalar ``N * i + 3`` and the stride 1, or a vector where the stride varies

Terms are added outer variables first, and partial sums are remembered, so that addresses of one
tile share what they have in common and LLVM moves it out of the loops.
"""

from __future__ import annotations

from math import gcd

from tensorlang.backends.llvm.context import Context
from tensorlang.backends.llvm.types import I64, Value, constant, lane_constants
from tensorlang.ir.affine import (
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
from tensorlang.lower.data import depends_on_data


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
    builder = context.builder
    terms = index.terms
    if len(terms) > 1:
        terms = tuple(sorted(terms, key=lambda term: _depth(context, term[0])))
    total: Value | None = None
    from_data = False
    for count, (atom, coefficient) in enumerate(terms, 1):
        from_data = from_data or depends_on_data(affine(atom))
        partial = Affine(0, terms[:count])
        known = context.indices.get(partial)
        if known is not None:
            total = known
            continue
        value = _emit_atom(context, atom)
        if coefficient != 1:
            value = builder.binary("mul nsw", value, constant(coefficient, I64))
        total = value if total is None else builder.binary("add nsw", total, value)
        if not from_data:
            context.indices.set(partial, total)
    assert total is not None
    if index.constant:
        total = builder.binary("add nsw", total, constant(index.constant, I64))
    return total


def _depth(context: Context, atom: Atom) -> int:
    if isinstance(atom, Var):
        return context.depths.get(atom, 0)
    return max([context.depths.get(variable, 0) for variable in atom_variables(atom)], default=0)


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
            result = _emit_atom(context, atom.factors[0])
            for factor in atom.factors[1:]:
                result = builder.binary("mul nsw", result, _emit_atom(context, factor))
            return result
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
