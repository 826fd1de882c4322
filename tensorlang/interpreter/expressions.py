"""Value expressions as Python source over NumPy scalars of the evaluation dtype.

Input:  ``A[i, k] * 2 + i``
Output: ``t1 = A_cells[...]``, ``t2 = t1 * k1``, ``t3 = float32(v1)``, ``t4 = t2 + t3``

NumPy scalars round each operation in their own dtype, as the definition asks. Operators of NumPy
scalars are ten times faster than its functions, and equal to them (a test compares all).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tensorlang.dtypes import (
    DType,
    evaluation_dtype,
)
from tensorlang.interpreter import arithmetic
from tensorlang.interpreter.accesses import Origin, locate, read
from tensorlang.interpreter.context import Context
from tensorlang.interpreter.conversions import (
    constant_scalar,
    index_scalar,
    scalar_bitcast,
    scalar_cast,
    value_scalar,
    widen,
)
from tensorlang.interpreter.failures import InterpreterError, Site
from tensorlang.interpreter.forms import form_text, tuple_text
from tensorlang.interpreter.placement import (
    STATEMENT,
    Placement,
    Scope,
    branch_scope,
    moved_loads,
    place,
    thunk_scope,
)
from tensorlang.ir.affine import Affine
from tensorlang.ir.definition import Tensor
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
    index_values,
    values_in_index,
)
from tensorlang.ir.lowered import BoundsCheck, FlatLoad
from tensorlang.ir.printer import format_expr

OPERATORS: dict[str, str] = {
    "add": "{} + {}", "sub": "{} - {}", "mul": "{} * {}", "div": "{} / {}",
    "floordiv": "{} // {}", "mod": "{} % {}", "neg": "-{}",
    "and": "{} & {}", "or": "{} | {}", "xor": "{} ^ {}", "not": "~{}",
    "shl": "{} << {}", "shr": "{} >> {}",
    "lt": "{} < {}", "le": "{} <= {}", "gt": "{} > {}", "ge": "{} >= {}",
    "eq": "{} == {}", "ne": "{} != {}", "abs": "abs({})",
    "minimum": "({0} if {0} < {1} or {0} != {0} else {1})",
    "maximum": "({0} if {0} > {1} or {0} != {0} else {1})",
}  # fmt: skip
"""The functions that are quicker as operators on scalars; all others are called."""


@dataclass(slots=True)
class _Values:
    """The translation of one statement's expressions."""

    context: Context
    origin: Origin
    placement: Placement
    placeholders: Mapping[Placeholder, str]
    redirect: Callable[[Tensor], Tensor]
    moved: frozenset[int]
    texts: dict[int, str] = field(default_factory=dict[int, str])

    def text(self, expr: Expr) -> str:
        """Return the source of a value that has been computed (or the call of its thunk)."""
        return self.texts[id(expr)]


def write_values(
    context: Context,
    origin: Origin,
    roots: tuple[Expr, ...],
    placeholders: Mapping[Placeholder, str] = {},
    redirect: Callable[[Tensor], Tensor] = lambda tensor: tensor,
    moves: bool = False,
) -> tuple[str, ...]:
    """Write the computation of expressions and return the sources of their values.

    ``redirect`` says where the elements of a tensor are read from. With ``moves``, an element
    that is only passed on may be one that was never written (see ``accesses.read``).
    """
    moved = moved_loads(roots) if moves else frozenset[int]()
    values = _Values(context, origin, place(roots), placeholders, redirect, moved)
    for thunk in values.placement.thunks:
        values.texts[id(thunk)] = f"{context.writer.fresh('f')}()"
    for thunk in values.placement.thunks:
        _write_thunk(values, thunk)
    _write_scope(values, STATEMENT)
    return tuple([values.text(root) for root in roots])


def write_forms(context: Context, origin: Origin, forms: tuple[Affine, ...]) -> tuple[str, ...]:
    """Write what index expressions take from data and return their sources."""
    roots = tuple([value for form in forms for value in values_in_index(form)])
    if not roots:
        return tuple([form_text(form, context.names) for form in forms])
    texts = write_values(context, origin, roots)
    known = {id(root): text for root, text in zip(roots, texts, strict=True)}
    return tuple([form_text(form, context.names, lambda expr: known[id(expr)]) for form in forms])


def _write_thunk(values: _Values, thunk: Expr) -> None:
    writer = values.context.writer
    name = values.text(thunk)[:-2]
    memo = f"memo_{name}"
    writer.line(f"{memo} = []")
    with writer.block(f"def {name}():"):
        writer.line(f"if {memo}: return {memo}[0]")
        *others, last = values.placement.nodes[thunk_scope(thunk)]
        for node in others:
            _write_node(values, node)
        call = values.texts[id(last)]
        _write_node(values, last)
        writer.line(f"{memo}.append({values.text(last)})")
        writer.line(f"return {memo}[0]")
        values.texts[id(last)] = call


