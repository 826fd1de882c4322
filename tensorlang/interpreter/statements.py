"""Statements of both grammars as Python source: loops, storage, conditions.

Input:  ``parallel for i in M: C[i] = A[i]``
Output: ``for v1 in shuffled(M): ...`` around what ``leaves`` writes for the assignment

- A parallel loop runs its iterations in a shuffled order.
- A vectorized loop runs in step: it moves inward, around each leaf, where all lanes read before
  any lane writes. One that holds storage of its own runs as a parallel loop does.
- Both log, per execution, which iteration touched which element of the storage around them.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager

from tensorlang.dtypes import DType
from tensorlang.interpreter.accesses import Origin, flush
from tensorlang.interpreter.arithmetic import round_to_storage
from tensorlang.interpreter.context import Context, Frame, Place, Storage
from tensorlang.interpreter.conversions import value_scalar
from tensorlang.interpreter.expressions import write_forms
from tensorlang.interpreter.forms import form_text
from tensorlang.interpreter.leaves import write_compute, write_store
from tensorlang.interpreter.storage import layout_tables
from tensorlang.interpreter.threads import (
    block_of,
    thread_of,
    write_barrier,
    write_fresh_logs,
    write_thread,
)
from tensorlang.ir.affine import Affine, Var, depends_on
from tensorlang.ir.lowered import Allocate, PrefetchLine, Store
from tensorlang.ir.program import Alloc, Barrier, Compute, For, Fused, If, Prefetch, Seq, Stmt
from tensorlang.ir.walk import iterate, loop_variables

IN_ORDER = ("serial", "unrolled")
"""The kinds of loop whose iterations run one after the other; those of others in any order."""


def write_stmt(context: Context, stmt: Stmt) -> None:
    """Write a statement at the present point."""
    match stmt:
        case Seq():
            for child in stmt.stmts:
                write_stmt(context, child)
        case For() | Fused():
            _write_loop(context, stmt)
        case If():
            _write_if(context, stmt)
        case Alloc():
            _write_alloc(context, stmt)
        case Allocate():
            _write_allocate(context, stmt)
        case Barrier():
            write_barrier(context)
        case Prefetch() | PrefetchLine():
            context.writer.line("pass")  # no effect on any value
        case Compute():
            _write_leaf(context, lambda: write_compute(context, stmt))
        case Store():
            _write_leaf(context, lambda: write_store(context, stmt))


# --- loops -----------------------------------------------------------------------------------


def _write_loop(context: Context, loop: For | Fused) -> None:
    with _frame(context, loop), _visible(context, loop):
        if loop.kind == "vectorized" and not _allocates(loop.body):
            context.lanes.append(loop)
            write_stmt(context, loop.body)
            context.lanes.pop()
        elif any(depends_on(extent, _lane_variables(context)) for extent in _extents(loop)):
            _write_uneven_loop(context, loop)
        else:
            with thread_of(context, loop), _open(context, loop):
                write_thread(context, loop)
                with block_of(context, loop.body):
                    write_stmt(context, loop.body)


def _write_uneven_loop(context: Context, loop: For | Fused) -> None:
    """Write a loop whose extent differs between open lanes: up to the longest, shorter ones masked.

    A fused loop becomes a loop over positions of the longest lane, each lane decoding its own; as
    no schedule makes one, it is run lane by lane instead.
    """
    if isinstance(loop, Fused):
        lanes, context.lanes = context.lanes, []
        with ExitStack() as stack:
            for lane in lanes:
                stack.enter_context(_open(context, lane))
            with _open(context, loop):
                write_stmt(context, loop.body)
        context.lanes = lanes
        return
    writer = context.writer
    longest = writer.fresh("n")
    writer.line(f"{longest} = [0]")  # a list: lanes may have to be opened in an inner function
    with ExitStack() as stack:
        for lane in context.lanes:
            stack.enter_context(_open(context, lane))
        extent = form_text(loop.extent, context.names)
        writer.line(f"{longest}[0] = max({longest}[0], {extent})")
    name = context.name(loop.variable)
    with writer.block(f"for {name} in {_order(loop)}({longest}[0]):"):
        context.masks.append(f"{name} < {extent}")
        write_stmt(context, loop.body)
        context.masks.pop()


@contextmanager
def _open(context: Context, loop: For | Fused) -> Generator[None, None, None]:
    """Write the head of a loop; its body is what is written inside the ``with``."""
    writer = context.writer
    if isinstance(loop, For):
        extent = form_text(loop.extent, context.names)
        with writer.block(f"for {context.name(loop.variable)} in {_order(loop)}({extent}):"):
            yield
        return
    handle = context.name(loop.handle)
    if loop.run is None:
        total, decode = _positions(context, loop, handle)
        with writer.block(f"for {handle} in {_order(loop)}({total}):"):
            writer.line(decode)
            yield
        return
    chunk, offset = context.name(loop.run.chunk), context.name(loop.run.offset)
    position = writer.fresh("v")  # the handle of a piece may be its offset
    total, decode = _positions(context, loop, position)
    with writer.block(f"for {offset} in {_order(loop)}({loop.run.size}):"):
        writer.line(f"{position} = {chunk}*{loop.run.size} + {offset}")
        with writer.block(f"if {position} < {total}:"):
            writer.line(decode)
            yield


def _order(loop: For | Fused) -> str:
    """Return the function that lists the iterations: lanes are in order until they all write."""
    in_order = loop.kind in IN_ORDER or (loop.kind == "vectorized" and not _allocates(loop.body))
    return "range" if in_order else "shuffled"


def _positions(context: Context, loop: Fused, position: str) -> tuple[str, str]:
    """Write the number of positions; return it and the line that decodes one into variables."""
    writer = context.writer
    names = [context.name(variable) for variable in loop.variables]
    total = writer.fresh("n")
    extents = [form_text(extent, context.names) for extent in loop.extents]
    own = set(loop.variables)
    if any(depends_on(extent, own) for extent in loop.extents):
        points = writer.fresh("p")
        targets = f"({', '.join(names)},)"
        loops = " ".join(f"for {n} in range({e})" for n, e in zip(names, extents, strict=True))
        writer.line(f"{points} = [{targets} {loops}]")
        writer.line(f"{total} = len({points})")
        return total, f"{targets} = {points}[{position}]"
    fixed = [writer.fresh("n") for _ in extents]
    for name, extent in zip(fixed, extents, strict=True):
        writer.line(f"{name} = max({extent}, 0)")
    writer.line(f"{total} = {'*'.join(fixed) or '1'}")
    steps = [f"rest_{position} = {position}"]
    for name, extent in reversed(list(zip(names, fixed, strict=True))):
        steps.append(f"rest_{position}, {name} = divmod(rest_{position}, {extent})")
    return total, "; ".join(steps)


@contextmanager
def _visible(context: Context, loop: For | Fused) -> Generator[None, None, None]:
    """Let the variables of a loop be named by errors inside it."""
    context.visible.extend(loop_variables(loop))
    for variable in loop_variables(loop):
        context.name(variable)
    yield
    del context.visible[len(context.visible) - len(loop_variables(loop)) :]


@contextmanager
def _frame(context: Context, loop: For | Fused) -> Generator[None, None, None]:
    """Start the logs of a loop whose iterations may run in any order."""
    if loop.kind in IN_ORDER or not context.detect_races:
        yield
        return
    writer = context.writer
    logs: dict[Storage, tuple[str, str]] = {}
    for place in _written(loop.body):
        storage = context.storages.get(place)
        if storage is not None and storage not in logs:
            wrote, has_read = logs[storage] = writer.fresh("w"), writer.fresh("r")
            writer.line(f"{wrote} = {{}}")
            writer.line(f"{has_read} = {{}}")
    if isinstance(loop, For):
        iteration = loop.variable
    else:
        iteration = loop.handle if loop.run is None else loop.run.offset
    label = f"{loop.kind} loop {iteration}"
    context.frames.append(Frame(context.name(iteration), label, logs))
    yield
    context.frames.pop()


def _written(stmt: Stmt) -> list[Place]:
    """Return what is written below ``stmt``, in order."""
    found: dict[Place, None] = {}
    for child in iterate(stmt):
        if isinstance(child, Compute):
            found.update(dict.fromkeys(map(child.redirect, child.stage.tensors)))
        elif isinstance(child, Store):
            found.update(dict.fromkeys(buffer for buffer, _ in child.targets))
    return list(found)


def _allocates(stmt: Stmt) -> bool:
    return any(isinstance(child, Alloc | Allocate) for child in iterate(stmt))


def _extents(loop: For | Fused) -> tuple[Affine, ...]:
    return (loop.extent,) if isinstance(loop, For) else loop.extents


def _lane_variables(context: Context) -> frozenset[Var]:
    return frozenset(variable for lane in context.lanes for variable in loop_variables(lane))


# --- leaves and conditions -------------------------------------------------------------------


def _write_leaf(context: Context, write: Callable[[], list[Storage]]) -> None:
    """Write a leaf inside the lanes and masks that stand open; lanes store when all have read."""
    writer = context.writer
    lanes, context.lanes = context.lanes, []
    masks, context.masks = context.masks, []
    if lanes:
        context.pending = writer.fresh("pending")
        writer.line(f"{context.pending} = []")
    with ExitStack() as stack:
        for lane in lanes:
            stack.enter_context(_open(context, lane))
        for mask in masks:
            stack.enter_context(writer.block(f"if {mask}:"))
        storages = write()
    if context.pending is not None:
        flush(context, context.pending, storages)
    context.lanes, context.masks, context.pending = lanes, masks, None


def _write_if(context: Context, stmt: If) -> None:
    variables = tuple([variable.name for variable in context.visible])
    values = tuple([context.name(variable) for variable in context.visible])
    forms = write_forms(context, Origin("a condition", variables, values), stmt.condition)
    condition = " and ".join(f"{form} >= 0" for form in forms) or "True"
    lanes = _lane_variables(context)
    branches = ((condition, stmt.then), (f"not ({condition})", stmt.otherwise))
    for text, branch in branches:
        if branch is None:
            continue
        if any(depends_on(form, lanes) for form in stmt.condition):
            context.masks.append(text)
            write_stmt(context, branch)
            context.masks.pop()
        else:
            with context.writer.block(f"if {text}:"):
                write_stmt(context, branch)


# --- storage ---------------------------------------------------------------------------------


def _write_alloc(context: Context, stmt: Alloc) -> None:
    writer, tensor = context.writer, stmt.tensor
    origin = tuple([_atom(context, form) for form in stmt.origin])
    shape = tuple([_atom(context, form) for form in stmt.shape])
    cells, table = writer.fresh("cells"), None
    if stmt.layout is None:
        count = "*".join(f"max({extent}, 0)" for extent in shape) or "1"
    else:
        table, count = writer.fresh("table"), writer.fresh("n")
        tables = writer.constant(layout_tables(stmt.layout, tensor.name, context.sizes))
        writer.line(f"{table}, {count} = {tables}({', '.join(shape)})")
    writer.line(f"{cells} = [POISON] * ({count})")
    storage = Storage(tensor.name, tensor.dtype, cells, origin, shape, len(context.frames), table)
    write_fresh_logs(context, tensor)
    with context.storage(tensor, storage):
        write_stmt(context, stmt.body)


def _write_allocate(context: Context, stmt: Allocate) -> None:
    writer, buffer = context.writer, stmt.buffer
    size = _atom(context, buffer.size)
    cells = writer.fresh("cells")
    content = writer.constant(_zero(buffer.dtype)) if stmt.zeroed else "POISON"
    writer.line(f"{cells} = [{content}] * {size}")
    storage = Storage(buffer.name, buffer.dtype, cells, ("0",), (size,), len(context.frames))
    write_fresh_logs(context, buffer)
    with context.storage(buffer, storage):
        write_stmt(context, stmt.body)


def _zero(dtype: DType) -> object:
    return round_to_storage(value_scalar(0, dtype), dtype)


def _atom(context: Context, form: Affine) -> str:
    """Return a name or a literal for the value of a form."""
    if form.is_constant and form.constant >= 0:
        return str(form.constant)
    name = context.writer.fresh("n")
    context.writer.line(f"{name} = {form_text(form, context.names)}")
    return name
