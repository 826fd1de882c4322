"""Value expressions: what one element of a stage is computed from.

Input:  ``A[i, k] * 2 + i``
Output: ``Call("add", (Call("mul", (Load(A, (i, k)), Const(2.0)), f32), IndexValue(i)), f32)``

Nodes are frozen, carry their dtype, and may be shared: an expression is a graph without cycles, so
every walk over it remembers the nodes it has seen by identity (see ``walk``). All arithmetic is a
``Call`` of a function listed in ``functions``; what is lazy (``Select``) or reads memory (``Load``)
is a node of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias, Union
from weakref import WeakValueDictionary

from tensorlang.dtypes import DType, bool_, i64
from tensorlang.ir.affine import (
    Affine,
    FloorDiv,
    Key,
    Min,
    Product,
    SymbolicDiv,
    ValueAtom,
    Var,
    affine,
    variables_of,
)

if TYPE_CHECKING:
    from tensorlang.ir.definition import Scalar, Tensor
    from tensorlang.ir.lowered import FlatLoad

Number: TypeAlias = bool | int | float


@dataclass(frozen=True, slots=True)
class Const:
    """A literal of a known dtype; the value is already representable in it."""

    value: Number
    dtype: DType


@dataclass(frozen=True, slots=True)
class IndexValue:
    """An index expression used as a value: ``i`` in ``X[i] + i``. Computed in i64, then cast."""

    index: Affine
    dtype: DType


@dataclass(frozen=True, slots=True)
class ScalarRef:
    """The value of a scalar parameter (``alpha: tl.f32``)."""

    scalar: Scalar

    @property
    def dtype(self) -> DType:
        """The parameter's dtype."""
        return self.scalar.dtype


@dataclass(frozen=True, slots=True, eq=False)
class Placeholder:
    """One component of the state in a reduction's combiner; compared by identity."""

    name: str
    dtype: DType


@dataclass(frozen=True, slots=True)
class Load:
    """One element of a tensor, by its logical index. f16 and bf16 elements arrive as f32."""

    tensor: Tensor
    indices: tuple[Affine, ...]

    @property
    def dtype(self) -> DType:
        """The dtype of the tensor's elements (before evaluation widens f16 and bf16)."""
        return self.tensor.dtype


@dataclass(frozen=True, slots=True)
class Call:
    """A function of ``functions.FUNCTIONS`` applied to evaluated operands."""

    function: str
    args: tuple[Expr, ...]
    dtype: DType


@dataclass(frozen=True, slots=True)
class Cast:
    """A conversion: float to integer saturates and takes NaN to 0, integers wrap."""

    operand: Expr
    dtype: DType


@dataclass(frozen=True, slots=True)
class Bitcast:
    """The same bits read as another dtype of the same width."""

    operand: Expr
    dtype: DType


@dataclass(frozen=True, slots=True)
class Select:
    """``tl.where``: lazy, so a load inside a branch happens only where the branch is taken."""

    condition: Expr
    then: Expr
    otherwise: Expr
    dtype: DType


Expr: TypeAlias = Union[
    Const, IndexValue, ScalarRef, Placeholder, Load, Call, Cast, Bitcast, Select, "FlatLoad"
]


def children(expr: Expr) -> tuple[Expr, ...]:
    """Return the direct operands of ``expr`` (index expressions are not operands)."""
    match expr:
        case Call():
            return expr.args
        case Cast() | Bitcast():
            return (expr.operand,)
        case Select():
            return (expr.condition, expr.then, expr.otherwise)
        case _:
            return ()


def index_forms(expr: Expr) -> tuple[Affine, ...]:
    """Return the index expressions that stand directly in ``expr``."""
    from tensorlang.ir.lowered import FlatLoad

    match expr:
        case Load():
            return expr.indices
        case IndexValue():
            return (expr.index,)
        case FlatLoad():
            checks = [form for check in expr.checks for form in (check.index, check.extent)]
            return (expr.offset, *checks)
        case _:
            return ()


def index_values(expr: Expr) -> tuple[Expr, ...]:
    """Return the data-dependent values that the index expressions of ``expr`` are made of."""
    return tuple([value for form in index_forms(expr) for value in values_in_index(form)])


