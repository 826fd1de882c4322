"""Threads of a block, which only barriers order.

Input:  a barrier, or the body of a loop over blocks
Output: logs of which thread touched which element of the memory that the block shares, emptied at
        each barrier: whoever touches an element after another thread did, one of the two writing,
        is reported

The nests of threads run one after the other, so results are those of a program with enough
barriers; that one is missing shows in the logs, whatever the order in which threads would run.
Registers that are allocated for a whole block keep their logs: no barrier shows them to others.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager

from tensorlang.interpreter.context import Block, Context, Frame, Place, Storage
from tensorlang.ir.lowered import Allocate, Store
from tensorlang.ir.program import (
    BLOCK_AXES,
    THREAD_AXES,
    Alloc,
    Compute,
    For,
    Fused,
    Stmt,
)
from tensorlang.ir.walk import children_of, iterate


@contextmanager
def block_of(context: Context, body: Stmt) -> Generator[None, None, None]:
    """Write what one block runs, with its logs; nothing is added for code without threads."""
    if context.block is not None or not context.detect_races or not _is_block(body):
        yield
        return
    writer = context.writer
    thread = writer.fresh("thread")  # a list, as loops may be written as inner functions
    writer.line(f"{thread} = [0, 0, 0, 0]")
    logs: dict[Place, tuple[str, str]] = {}
    registers: set[Place] = set()
    nested: set[Place] = set()
    for place in dict.fromkeys((*_written(body), *_allocated(body, registers, nested))):
        logs[place] = writer.fresh("w"), writer.fresh("r")
        for name in logs[place]:
            writer.line(f"{name} = {{}}")
    context.block = Block(thread, logs, frozenset(registers), frozenset(nested))
    yield
    context.block = None


def write_barrier(context: Context) -> None:
    """Write a barrier: what was touched before it may be touched by any thread after it."""
    block = context.block
    context.writer.line("pass")
    if block is None:
        return
    for place, names in block.logs.items():
        if place not in block.registers:
            for name in names:
                context.writer.line(f"{name}.clear()")


@contextmanager
def thread_of(context: Context, loop: For | Fused) -> Generator[None, None, None]:
    """Let the iterations of a loop of threads be those threads; around the head of the loop."""
    yield
    block = context.block
    if block is not None and loop.kind in THREAD_AXES:
        _move(context, block, THREAD_AXES.index(loop.kind), "0")


def write_thread(context: Context, loop: For | Fused) -> None:
    """Write, at the start of an iteration, which thread runs it."""
    block = context.block
    if block is not None and loop.kind in THREAD_AXES:
        variable = loop.variable if isinstance(loop, For) else loop.handle
        if isinstance(loop, Fused) and loop.run is not None:
            variable = loop.run.offset
        _move(context, block, THREAD_AXES.index(loop.kind), context.name(variable))


def logs_of(context: Context, storage: Storage) -> tuple[Frame, str, str] | None:
    """Return the logs of storage that a block shares, and who touches it; None for others."""
    block = context.block
    if block is None:
        return None
    for place, logs in block.logs.items():
        if context.storages.get(place) is storage:
            label = "registers" if place in block.registers else "block"
            return Frame(f"{block.thread}[0]", label, {}, is_block=True), *logs
    return None


def write_fresh_logs(context: Context, place: Place) -> None:
    """Write that storage made inside a loop of threads has been touched by nobody yet."""
    block = context.block
    if block is not None and place in block.nested:
        for name in block.logs[place]:
            context.writer.line(f"{name}.clear()")


def _move(context: Context, block: Block, axis: int, place: str) -> None:
    thread = block.thread
    context.writer.line(f"{thread}[{axis + 1}] = {place}")
    context.writer.line(f"{thread}[0] = {thread}[1] + 1024*{thread}[2] + 1048576*{thread}[3]")


def _is_block(body: Stmt) -> bool:
    kinds = {stmt.kind for stmt in iterate(body) if isinstance(stmt, For | Fused)}
    return not kinds.isdisjoint(THREAD_AXES) and kinds.isdisjoint(BLOCK_AXES)


def _written(body: Stmt) -> Iterator[Place]:
    """Yield what is written and not allocated in ``body``."""
    allocated = {
        stmt.tensor if isinstance(stmt, Alloc) else stmt.buffer
        for stmt in iterate(body)
        if isinstance(stmt, Alloc | Allocate)
    }
    for stmt in iterate(body):
        places: tuple[Place, ...] = ()
        if isinstance(stmt, Compute):
            places = tuple(map(stmt.redirect, stmt.stage.tensors))
        elif isinstance(stmt, Store):
            places = tuple([buffer for buffer, _ in stmt.targets])
        yield from (place for place in places if place not in allocated)


def _allocated(
    stmt: Stmt, registers: set[Place], nested: set[Place], inside: bool = False
) -> Iterator[Place]:
    """Yield what is allocated; collect what lies in registers, and what is made by one thread."""
    if isinstance(stmt, For | Fused) and stmt.kind in THREAD_AXES:
        inside = True
    if isinstance(stmt, Alloc | Allocate):
        place: Place = stmt.tensor if isinstance(stmt, Alloc) else stmt.buffer
        scope = stmt.scope if isinstance(stmt, Alloc) else stmt.buffer.scope
        if scope == "local" or inside:
            registers.add(place)
        if inside:
            nested.add(place)
        yield place
    for child in children_of(stmt):
        yield from _allocated(child, registers, nested, inside)
