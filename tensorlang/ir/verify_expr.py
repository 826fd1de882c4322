"""The rules that every value expression obeys: known functions, arity, and dtypes that agree.

Input:  ``Call("add", (Load(X, (i,)), Const(1, i32)), f32)`` with X of f32
Output: ``add takes operands of one dtype, not f32 and i32``

f16 and bf16 count as the f32 in which they are evaluated.
"""

from __future__ import annotations

from collections.abc import Iterator

from tensorlang.dtypes import (
    DType,
    bool_,
    evaluation_dtype,
    i64,
    integer_range,
    is_float,
    is_integer,
)
from tensorlang.ir.affine import Var, atom_variables
from tensorlang.ir.expr import (
    Bitcast,
    Call,
    Const,
    Expr,
    IndexValue,
    Load,
    Select,
    index_forms,
    iterate,
)
from tensorlang.ir.functions import ANYWHERE, FUNCTIONS, Function, Operands


def expr_faults(*roots: Expr) -> Iterator[str]:
    """Yield what is wrong with the nodes below ``roots``, one sentence a fault."""
    for node in iterate(*roots):
        match node:
            case Call():
                yield from _call_faults(node)
            case Select():
                yield from _select_faults(node)
            case Bitcast():
                if node.operand.dtype.bits != node.dtype.bits:
                    yield f"bitcast of {node.operand.dtype.name} to {node.dtype.name}"
            case Load():
                if len(node.indices) != len(node.tensor.shape):
                    yield (
                        f"{node.tensor} has {len(node.tensor.shape)} axes "
                        f"and is read with {len(node.indices)} indices"
                    )
            case IndexValue():
                if node.dtype is bool_:
                    yield "an index expression has dtype bool"
            case Const() if not _fits(node):
                yield f"the literal {node.value!r} has dtype {node.dtype.name}"
            case _:
                pass


def unknown_variables(roots: tuple[Expr, ...], known: frozenset[Var]) -> Iterator[str]:
    """Yield a sentence for each variable below ``roots`` that is not in ``known``."""
    for node in iterate(*roots):
        for form in index_forms(node):
            for atom, _ in form.terms:
                for variable in atom_variables(atom):
                    if variable not in known:
                        yield f"{variable} is used where it has no value"


def agree(left: DType, right: DType) -> bool:
    """Tell whether values of two dtypes are computed in the same one."""
    return evaluation_dtype(left) is evaluation_dtype(right)


def accepts(operands: Operands, dtype: DType) -> bool:
    """Tell whether a function with such operands takes ``dtype``."""
    match operands:
        case "number":
            return dtype is not bool_
        case "integer":
            return is_integer(dtype)
        case "float":
            return is_float(dtype)
        case "bits":
            return not is_float(dtype)
        case "any":
            return True


def _fits(literal: Const) -> bool:
    """Tell whether a literal is a value of its dtype; a float may be given as an integer."""
    if is_float(literal.dtype):
        return not isinstance(literal.value, bool)
    low, high = integer_range(literal.dtype)
    kind = bool if literal.dtype is bool_ else int
    return type(literal.value) is kind and low <= literal.value <= high


def _call_faults(node: Call) -> Iterator[str]:
    function = FUNCTIONS.get(node.function)
    if node.function == ANYWHERE and not node.args and node.dtype is i64:
        return
    if function is None:
        yield f"{node.function} is no function"
        return
    if len(node.args) != function.arity:
        yield f"{node.function} takes {function.arity} operands, not {len(node.args)}"
        return
    dtypes = [arg.dtype for arg in node.args]
    if not all(agree(dtype, dtypes[0]) for dtype in dtypes):
        names = " and ".join(dtype.name for dtype in dtypes)
        yield f"{node.function} takes operands of one dtype, not {names}"
    if not accepts(function.operands, dtypes[0]):
        yield f"{node.function} does not take {dtypes[0].name}"
    if not agree(node.dtype, _result(function, dtypes[0])):
        yield f"{node.function} of {dtypes[0].name} cannot have dtype {node.dtype.name}"


def _result(function: Function, operand: DType) -> DType:
    return bool_ if function.result == "bool" else operand


def _select_faults(node: Select) -> Iterator[str]:
    if node.condition.dtype is not bool_:
        yield f"the condition of a where has dtype {node.condition.dtype.name}"
    for branch in (node.then, node.otherwise):
        if not agree(branch.dtype, node.dtype):
            yield f"a where of dtype {node.dtype.name} has a branch of {branch.dtype.name}"
