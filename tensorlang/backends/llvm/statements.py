"""Statements as blocks and loops.

Input:  ``for j in vectorized(8): if N - 1 - 8*jo - j >= 0: Y[8*jo + j] = X[8*jo + j] + 1``
Output: a masked vector load, an ``fadd`` and a masked vector store

A condition that is one truth value for all lanes is a jump; one that differs is a mask.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from math import inf

from tensorlang.backends.llvm.allocation import emit_allocate, storage_held
from tensorlang.backends.llvm.context import Context, Lane, Mask
from tensorlang.backends.llvm.conversions import convert
from tensorlang.backends.llvm.debug_lines import MARK_END, mark_of
from tensorlang.backends.llvm.expressions import emit_expr
from tensorlang.backends.llvm.indices import emit_index
from tensorlang.backends.llvm.masks import (
    any_lane,
    emit_conjunction,
    inverted,
    is_nonempty,
    narrowed,
    split_conditions,
)
from tensorlang.backends.llvm.memory import emit_prefetch, emit_store
from tensorlang.backends.llvm.types import I64, Value, constant
from tensorlang.errors import CompileError
from tensorlang.ir.affine import Affine
from tensorlang.ir.expr import Expr, iterate
from tensorlang.ir.lowered import Allocate, Buffer, PrefetchLine, Store
from tensorlang.ir.program import Barrier, For, If, Seq, Stmt
from tensorlang.lower.data import depends_on_data

_BARRIER = "@llvm.nvvm.barrier.cta.sync.aligned.all"


def emit_stmt(context: Context, stmt: Stmt) -> None:
    """Emit a statement of a lowered program."""
    match stmt:
        case Seq():
            for part in _with_conditions_merged(stmt.stmts):
                emit_stmt(context, part)
        case For():
            _emit_for(context, stmt)
        case If():
            _emit_if(context, stmt)
        case Store():
            _emit_stores(context, stmt)
        case PrefetchLine():
            emit_prefetch(context, stmt.buffer, stmt.offset, stmt.locality)
        case Barrier():
            context.writer.module.declare(f"void {_BARRIER}(i32) convergent")
            context.writer.line(f"call void {_BARRIER}(i32 0)")
        case Allocate():
            if context.lane is not None:
                raise CompileError(f"{stmt.buffer} is allocated inside a vectorized loop")
            emit_allocate(context, stmt, emit_stmt)
        case _:
            raise CompileError(f"a lowered program cannot hold a {type(stmt).__name__}")


def _with_conditions_merged(stmts: tuple[Stmt, ...]) -> list[Stmt]:
    """Join neighbouring conditionals that ask the same question of the loops."""
    result: list[Stmt] = []
    for stmt in stmts:
        last = result[-1] if result else None
        if (
            isinstance(stmt, If)
            and isinstance(last, If)
            and stmt.otherwise is None
            and last.otherwise is None
            and stmt.condition == last.condition
            and not any(map(depends_on_data, stmt.condition))
        ):
            then = last.then.stmts if isinstance(last.then, Seq) else (last.then,)
            result[-1] = If(stmt.condition, Seq((*then, stmt.then)))
        else:
            result.append(stmt)
    return result


# --- loops ---------------------------------------------------------------------------------------


def _emit_for(context: Context, loop: For) -> None:
    if loop.extent.is_constant and loop.extent.constant <= 0:
        return
    if loop.kind == "parallel" and context.threads is not None and context.lane is None:
        from tensorlang.backends.llvm.parallel import emit_parallel

        emit_parallel(context, loop, emit_stmt)
    elif loop.kind == "vectorized":
        _emit_vectorized(context, loop)
    elif loop.kind in ("serial", "parallel"):
        _emit_serial(context, loop)
    else:
        raise CompileError(f"a lowered program for the CPU cannot hold a loop of kind {loop.kind}")


def _emit_vectorized(context: Context, loop: For) -> None:
    if not loop.extent.is_constant or context.lane is not None:
        raise CompileError(f"loop {loop.variable} cannot be vectorized: {loop.extent} lanes")
    lanes = loop.extent.constant
    if lanes == 1:
        _emit_once(context, loop)
        return
    context.lane = Lane(loop.variable, lanes)
    with context.scope():
        emit_stmt(context, loop.body)
    context.lane = None


def _emit_once(context: Context, loop: For) -> None:
    context.bind(loop.variable, constant(0, I64), Affine(1))
    with context.scope():
        emit_stmt(context, loop.body)
    context.unbind(loop.variable)


def _emit_serial(context: Context, loop: For) -> None:
    if loop.extent == Affine(1):
        _emit_once(context, loop)
        return
    with context.values.scope():
        extent = emit_index(context, loop.extent)
    if extent.type.lanes > 1:
        raise CompileError(f"the extent of loop {loop.variable} differs from lane to lane")
    with (
        storage_held(context, loop.body),
        context.count(constant(0, I64), extent, loop.variable.name) as position,
    ):
        context.bind(loop.variable, position, loop.extent)
        emit_stmt(context, loop.body)
        context.unbind(loop.variable)


# --- conditions ----------------------------------------------------------------------------------


def _emit_if(context: Context, stmt: If) -> None:
    conditions = split_conditions(context, stmt.condition)
    if not conditions.varying:
        _emit_uniform_if(context, stmt)
        return
    if stmt.otherwise is not None:
        _emit_masked_either(context, stmt)
        return
    uniform = _emit_truth(context, conditions.uniform)
    if uniform is None:
        _emit_masked_then(context, conditions.varying, stmt.then)
    else:
        with context.when(uniform):
            _emit_masked_then(context, conditions.varying, stmt.then)


def _emit_truth(context: Context, forms: tuple[Affine, ...]) -> Value | None:
    """Return whether all forms are >= 0; data that they read may change before it is read again."""
    with context.values.scope():
        return emit_conjunction(context, forms)


def _emit_uniform_if(context: Context, stmt: If) -> None:
    condition = _emit_truth(context, stmt.condition)
    if condition is None:
        emit_stmt(context, stmt.then)
        return
    if stmt.otherwise is None:
        with context.when(condition):
            emit_stmt(context, stmt.then)
        return
    writer = context.writer
    then, otherwise, done = (writer.label(stem) for stem in ("then", "else", "done"))
    writer.branch(condition, then, otherwise)
    for label, branch in ((then, stmt.then), (otherwise, stmt.otherwise)):
        writer.place(label)
        with context.scope():
            emit_stmt(context, branch)
        writer.jump(done)
    writer.place(done)


def _emit_masked_then(context: Context, varying: tuple[Affine, ...], then: Stmt) -> None:
    condition = _emit_truth(context, varying)
    assert condition is not None
    nonempty = context.mask is None and is_nonempty(context, varying)
    mask = narrowed(context, condition, nonempty)
    if nonempty:
        with context.masked(mask):
            emit_stmt(context, then)
    else:
        _emit_if_any(context, mask, then)


def _emit_masked_either(context: Context, stmt: If) -> None:
    """Emit both branches, each under its mask, which is known before either runs."""
    assert stmt.otherwise is not None
    condition = _emit_truth(context, stmt.condition)
    assert condition is not None
    then, otherwise = (
        narrowed(context, part) for part in (condition, inverted(context, condition))
    )
    _emit_if_any(context, then, stmt.then)
    _emit_if_any(context, otherwise, stmt.otherwise)


def _emit_if_any(context: Context, mask: Mask, stmt: Stmt) -> None:
    with context.when(any_lane(context, mask.value)), context.masked(replace(mask, nonempty=True)):
        emit_stmt(context, stmt)


# --- stores --------------------------------------------------------------------------------------


def _emit_stores(context: Context, stmt: Store) -> None:
    # Branches may repeat what they share; a few times, not once for every path.
    context.options.allowance = 10_000 + 20 * sum(1 for _ in iterate(*stmt.values))
    context.writer.line(mark_of([buffer.name for buffer, _ in stmt.targets]))
    rounding = context.builder.exact() if stmt.exact else nullcontext()
    with rounding, context.values.scope():
        values = [
            _value_for(context, buffer, expr)
            for (buffer, _), expr in zip(stmt.targets, stmt.values, strict=True)
        ]
        places = [offset for _, offset in stmt.targets]
        for offset in places:
            if depends_on_data(offset) and len(places) > 1:
                raise CompileError("a tuple-valued store cannot have a data-dependent address")
        for (buffer, offset), value in zip(stmt.targets, values, strict=True):
            emit_store(context, buffer, offset, value)
    context.writer.line(MARK_END)
    context.options.allowance = inf


def _value_for(context: Context, buffer: Buffer, expr: Expr) -> Value:
    half = context.options.target.half_conversion
    return convert(context.builder, emit_expr(context, expr), expr.dtype, buffer.dtype, half)
