"""Value expressions as instructions, scalar or in all lanes.

Input:  ``exp(X[N*i + j] - top[i])``, j the lane of 8
Output: a vector load, a scalar load broadcast, one ``fsub``, and the vector code of ``exp``

A value that is the same in every lane stays a scalar until it meets a vector. ``Select`` is lazy:
a branch that loads runs behind a jump if its condition is one truth value, and under a narrower
mask if it differs from lane to lane.
"""

from __future__ import annotations

from tensorlang.backends.llvm.arithmetic import emit_function
from tensorlang.backends.llvm.checks import emit_checked_load
from tensorlang.backends.llvm.context import Context
from tensorlang.backends.llvm.conversions import convert, from_memory, to_memory
from tensorlang.backends.llvm.indices import emit_index
from tensorlang.backends.llvm.masks import emit_conjunction, inverted, narrowed
from tensorlang.backends.llvm.memory import emit_load
from tensorlang.backends.llvm.needs import reads_memory, shared_operands
from tensorlang.backends.llvm.types import Value, constant, register_type
from tensorlang.dtypes import bf16, f16, i64
from tensorlang.errors import CompileError
from tensorlang.ir.affine import Var
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
    affine_conditions,
    children,
    expr_variables,
    index_values,
    postorder,
)
from tensorlang.ir.lowered import FlatLoad


def emit_expr(context: Context, expr: Expr) -> Value:
    """Return the value of ``expr`` in its evaluation dtype: a scalar or a vector.

    What is computed in any case is emitted operands first, so that long chains do not recurse.
    """
    known = _known(context, expr)
    if known is not None:
        return known
    for node in postorder((expr,), lambda node: _strict_operands(context, node)):
        if _known(context, node) is None:
            _count(context)
            value = (_emit(context, node), node)  # the node too, lest its id be used again
            mask = None if context.mask is None else context.mask.value.ref
            context.values.set((_identity(node), mask), value)
    known = _known(context, expr)
    assert known is not None
    return known


def _count(context: Context) -> None:
    """Count what a store emits; CompileError where nested choices repeat it without end."""
    context.options.allowance -= 1
    if context.options.allowance < 0:
        raise CompileError(
            "nested tl.where use the same operands again and again, in branches of which none"
            " always runs, so that the code for all the cases would be too long; make what they"
            " share a stage of its own, a tl.tensor"
        )


def _known(context: Context, expr: Expr) -> Value | None:
    """Return the value if it was computed in this statement, under this mask or a wider one."""
    if isinstance(expr, Const):
        return constant(expr.value, register_type(expr.dtype))
    identity, mask = _identity(expr), context.mask
    while True:
        known = context.values.get((identity, None if mask is None else mask.value.ref))
        if known is not None:
            return known[0]
        if mask is None:
            return None
        mask = mask.outer


def _identity(expr: Expr) -> int | FlatLoad:
    """Return what tells a node from others: loads of one place are one value."""
    return expr if isinstance(expr, FlatLoad) else id(expr)


def _strict_operands(context: Context, expr: Expr) -> tuple[Expr, ...]:
    """Return the operands whose values are needed whatever the data are."""
    if not isinstance(expr, Select):
        return children(expr)
    branches = [part for part in (expr.then, expr.otherwise) if not reads_memory(context, part)]
    branches = branches or shared_operands(context, expr)
    return tuple(branches) if _is_lane_bound(context, expr) else (expr.condition, *branches)


def _emit(context: Context, expr: Expr) -> Value:
    half = context.options.target.half_conversion
    match expr:
        case IndexValue():
            return convert(context.builder, emit_index(context, expr.index), i64, expr.dtype, half)
        case ScalarRef():
            return context.scalars[expr.scalar]
        case FlatLoad():
            if expr.checks:
                return emit_checked_load(context, expr)
            return emit_load(context, expr.buffer, expr.offset)
        case Call():
            args = [emit_expr(context, arg) for arg in expr.args]
            native = not context.options.target.is_x86
            dtype = expr.args[0].dtype
            return emit_function(context.builder, expr.function, args, dtype, native)
        case Cast():
            operand = emit_expr(context, expr.operand)
            return convert(context.builder, operand, expr.operand.dtype, expr.dtype, half)
        case Bitcast():
            return _emit_bitcast(context, expr)
        case Select():
            return _emit_select(context, expr)
        case Load() | Placeholder() | Const():
            raise CompileError(f"a lowered program cannot hold {expr!r}")


def _emit_bitcast(context: Context, expr: Bitcast) -> Value:
    half = context.options.target.half_conversion
    builder, source, target = context.builder, expr.operand.dtype, expr.dtype
    bits = to_memory(builder, emit_expr(context, expr.operand), source, half)
    element = register_type(target).element if target not in (f16, bf16) else "i16"
    element = "i8" if target.kind == "bool" else element
    return from_memory(builder, builder.convert("bitcast", bits, element), target, half)


def _emit_select(context: Context, expr: Select) -> Value:
    condition = _emit_truth(context, expr)
    then_reads, otherwise_reads = (
        _loads_anew(context, part) for part in (expr.then, expr.otherwise)
    )
    if condition.type.lanes > 1:
        then = _emit_branch(context, expr.then, condition, then_reads)
        negated = inverted(context, condition) if otherwise_reads else condition
        otherwise = _emit_branch(context, expr.otherwise, negated, otherwise_reads)
        return context.builder.select(condition, then, otherwise)
    if not then_reads and not otherwise_reads:
        then, otherwise = (emit_expr(context, part) for part in (expr.then, expr.otherwise))
        return context.builder.select(condition, then, otherwise)
    varies = _varies(context, expr.then) or _varies(context, expr.otherwise)
    return context.choose(
        condition,
        lambda: emit_expr(context, expr.then),
        lambda: emit_expr(context, expr.otherwise),
        context.lanes if varies else 1,
    )


def _emit_branch(context: Context, branch: Expr, condition: Value, reads: bool) -> Value:
    if not reads:
        return emit_expr(context, branch)
    with context.masked(narrowed(context, condition)):
        return emit_expr(context, branch)


def _emit_truth(context: Context, expr: Select) -> Value:
    """Return the condition; comparisons of index expressions become lane bounds where they can."""
    forms = affine_conditions(expr.condition) if _is_lane_bound(context, expr) else None
    if forms is None:
        return emit_expr(context, expr.condition)
    truth = emit_conjunction(context, forms)
    return constant(True, register_type(expr.condition.dtype)) if truth is None else truth


def _is_lane_bound(context: Context, expr: Select) -> bool:
    return context.lane is not None and affine_conditions(expr.condition) is not None


def _loads_anew(context: Context, branch: Expr) -> bool:
    """Whether a branch loads what was not loaded already: ``where(x > 0, x, 0)`` does not."""
    if not reads_memory(context, branch) or _known(context, branch) is not None:
        return False

    def unknown_operands(node: Expr) -> tuple[Expr, ...]:
        known = _known(context, node) is not None
        return () if known else children(node) + index_values(node)

    return any(
        isinstance(node, FlatLoad) and _known(context, node) is None
        for node in postorder((branch,), unknown_operands)
    )


def _varies(context: Context, expr: Expr) -> bool:
    variables: frozenset[Var] = expr_variables(expr)
    return context.lane is not None and context.lane.variable in variables
