"""Routine stages: what is written as an algorithm over whole tensors, and how schedules see it.

Input (the stage of ``tl.argsort(x, axis=1)``)::

    Stage(tensors=(P,), axes=(i < M, j < N), values=(x[i, anywhere],), routine=Order(axis=1))

Output (its unscheduled loops)::

    for i in M:
        for j in N:
            P[i, j] = order(x[i, :])[j]

Each element has a value of its own, so that the proof treats the stage as a map whose reads lie
anywhere along some axes. Lowering computes all elements of the innermost loops at once; these
loops, the *unit*, must therefore stay as they are: complete, serial, and with nothing in between.
"""

from __future__ import annotations

from collections.abc import Iterator

from tensorlang.dtypes import bool_, i64, is_float, is_integer
from tensorlang.ir.affine import Affine, Var, affine, depends_on
from tensorlang.ir.definition import Axis, Order, Routine, Scatter, Stage, Tensor
from tensorlang.ir.expr import Call, Expr, Load, value_atom
from tensorlang.ir.functions import ANYWHERE
from tensorlang.ir.program import Compute, For, Fused, Stmt
from tensorlang.ir.walk import children_of

COMBINES = (None, "add", "mul", "minimum", "maximum")
"""What a scatter may do with the present element and the update; None: replace it."""


def anywhere() -> Affine:
    """Return the index that stands for every position along an axis."""
    return affine(value_atom(Call(ANYWHERE, (), i64)))


def noun_of(routine: Routine) -> str:
    """Return what errors call a routine."""
    return "a sort" if isinstance(routine, Order) else "a scatter"


def order_stage_operand(source: Tensor, axes: tuple[Axis, ...], axis: int) -> Load:
    """Return the load of what is sorted: anywhere along ``axis``."""
    indices = [affine(each.variable) for each in axes]
    indices[axis] = anywhere()
    return Load(source, tuple(indices))


def scatter_operands(
    base: Tensor, indices: tuple[Tensor, ...], value: Tensor, axes: tuple[Axis, ...]
) -> tuple[Load, ...]:
    """Return the loads of a scatter: the base here, the updates anywhere."""
    here = Load(base, tuple([affine(axis.variable) for axis in axes]))
    updates = [Load(tensor, tuple([anywhere() for _ in tensor.shape])) for tensor in indices]
    return (here, *updates, Load(value, tuple([anywhere() for _ in value.shape])))


def operands_of(stage: Stage) -> tuple[Tensor, ...]:
    """Return the tensors that a routine reads, in the order of ``values``."""
    return tuple([value.tensor for value in stage.values if isinstance(value, Load)])


def unit_axes(stage: Stage) -> tuple[int, ...]:
    """Return the axes along which a stage is computed as a whole; none unless it is a routine."""
    match stage.routine:
        case Order(axis=axis):
            return (axis,)
        case Scatter():
            return tuple(range(len(stage.axes)))
        case None:
            return ()


def loop_order(stage: Stage) -> tuple[int, ...]:
    """Return the data axes in the order of the unscheduled loops: those of a unit innermost."""
    whole = unit_axes(stage)
    return (*[axis for axis in range(len(stage.axes)) if axis not in whole], *whole)


def routine_faults(stage: Stage) -> Iterator[str]:
    """Yield what is wrong with the form of a routine stage."""
    operands = operands_of(stage)
    if len(operands) != len(stage.values) or len(stage.tensors) != 1:
        yield "a routine has one tensor, and operands that are tensors"
        return
    if stage.combiner is not None or stage.reduction_axes or stage.predicate:
        yield "a routine is no reduction"
    tensor = stage.tensor
    if tensor.shape != tuple([axis.extent for axis in stage.axes]):
        yield f"the axes do not run over {tensor}"
    match stage.routine:
        case Order(axis=axis):
            yield from _order_faults(stage, operands, axis)
        case Scatter(combine=combine):
            yield from _scatter_faults(stage, operands, combine)
        case None:
            yield "no routine"


def _order_faults(stage: Stage, operands: tuple[Tensor, ...], axis: int) -> Iterator[str]:
    if len(operands) != 1 or not 0 <= axis < len(stage.axes):
        yield "an order takes one operand, along one of its axes"
    elif operands[0].shape != stage.tensor.shape or stage.tensor.dtype is not i64:
        yield "an order has the shape of its operand, and dtype i64"
    elif stage.values != (order_stage_operand(operands[0], stage.axes, axis),):
        yield "an order reads its operand anywhere along its axis, and else in place"