def iterate(*roots: Expr) -> Iterator[Expr]:
    """Yield every node below ``roots`` once, operands before their users.

    Values inside index expressions come before the node that is indexed.
    """
    yield from postorder(roots, lambda node: children(node) + index_values(node))


def postorder(
    roots: tuple[Expr, ...], operands: Callable[[Expr], tuple[Expr, ...]]
) -> Iterator[Expr]:
    """Yield nodes once each, operands first; without recursion, so that depth costs nothing."""
    seen: set[int] = set()
    for root in roots:
        stack: list[tuple[Expr, bool]] = [(root, False)]
        while stack:
            node, expanded = stack.pop()
            if expanded:
                yield node
            elif id(node) not in seen:
                seen.add(id(node))
                stack.append((node, True))
                stack.extend([(operand, False) for operand in reversed(operands(node))])


def values_in_index(index: Affine) -> Iterator[Expr]:
    """Yield the data-dependent values that ``index`` is made of."""
    for atom, _ in index.terms:
        stack = [atom]
        while stack:
            match stack.pop():
                case ValueAtom(expr=expr):
                    yield expr
                case FloorDiv(operand=operand):
                    yield from values_in_index(operand)
                case SymbolicDiv(operand=operand, divisor=divisor):
                    yield from values_in_index(operand)
                    yield from values_in_index(divisor)
                case Product(factors=factors):
                    stack.extend(factors)
                case Min(operands=operands):
                    for operand in operands:
                        yield from values_in_index(operand)
                case _:
                    pass


def loads_of(*roots: Expr) -> tuple[Load, ...]:
    """Return the loads below ``roots``, those inside data-dependent indices included."""
    return tuple(expr for expr in iterate(*roots) if isinstance(expr, Load))


def expr_variables(*roots: Expr) -> frozenset[Var]:
    """Return the variables that the expressions depend on through their indices."""
    found: set[Var] = set()
    for expr in postorder(roots, children):  # an index knows the variables of its values
        for index in index_forms(expr):
            found |= variables_of(index)
    return frozenset(found)


class StructuralKey:
    """A sortable key of an expression, hashed once and made once.

    Keys of expressions hold those of the expressions inside their indices. Equal ones are one
    object (but for two threads that make them at once), so that nobody compares or hashes again
    and again what lies deep inside.
    """

    __slots__ = ("__weakref__", "_hash", "rows")

    def __init__(self, rows: Key) -> None:
        self.rows = rows
        self._hash = hash(rows)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return (
            isinstance(other, StructuralKey)
            and self._hash == other._hash
            and self.rows == other.rows
        )

    def __lt__(self, other: StructuralKey) -> bool:
        return self.rows < other.rows

    def __hash__(self) -> int:
        return self._hash


_keys: WeakValueDictionary[Key, StructuralKey] = WeakValueDictionary()


def structural_key(expr: Expr) -> StructuralKey:
    """Return a sortable key, equal exactly for expressions that are built alike.

    The key lists the distinct nodes, operands by their number, so that its length is that of the
    graph however much is shared: a tree would be exponentially long.
    """
    rows: dict[Key, int] = {}
    numbers: dict[int, int] = {}
    for node in postorder((expr,), children):
        operands = tuple([numbers[id(operand)] for operand in children(node)])
        numbers[id(node)] = rows.setdefault(_structural_row(node, operands), len(rows))
    listed = tuple(rows)
    known = _keys.get(listed)
    return _keys.setdefault(listed, StructuralKey(listed)) if known is None else known


def _structural_row(expr: Expr, operands: tuple[int, ...]) -> Key:
    forms = tuple([index.key for index in index_forms(expr)])
    return (type(expr).__name__, *_identity_of(expr), expr.dtype.name, operands, forms)


