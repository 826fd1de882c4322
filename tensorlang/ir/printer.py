"""Programs and definitions as text that reads like Python.

Output for a matmul whose i was split by 6::

    def matmul(A: f32[M, K], B: f32[K, N]) -> C: f32[M, N]:
        for i.o in (M + 5) // 6:
            for i.i in 6:
                for j in N:
                    for k in K:
                        C[6 * i.o + i.i, j] += A[6 * i.o + i.i, k] * B[k, j]  # if 6 * i.o + i.i < M
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from tensorlang.dtypes import f32
from tensorlang.ir.abridge import abridged
from tensorlang.ir.affine import Affine, Var, from_terms
from tensorlang.ir.definition import Combiner, Condition, Definition, Stage, Tensor
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
)
from tensorlang.ir.functions import FUNCTIONS, PRECEDENCE
from tensorlang.ir.interval import bounds, is_nonnegative
from tensorlang.ir.lowered import Allocate, FlatLoad, LoweredProgram, PrefetchLine, Store
from tensorlang.ir.program import (
    Alloc,
    Barrier,
    Compute,
    For,
    Fused,
    If,
    Prefetch,
    Program,
    Seq,
    Stmt,
)
from tensorlang.ir.rename import distinct_names
from tensorlang.ir.routines import format_routine
from tensorlang.ir.walk import replace_placeholders, substitute_in_expr

Mark = Callable[[Stmt], str]
"""A remark printed after the line of a statement (empty: none)."""

_HIGHEST = 10


def format_expr(expr: Expr) -> str:
    """Return an expression as text; of a huge one, parts are ``...``."""
    return _format_expr(abridged(expr), 0)


def _format_expr(expr: Expr, precedence: int = 0) -> str:
    """Return an expression as text, in parentheses where ``precedence`` asks for them."""
    match expr:
        case Const():
            text = _format_constant(expr)
            return _parenthesized(text, text.startswith("-") and precedence > PRECEDENCE["neg"])
        case IndexValue():
            return _parenthesized(str(expr.index), precedence > 0 and not _is_atomic(expr.index))
        case ScalarRef():
            return expr.scalar.name
        case Placeholder():
            return expr.name
        case Load():
            return format_access(expr.tensor.name, expr.indices)
        case FlatLoad():
            return f"{expr.buffer.name}[{expr.offset}]"
        case Cast():
            return f"{expr.dtype.name}({_format_expr(expr.operand)})"
        case Bitcast():
            return f"bitcast({_format_expr(expr.operand)}, {expr.dtype.name})"
        case Select():
            parts = (expr.condition, expr.then, expr.otherwise)
            return f"where({', '.join(_format_expr(part) for part in parts)})"
        case Call():
            return _format_call(expr, precedence)


def _is_atomic(index: Affine) -> bool:
    """Whether an index expression prints as one name or one number without a sign."""
    if not index.terms:
        return index.constant >= 0
    atom, coefficient = index.terms[0]
    plain = isinstance(atom, Var) and coefficient == 1 and index.constant == 0
    return plain and len(index.terms) == 1


def _format_constant(expr: Const) -> str:
    value = expr.value
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e6:
        return str(int(value))
    if isinstance(value, float) and expr.dtype is f32:
        return str(np.float32(value))  # the shortest text that is this number: 1e-05
    return str(value)


def _format_call(expr: Call, precedence: int) -> str:
    function = FUNCTIONS.get(expr.function)
    binding = PRECEDENCE.get(expr.function)
    if function is None or binding is None or len(expr.args) != function.arity:
        return f"{expr.function}({', '.join(_format_expr(arg) for arg in expr.args)})"
    if function.arity == 1:
        text = f"{function.symbol}{_format_expr(expr.args[0], binding)}"
    else:
        # Python chains comparisons and takes powers from the right: no such operand on the left.
        plain = function.result == "bool" or expr.function == "pow"
        left = _format_expr(expr.args[0], binding + plain)
        text = f"{left} {function.symbol} {_format_expr(expr.args[1], binding + 1)}"
    return _parenthesized(text, binding < precedence)


def _parenthesized(text: str, needed: bool) -> str:
    return f"({text})" if needed else text


def format_access(name: str, indices: tuple[Affine, ...]) -> str:
    """Return ``name[i, j]``; a 0-d tensor is ``name[()]``."""
    return f"{name}[{', '.join(map(str, indices)) or '()'}]"


def format_tensor_type(tensor: Tensor) -> str:
    """Return ``f32[M, K]``."""
    return f"{tensor.dtype.name}[{', '.join(map(str, tensor.shape))}]"


def format_condition(form: Affine) -> str:
    """Return ``form >= 0`` the way a person writes it: ``6 * i.o + i.i < M``."""
    negative = from_terms(
        min(form.constant + 1, 0) * -1, tuple((a, -c) for a, c in form.terms if c < 0)
    )
    positive = from_terms(max(form.constant + 1, 0), tuple((a, c) for a, c in form.terms if c > 0))
    if not negative.terms:
        return f"{form} >= 0"
    return f"{negative} < {positive}"


_UPDATES = {"sum": "+=", "prod": "*="}


def format_compute(compute: Compute, mark_guard: bool = True) -> str:
    """Return an instance of a stage as an assignment."""
    stage = compute.stage
    mapping = dict(zip(stage.variables, compute.binding, strict=False))
    indices = tuple(compute.binding[: len(stage.axes)])
    targets = [compute.redirect(tensor).name for tensor in stage.tensors]
    left = ", ".join(format_access(name, indices) for name in targets)
    if compute.part == "init":
        assert stage.combiner is not None
        right = ", ".join(map(format_expr, stage.combiner.identity))
        text = f"{left} = {right}"
    else:
        values = [_redirected(substitute_in_expr(v, mapping), compute) for v in stage.values]
        if stage.routine is None:
            text = _format_update(left, values, stage.combiner)
        else:
            text = f"{left} = {format_routine(stage, tuple(values))}"
    if compute.guard and mark_guard:
        text += f"  # if {' and '.join(map(format_condition, compute.guard))}"
    return text


def _redirected(expr: Expr, compute: Compute) -> Expr:
    from tensorlang.ir.walk import rewrite_expr

    def visit(node: Expr) -> Expr:
        return Load(compute.redirect(node.tensor), node.indices) if isinstance(node, Load) else node

    return rewrite_expr(expr, visit) if compute.via else expr


def _format_update(left: str, values: list[Expr], combiner: Combiner | None) -> str:
    right = ", ".join(map(format_expr, values))
    if combiner is None:
        return f"{left} = {right}"
    if combiner.name in _UPDATES:
        return f"{left} {_UPDATES[combiner.name]} {right}"
    return f"{left} = {combiner.name}({left}; {right})"


def format_stmt(stmt: Stmt, depth: int = 0, mark: Mark | None = None) -> Iterator[str]:
    """Yield the lines of a statement of either grammar, indented by ``depth`` levels."""
    indent = "    " * depth

    def line(text: str) -> str:
        remark = mark(stmt) if mark is not None else ""
        return f"{indent}{text}{remark}"

    match stmt:
        case Seq():
            if not stmt.stmts:
                yield line("pass")
            for child in stmt.stmts:
                yield from format_stmt(child, depth, mark)
        case For():
            yield line(f"{_kind(stmt)}for {stmt.variable} in {stmt.extent}:{_remarks(stmt)}")
            yield from format_stmt(stmt.body, depth + 1, mark)
        case Fused():
            names = ", ".join(map(str, stmt.variables))
            extents = ", ".join(map(str, stmt.extents))
            run = stmt.run
            piece = f"[{run.size} * {run.chunk} : + {run.size}]" if run is not None else ""
            yield line(
                f"{_kind(stmt)}for {stmt.handle} = ({names}) in ({extents}){piece}:{_remarks(stmt)}"
            )
            yield from format_stmt(stmt.body, depth + 1, mark)
        case Alloc():
            box = f"{stmt.scope} {stmt.tensor.dtype.name}[{', '.join(map(str, stmt.shape))}]"
            origin = ""
            if any(form.terms or form.constant for form in stmt.origin):
                origin = f" at [{', '.join(map(str, stmt.origin))}]"
            layout = ""
            if stmt.layout is not None:
                names = ", ".join(map(str, stmt.layout.variables))
                layout = f" laid out ({names}) -> ({', '.join(map(str, stmt.layout.indices))})"
                layout += _padding(stmt) + (", folded" if stmt.layout.folded else "")
            yield line(f"{stmt.tensor} = {box}{origin}{layout}")
            yield from format_stmt(stmt.body, depth, mark)
        case Compute():
            yield line(format_compute(stmt))
        case Barrier():
            yield line("barrier")
        case Prefetch():
            ranges = [_range(*pair) for pair in zip(stmt.origin, stmt.shape, strict=True)]
            text = f"prefetch {stmt.tensor}[{', '.join(ranges) or '()'}]"
            yield line(f"{text}{_locality(stmt.locality)}")
        case PrefetchLine():
            yield line(f"prefetch {stmt.buffer}[{stmt.offset}]{_locality(stmt.locality)}")
        case If():
            yield line(f"if {' and '.join(map(format_condition, stmt.condition))}:")
            yield from format_stmt(stmt.then, depth + 1, mark)
            if stmt.otherwise is not None:
                yield f"{indent}else:"
                yield from format_stmt(stmt.otherwise, depth + 1, mark)
        case Store():
            left = ", ".join(f"{buffer.name}[{offset}]" for buffer, offset in stmt.targets)
            exact = "  # exact" if stmt.exact else ""
            yield line(f"{left} = {', '.join(map(format_expr, stmt.values))}{exact}")
        case Allocate():
            buffer = stmt.buffer
            zeroed = "  # zeroed" if stmt.zeroed else ""
            yield line(f"{buffer} = {buffer.scope} {buffer.dtype.name}[{buffer.size}]{zeroed}")
            yield from format_stmt(stmt.body, depth, mark)


def _padding(stmt: Alloc) -> str:
    """Return the shape in memory where it is more than the positions of the box need."""
    layout = stmt.layout
    assert layout is not None
    extents = dict(zip(layout.variables, stmt.shape, strict=False))
    needed = [bounds(index, extents) for index in layout.indices]
    spare = [
        interval is not None and is_nonnegative(size - interval[1] - 2)
        for interval, size in zip(needed, layout.shape, strict=False)
    ]
    if not any(spare):
        return ""
    return f" of [{', '.join(map(str, layout.shape))}]"


def _range(origin: Affine, extent: Affine) -> str:
    """Return ``origin : + extent``, or the index alone where it is one element."""
    return str(origin) if extent.is_constant and extent.constant == 1 else f"{origin} : + {extent}"


def _locality(locality: int) -> str:
    return "" if locality == 3 else f"  # locality={locality}"


def _kind(loop: For | Fused) -> str:
    return "" if loop.kind == "serial" else f"{loop.kind} "


def _remarks(loop: For | Fused) -> str:
    remarks = [] if loop.tail == "auto" else [f"tail={loop.tail}"]
    remarks.extend(f"{key}={value}" for key, value in loop.hints)
    return f"  # {', '.join(remarks)}" if remarks else ""


def format_program(program: Program) -> str:
    """Return a scheduled program with its signature."""
    header = f"{format_signature(program.definition)}:"
    streamed = [f"    # {tensor} is written past the caches" for tensor in program.streamed]
    assumed = [f"    assume {_format_assumption(condition)}" for condition in program.conditions]
    body = format_stmt(distinct_names(program.body), 1)
    return "\n".join([header, *assumed, *streamed, *body])


def _format_assumption(condition: Condition) -> str:
    form = condition.form
    return f"{form} == 0" if condition.equality else format_condition(form)


def format_lowered(program: LoweredProgram) -> str:
    """Return a lowered program with the buffers that it is called with."""
    buffers = [f"{b.name}: {b.dtype.name}[{b.size}]" for b in program.inputs + program.outputs]
    scalars = [f"{scalar.name}: {scalar.dtype.name}" for scalar in program.scalars]
    sizes = [str(size) for size in program.sizes]
    header = f"def {program.name}({', '.join(buffers + scalars + sizes)}):"
    streamed = [f"    # {b} is written past the caches" for b in program.outputs if b.streamed]
    return "\n".join([header, *streamed, *format_stmt(distinct_names(program.body), 1)])


def format_signature(definition: Definition) -> str:
    """Return ``def matmul(A: f32[M, K], B: f32[K, N]) -> f32[M, N]`` without the colon."""
    parameters = [f"{tensor.name}: {format_tensor_type(tensor)}" for tensor in definition.inputs]
    parameters += [f"{scalar.name}: {scalar.dtype.name}" for scalar in definition.scalars]
    attributes = [f"{name}={value!r}" for name, value in definition.attributes]
    outputs = ", ".join(map(format_tensor_type, definition.outputs))
    return f"def {definition.name}({', '.join(parameters + attributes)}) -> {outputs}"


def format_definition(definition: Definition) -> str:
    """Return a definition as one line a stage."""
    lines = [f"{format_signature(definition)}:"]
    lines.extend(f"    {format_stage(stage)}" for stage in definition.stages)
    return "\n".join(lines)


def format_stage(stage: Stage) -> str:
    """Return ``C[i < M, j < N] = sum(A[i, k] * B[k, j] for k < K)``."""
    axes = ", ".join(f"{axis.variable} < {axis.extent}" for axis in stage.axes) or "()"
    left = ", ".join(f"{tensor.name}[{axes}]" for tensor in stage.tensors)
    if stage.routine is not None:
        return f"{left} = {format_routine(stage, stage.values)}"
    right = ", ".join(map(format_expr, stage.values))
    if stage.combiner is None:
        return f"{left} = {right}"
    over = ", ".join(f"{axis.variable} < {axis.extent}" for axis in stage.reduction_axes)
    predicate = " and ".join(map(format_condition, stage.predicate))
    where = f" if {predicate}" if predicate else ""
    ordered = ", ordered" if stage.combiner.ordered else ""
    return f"{left} = {stage.combiner.name}({right} for {over}{where}{ordered})"


def format_combiner(combiner: Combiner) -> str:
    """Return a combiner as ``(a), (b) -> a + b``."""
    names = {p: p for p in combiner.left + combiner.right}
    results = [format_expr(replace_placeholders(result, dict(names))) for result in combiner.result]
    left, right = (", ".join(p.name for p in side) for side in (combiner.left, combiner.right))
    return f"({left}), ({right}) -> {', '.join(results)}"