def _write_scope(values: _Values, scope: Scope) -> None:
    for node in values.placement.nodes.get(scope, []):
        _write_node(values, node)


def _write_node(values: _Values, node: Expr) -> None:
    context = values.context
    match node:
        case Const():
            text = context.writer.constant(constant_scalar(node.value, node.dtype))
        case ScalarRef():
            text = _scalar_text(context, node)
        case Placeholder():
            if node not in values.placeholders:
                raise InterpreterError(f"{node.name} stands outside a combiner")
            text = values.placeholders[node]
        case IndexValue():
            index = form_text(node.index, context.names, values.text)
            text = _assign(values, f"{context.writer.constant(index_scalar(node.dtype))}({index})")
        case Load():
            text = _write_load(values, node)
        case FlatLoad():
            text = _write_flat_load(values, node)
        case Call():
            text = _assign(values, _call_text(values, node))
        case Cast():
            convert = context.writer.constant(scalar_cast(node.operand.dtype, node.dtype))
            text = _assign(values, f"{convert}({values.text(node.operand)})")
        case Bitcast():
            convert = context.writer.constant(scalar_bitcast(node.operand.dtype, node.dtype))
            text = _assign(values, f"{convert}({values.text(node.operand)})")
        case Select():
            text = _write_select(values, node)
    values.texts[id(node)] = text


def _assign(values: _Values, source: str) -> str:
    name = values.context.writer.fresh("t")
    values.context.writer.line(f"{name} = {source}")
    return name


def _scalar_text(context: Context, node: ScalarRef) -> str:
    if node.scalar not in context.scalars:
        raise InterpreterError(f"the scalar {node.scalar.name} was not given a value")
    value = value_scalar(context.scalars[node.scalar], node.scalar.dtype)
    return context.writer.constant(value)


def _call_text(values: _Values, node: Call) -> str:
    args = [values.text(arg) for arg in node.args]
    operator = OPERATORS.get(node.function)
    if operator is not None:
        return operator.format(*args)
    function = values.context.writer.constant(arithmetic.implementation(node.function))
    return f"{function}({', '.join(args)})"


def _write_select(values: _Values, node: Select) -> str:
    writer = values.context.writer
    name = writer.fresh("t")
    branches = (("if", 1, node.then), ("else", 2, node.otherwise))
    for keyword, branch, value in branches:
        condition = f" {values.text(node.condition)}" if branch == 1 else ""
        with writer.block(f"{keyword}{condition}:"):
            _write_scope(values, branch_scope(node, branch))
            writer.line(f"{name} = {values.text(value)}")
    return name


def _write_load(values: _Values, node: Load) -> str:
    context = values.context
    tensor = values.redirect(node.tensor)
    storage = context.storages.get(tensor)
    if storage is None:
        raise InterpreterError(f"{values.origin.statement} reads {tensor}, which has no storage")
    indices = tuple([form_text(index, context.names, values.text) for index in node.indices])
    from_data = bool(index_values(node))
    element = locate(context, storage, indices, values.origin, "reads", from_data)
    moves = id(node) in values.moved
    return _widened(values, read(context, element, moves=moves), storage.dtype)


def _write_flat_load(values: _Values, node: FlatLoad) -> str:
    context = values.context
    storage = context.storages.get(node.buffer)
    if storage is None:
        raise InterpreterError(f"{values.origin.statement} reads {node.buffer}, which is not there")
    for check in node.checks:
        _write_check(values, check, format_expr(node))
    offset = form_text(node.offset, context.names, values.text)
    element = locate(context, storage, (offset,), values.origin, "reads")
    moves = id(node) in values.moved
    return _widened(values, read(context, element, moves=moves), storage.dtype)


def _write_check(values: _Values, check: BoundsCheck, load: str) -> None:
    context, writer = values.context, values.context.writer
    index, extent = (
        _assign(values, form_text(form, context.names, values.text))
        for form in (check.index, check.extent)
    )
    where = load
    if check.site < len(context.check_sites):
        site = context.check_sites[check.site]
        where = f"axis {site.axis} of {site.tensor} ({site.location})"
    origin = values.origin
    described = writer.constant(
        Site(origin.statement, origin.variables, origin.part, "reads", load)
    )
    writer.line(
        f"if not 0 <= {index} < {extent}: raise failed_check("
        f"{described}, {tuple_text(origin.values)}, {index}, {extent}, {where!r})"
    )


def _widened(values: _Values, text: str, dtype: DType) -> str:
    if evaluation_dtype(dtype) is dtype:
        return text
    return _assign(values, f"{values.context.writer.constant(widen)}({text})")