def _scatter_faults(
    stage: Stage, operands: tuple[Tensor, ...], combine: str | None
) -> Iterator[str]:
    tensor, rank = stage.tensor, len(stage.axes)
    if combine not in COMBINES:
        yield f"{combine} combines no updates"
    if rank == 0 or len(operands) != rank + 2:
        yield "a scatter takes a base, an index for each axis, and values"
        return
    base, *indices, value = operands
    if base.shape != tensor.shape or base.dtype is not tensor.dtype:
        yield f"the base {base} differs from {tensor} in shape or dtype"
    if value.dtype is not tensor.dtype:
        yield f"the values have dtype {value.dtype.name}, not {tensor.dtype.name}"
    if combine in ("add", "mul") and tensor.dtype is bool_:
        yield f"bools have no {combine}"
    for index in indices:
        if index.shape != value.shape or not is_integer(index.dtype) or is_float(index.dtype):
            yield f"{index} is no integer for each of the values"
    if stage.values != scatter_operands(base, tuple(indices), value, stage.axes):
        yield "a scatter reads its base in place and its updates anywhere"


def unit_of(loop: Stmt) -> Compute | None:
    """Return the routine's instance of which ``loop`` is the outermost loop of the unit."""
    loops: list[For] = []
    stmt = loop
    while isinstance(stmt, For):
        loops.append(stmt)
        stmt = stmt.body
    if not isinstance(stmt, Compute) or stmt.stage.routine is None:
        return None
    count = len(unit_axes(stmt.stage))
    return stmt if len(loops) == count and unit_fault(stmt, tuple(loops)) is None else None


def unit_fault(compute: Compute, loops: tuple[For, ...]) -> str | None:
    """Say why ``loops``, the innermost around an instance of a routine, are not its unit."""
    stage = compute.stage
    axes = unit_axes(stage)
    if len(loops) != len(axes):
        return "its loops are not all there, one inside the other"
    own: set[Var] = set()
    for loop, axis in zip(loops, axes, strict=True):
        if loop.kind not in ("serial", "unrolled"):  # lowering writes out loops over registers
            return f"its loop {loop.variable} is {loop.kind}"
        if compute.binding[axis] != affine(loop.variable):
            return f"its loop {loop.variable} is not that of the axis {stage.axes[axis].variable}"
        if loop.extent != stage.axes[axis].extent:
            return f"its loop {loop.variable} runs over {loop.extent} positions only"
        own.add(loop.variable)
    others = [form for axis, form in enumerate(compute.binding) if axis not in axes]
    if any(depends_on(form, own) for form in (*others, *compute.guard)):
        return "a condition or an index depends on its own loops"
    return None


def find_broken_unit(body: Stmt) -> tuple[Compute, str] | None:
    """Return an instance of a routine whose unit is not intact, and what is wrong; else None."""

    def visit(stmt: Stmt, around: tuple[For, ...], lanes: str) -> tuple[Compute, str] | None:
        if isinstance(stmt, Compute):
            if stmt.stage.routine is None:
                return None
            count = len(unit_axes(stmt.stage))
            fault = unit_fault(stmt, around[max(0, len(around) - count) :])
            if fault is None and lanes:
                fault = f"the loop {lanes} around it is vectorized"
            return None if fault is None else (stmt, fault)
        inside = (*around, stmt) if isinstance(stmt, For) else ()
        if isinstance(stmt, For | Fused) and stmt.kind == "vectorized":
            lanes = str(stmt.variable if isinstance(stmt, For) else stmt.handle)
        for child in children_of(stmt):
            found = visit(child, inside, lanes)
            if found is not None:
                return found
        return None

    return visit(body, (), "")


def format_routine(stage: Stage, operands: tuple[Expr, ...]) -> str:
    """Return the element of a routine's result as text: ``order(x[i, :])[j]``."""
    from tensorlang.ir.printer import format_access

    def text(operand: Expr) -> str:
        assert isinstance(operand, Load)
        whole = format_access(operand.tensor.name, operand.indices)
        return whole.replace(f"int({ANYWHERE}())", ":")

    first, *others = map(text, operands)
    match stage.routine:
        case Order(axis=axis, descending=descending):
            way = ", descending" if descending else ""
            return f"order({first}{way}) along axis {axis}"
        case Scatter(combine=combine):
            way = "" if combine is None else f", {combine}"
            *indices, value = others
            return f"scatter({first}, ({', '.join(indices)}), {value}{way})"
        case None:
            raise TypeError(f"{stage} is no routine")
