"""Values, index forms and conditions as C expressions."""

from __future__ import annotations

import math

from tensorlang.dtypes import DType, is_float
from tensorlang.errors import CompileError
from tensorlang.ir.affine import (
    Affine,
    Atom,
    FloorDiv,
    Min,
    Product,
    SymbolicDiv,
    ValueAtom,
    Var,
)
from tensorlang.ir.definition import Scalar
from tensorlang.ir.expr import Bitcast, Call, Cast, Const, Expr, IndexValue, ScalarRef, Select
from tensorlang.ir.lowered import Buffer, FlatLoad

C_TYPES = {
    "bool": "bool", "f32": "float", "f64": "double",
    "i8": "int8_t", "i16": "int16_t", "i32": "int32_t", "i64": "int64_t",
    "u8": "uint8_t", "u16": "uint16_t", "u32": "uint32_t", "u64": "uint64_t",
}  # fmt: skip

_OPERATORS = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "and": "&", "or": "|", "xor": "^",
    "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!=",
}  # fmt: skip

_LIBRARY = {
    "abs": "fabs", "floor": "floor", "ceil": "ceil", "round": "rint", "trunc": "trunc",
    "sqrt": "sqrt", "exp": "exp", "exp2": "exp2", "expm1": "expm1", "log": "log", "log2": "log2",
    "log1p": "log1p", "sin": "sin", "cos": "cos", "tan": "tan", "asin": "asin", "acos": "acos",
    "atan": "atan", "atan2": "atan2", "sinh": "sinh", "cosh": "cosh", "tanh": "tanh",
    "erf": "erf", "pow": "pow", "fma": "fma",
}  # fmt: skip


class Names:
    """A C name for each variable, buffer and scalar."""

    def __init__(self) -> None:
        self._names: dict[object, str] = {}

    def _name(self, key: object, name: str) -> str:
        if key not in self._names:
            plain = "".join(c if c.isascii() and c.isalnum() else "_" for c in name)
            self._names[key] = f"v_{plain}_{len(self._names)}"
        return self._names[key]

    def variable(self, variable: Var) -> str:
        """Return the name of a loop or a size."""
        return self._name(variable, variable.name)

    def buffer(self, buffer: Buffer) -> str:
        """Return the name of a buffer."""
        return self._name(buffer, buffer.name)

    def scalar(self, scalar: Scalar) -> str:
        """Return the name of a scalar parameter."""
        return self._name(scalar, scalar.name)


def index(form: Affine, names: Names) -> str:
    """Return an index form as a C expression of type int64_t."""
    parts = [f"INT64_C({form.constant})"] if form.constant or not form.terms else []
    for atom, coef in form.terms:
        text = _atom(atom, names)
        parts.append(text if coef == 1 else f"{coef} * {text}")
    return f"({' + '.join(parts)})"


def _atom(atom: Atom, names: Names) -> str:
    match atom:
        case Var():
            return names.variable(atom)
        case FloorDiv():
            return f"floordiv_i64({index(atom.operand, names)}, {atom.divisor})"
        case SymbolicDiv():
            return f"floordiv_i64({index(atom.operand, names)}, {index(atom.divisor, names)})"
        case Product():
            return f"({' * '.join(_atom(factor, names) for factor in atom.factors)})"
        case Min():
            result = index(atom.operands[0], names)
            for operand in atom.operands[1:]:
                result = f"least({result}, {index(operand, names)})"
            return result
        case ValueAtom():
            return f"(int64_t){expression(atom.expr, names)}"


def condition(forms: tuple[Affine, ...], names: Names) -> str:
    """Return a C condition that holds where every form is >= 0."""
    return " && ".join(f"{index(form, names)} >= 0" for form in forms) or "true"


def expression(expr: Expr, names: Names) -> str:
    """Return a value as a C expression; ``?:`` is as lazy as ``tl.where``."""
    match expr:
        case Const():
            return _constant(expr.value, expr.dtype)
        case IndexValue():
            return f"({_type(expr.dtype)}){index(expr.index, names)}"
        case ScalarRef():
            return names.scalar(expr.scalar)
        case FlatLoad():
            return _load(expr, names)
        case Select():
            parts = [expression(e, names) for e in (expr.condition, expr.then, expr.otherwise)]
            return f"({parts[0]} ? {parts[1]} : {parts[2]})"
        case Cast():
            return _cast(expression(expr.operand, names), expr.operand.dtype, expr.dtype)
        case Bitcast():
            source, target = _type(expr.operand.dtype), _type(expr.dtype)
            value = expression(expr.operand, names)
            return f"((union {{ {source} from; {target} to; }}){{ .from = {value} }}.to)"
        case Call():
            return _call(expr, [expression(arg, names) for arg in expr.args])
        case _:
            raise TypeError(f"{type(expr).__name__} is no part of a lowered program")