def _identity_of(expr: Expr) -> tuple[str, int]:
    """Return what tells ``expr`` from others of its class: a name, and an identity or zero."""
    match expr:
        case Const():
            return repr(expr.value), 0
        case Call():
            return expr.function, 0
        case ScalarRef():
            return expr.scalar.name, id(expr.scalar)
        case Placeholder():
            return expr.name, id(expr)
        case Load():
            return expr.tensor.name, id(expr.tensor)
        case IndexValue() | Cast() | Bitcast() | Select():
            return "", 0
        case _:
            return expr.buffer.name, id(expr.buffer)


def value_atom(expr: Expr) -> ValueAtom:
    """Return the atom that stands for the integer value ``expr`` inside an index expression."""
    return ValueAtom(expr, expr_variables(expr), (structural_key(expr),))


def index_from_value(expr: Expr) -> Affine:
    """Return an integer value as an index expression.

    Sums, differences and products with constants become linear forms, so that
    ``X[table[i] * 2 + 1]`` and ``X[2 * table[i] + 1]`` have the same index.
    """
    match expr:
        case IndexValue():
            return expr.index
        case Const(value=value):
            return affine(int(value))
        case Cast(operand=operand, dtype=dtype) if dtype is i64 and operand.dtype.kind in (
            "int",
            "uint",
            "bool",
        ):
            return index_from_value(operand) if not _computes(operand) else affine(value_atom(expr))
        case Call(function="add", args=(left, right), dtype=dtype) if dtype is i64:
            return index_from_value(left) + index_from_value(right)
        case Call(function="sub", args=(left, right), dtype=dtype) if dtype is i64:
            return index_from_value(left) - index_from_value(right)
        case Call(function="mul", args=(left, Const(value=factor)), dtype=dtype) if dtype is i64:
            return index_from_value(left) * int(factor)
        case Call(function="mul", args=(Const(value=factor), right), dtype=dtype) if dtype is i64:
            return index_from_value(right) * int(factor)
        case _:
            return affine(value_atom(expr))


def _computes(expr: Expr) -> bool:
    """Whether an integer expression does arithmetic, which may wrap in its own width."""
    return isinstance(expr, Call | Select | Cast | Bitcast)


def affine_conditions(condition: Expr) -> tuple[Affine, ...] | None:
    """Return forms that are all >= 0 exactly where ``condition`` holds; None if there are none.

    Understands comparisons of index expressions with each other and with integers, joined by
    ``and``; ``a == b`` is two forms.
    """
    if condition.dtype is not bool_ or not isinstance(condition, Call):
        return None
    if condition.function == "and":
        parts = [affine_conditions(arg) for arg in condition.args]
        if any(part is None for part in parts):
            return None
        return tuple(form for part in parts if part is not None for form in part)
    if condition.function not in ("lt", "le", "gt", "ge", "eq"):
        return None
    left, right = map(_as_index, condition.args)
    if left is None or right is None:
        return None
    match condition.function:
        case "lt":
            return (right - left - 1,)
        case "le":
            return (right - left,)
        case "gt":
            return (left - right - 1,)
        case "ge":
            return (left - right,)
        case _:
            return (left - right, right - left)


def _as_index(expr: Expr) -> Affine | None:
    if isinstance(expr, IndexValue) and expr.dtype.kind in ("int", "uint"):
        return expr.index
    if isinstance(expr, Const) and isinstance(expr.value, int):
        # A difference with more than this might not fit into i64: such a comparison stays one.
        return affine(int(expr.value)) if abs(expr.value) <= 2**61 else None
    return None


def negated_conditions(condition: Expr) -> tuple[Affine, ...] | None:
    """Return forms that are all >= 0 exactly where ``condition`` fails, if there are any."""
    forms = affine_conditions(condition)
    if forms is not None and len(forms) == 1:
        return (-forms[0] - 1,)
    if isinstance(condition, Call) and condition.function == "ne":
        left, right = map(_as_index, condition.args)
        if left is not None and right is not None:
            return (left - right, right - left)
    if isinstance(condition, Call) and condition.function == "or":
        parts = [negated_conditions(arg) for arg in condition.args]
        if all(part is not None for part in parts):
            return tuple(form for part in parts if part is not None for form in part)
    if isinstance(condition, Call) and condition.function == "not":
        return affine_conditions(condition.args[0])
    return None