def _type(dtype: DType) -> str:
    if dtype.name not in C_TYPES:
        raise CompileError(f'the backend "c" has no {dtype.name}; the backend "cpu" has')
    return C_TYPES[dtype.name]


def _constant(value: bool | int | float, dtype: DType) -> str:
    if not is_float(dtype):
        return f"({_type(dtype)}){int(value)}{'u' if dtype.kind == 'uint' else ''}ll"
    number = float(value)
    if math.isnan(number):
        return f"({_type(dtype)})NAN"
    if math.isinf(number):
        return f"({_type(dtype)}){'-' if number < 0 else ''}INFINITY"
    return f"({_type(dtype)}){number.hex()}"


def _load(load: FlatLoad, names: Names) -> str:
    value = f"{names.buffer(load.buffer)}[{index(load.offset, names)}]"
    if not load.checks:
        return value
    checks = [
        f"inside({index(c.index, names)}, {index(c.extent, names)}, {c.site}, status)"
        for c in load.checks
    ]
    return f"({' && '.join(checks)} ? {value} : 0)"


def _cast(value: str, source: DType, target: DType) -> str:
    if target.name == "bool":
        return f"({value} != 0)"
    if is_float(source) and not is_float(target):
        return f"to_{target.name}({value})"
    return f"(({_type(target)}){value})"


def _call(call: Call, args: list[str]) -> str:
    operand = call.args[0].dtype
    suffix = "f" if operand.name == "f32" else ""
    name = call.function
    if name in _OPERATORS:
        return f"(({_type(call.dtype)})({args[0]} {_OPERATORS[name]} {args[1]}))"
    if is_float(operand):
        if name in _LIBRARY:
            return f"{_LIBRARY[name]}{suffix}({', '.join(args)})"
        match name:
            case "neg":
                return f"(-{args[0]})"
            case "isnan" | "isinf":
                return f"(bool){name}({args[0]})"
            case _:
                return f"{name}_{operand.name}({', '.join(args)})"
    return _integer_call(name, args, operand)


def _integer_call(name: str, args: list[str], dtype: DType) -> str:
    type_name, bits = _type(dtype), dtype.bits
    match name:
        case "floordiv" | "mod":
            return f"{name}_{dtype.name}({args[0]}, {args[1]})"
        case "neg":
            return f"(({type_name})-{args[0]})"
        case "not":
            return f"(!{args[0]})" if dtype.name == "bool" else f"(({type_name})~{args[0]})"
        case "minimum" | "maximum":
            sign = "<" if name == "minimum" else ">"
            return _with(args, type_name, f"a {sign} b ? a : b")
        case "abs":
            return _with(args, type_name, "a < 0 ? -a : a")
        case "sign":
            return _with(args, type_name, "(a > 0) - (a < 0)")
        case "shl":
            return _with(args, type_name, f"b < 0 || b >= {bits} ? 0 : a << b")
        case "shr":
            return _with(args, type_name, f"b < 0 || b >= {bits} ? (a < 0 ? -1 : 0) : a >> b")
        case "popcount":
            mask = "" if bits == 64 else f" & {2**bits - 1}ull"
            return f"(({type_name})__builtin_popcountll((uint64_t){args[0]}{mask}))"
        case "isnan" | "isinf":
            return "false"
        case "pow":
            return f"power_{dtype.name}({args[0]}, {args[1]})"
        case _:
            raise CompileError(f'the backend "c" has no {name} for {dtype.name}')


def _with(args: list[str], type_name: str, body: str) -> str:
    """Return ``body`` over a and b, each evaluated once."""
    declared = ", ".join(f"{name} = {arg}" for name, arg in zip("ab", args, strict=False))
    return f"({{ {type_name} {declared}; ({type_name})({body}); }})"
