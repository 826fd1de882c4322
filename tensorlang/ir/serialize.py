"""Definitions as plain JSON values, and back: what a saved schedule or a cache key holds.

Input:  a ``Definition``      Output: nested lists, strings and numbers, without any object in them

Variables, tensors and scalars are numbered in the order in which they are met, so equal
definitions give equal documents. Reading builds the objects anew and trusts nothing: any document
that is not one of ours raises ``ValueError``.
"""

from __future__ import annotations

import math
from typing import Any

from tensorlang.dtypes import BY_NAME, DType
from tensorlang.ir.affine import (
    Affine,
    Atom,
    FloorDiv,
    Min,
    Product,
    SymbolicDiv,
    ValueAtom,
    Var,
    affine,
    minimum,
)
from tensorlang.ir.definition import (
    Axis,
    Combiner,
    Condition,
    Definition,
    Scalar,
    Stage,
    Tensor,
)
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
    index_from_value,
)
from tensorlang.ir.functions import FUNCTIONS
from tensorlang.source import SourceLocation

Json = Any


def definition_to_json(definition: Definition) -> Json:
    """Return the definition as a JSON value."""
    return _Writer().definition(definition)


def definition_from_json(document: Json) -> Definition:
    """Return the definition that :func:`definition_to_json` wrote; raises ValueError otherwise."""
    try:
        return _Reader().definition(document)
    except (KeyError, IndexError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"this is no saved definition ({type(error).__name__}: {error})") from None


class _Writer:
    """Numbers what is compared by identity; an expression's nodes form one list a definition."""

    def __init__(self) -> None:
        self._vars: dict[Var, int] = {}
        self._tensors: dict[Tensor, int] = {}
        self._scalars: dict[Scalar, int] = {}
        self._placeholders: dict[Placeholder, int] = {}
        self._nodes: list[Json] = []
        self._known: dict[int, tuple[int, Expr]] = {}

    def definition(self, definition: Definition) -> Json:
        sizes = [self.var(size) for size in definition.sizes]
        inputs = [self.tensor(tensor) for tensor in definition.inputs]
        scalars = [[s.name, s.dtype.name] for s in definition.scalars]
        self._scalars = {scalar: n for n, scalar in enumerate(definition.scalars)}
        stages = [self.stage(stage) for stage in definition.stages]
        conditions = [[self.index(c.form), c.message, c.equality] for c in definition.conditions]
        return {
            "name": definition.name,
            "sizes": sizes,
            "inputs": inputs,
            "scalars": scalars,
            "stages": stages,
            "outputs": [self._tensors[tensor] for tensor in definition.outputs],
            "conditions": conditions,
            "dims": [self.var(dim) for dim in definition.dims],
            "parameters": list(definition.parameters),
            "attributes": [[name, _plain(value)] for name, value in definition.attributes],
            "location": _location(definition.location),
            "documentation": definition.documentation,
            "variables": [variable.name for variable in self._vars],
            "nodes": self._nodes,
        }

    def var(self, variable: Var) -> int:
        return self._vars.setdefault(variable, len(self._vars))

    def tensor(self, tensor: Tensor) -> Json:
        self._tensors.setdefault(tensor, len(self._tensors))
        return [tensor.name, [self.index(extent) for extent in tensor.shape], tensor.dtype.name]

    def stage(self, stage: Stage) -> Json:
        return {
            "tensors": [self.tensor(tensor) for tensor in stage.tensors],
            "axes": [self.axis(axis) for axis in stage.axes],
            "values": [self.expr(value) for value in stage.values],
            "reduction_axes": [self.axis(axis) for axis in stage.reduction_axes],
            "combiner": None if stage.combiner is None else self.combiner(stage.combiner),
            "predicate": [self.index(form) for form in stage.predicate],
            "location": _location(stage.location),
        }

    def axis(self, axis: Axis) -> Json:
        return [self.var(axis.variable), self.index(axis.extent)]

    def combiner(self, combiner: Combiner) -> Json:
        def declare(side: tuple[Placeholder, ...]) -> Json:
            for placeholder in side:
                self._placeholders[placeholder] = len(self._placeholders)
            return [[p.name, p.dtype.name, self._placeholders[p]] for p in side]

        return {
            "name": combiner.name,
            "left": declare(combiner.left),
            "right": declare(combiner.right),
            "result": [self.expr(result) for result in combiner.result],
            "identity": [self.expr(value) for value in combiner.identity],
            "ordered": combiner.ordered,
        }

    def index(self, index: Affine) -> Json:
        return [index.constant, [[self.atom(atom), coef] for atom, coef in index.terms]]

    def atom(self, atom: Atom) -> Json:
        match atom:
            case Var():
                return self.var(atom)
            case FloorDiv():
                return ["div", self.index(atom.operand), atom.divisor]
            case SymbolicDiv():
                return ["symbolic_div", self.index(atom.operand), self.index(atom.divisor)]
            case Product():
                return ["product", [self.atom(factor) for factor in atom.factors]]
            case Min():
                return ["min", [self.index(operand) for operand in atom.operands]]
            case ValueAtom():
                return ["value", self.expr(atom.expr)]

    def expr(self, expr: Expr) -> int:
        known = self._known.get(id(expr))
        if known is not None:
            return known[0]
        node = self._node(expr)
        self._nodes.append(node)
        number = len(self._nodes) - 1
        self._known[id(expr)] = (number, expr)
        return number

    def _node(self, expr: Expr) -> Json:
        match expr:
            case Const():
                return ["const", _number(expr.value), expr.dtype.name]
            case IndexValue():
                return ["index", self.index(expr.index), expr.dtype.name]
            case ScalarRef():
                return ["scalar", self._scalars[expr.scalar]]
            case Placeholder():
                return ["placeholder", self._placeholders[expr]]
            case Load():
                indices = [self.index(index) for index in expr.indices]
                return ["load", self._tensors[expr.tensor], indices]
            case Call():
                args = [self.expr(arg) for arg in expr.args]
                return ["call", expr.function, args, expr.dtype.name]
            case Cast():
                return ["cast", self.expr(expr.operand), expr.dtype.name]
            case Bitcast():
                return ["bitcast", self.expr(expr.operand), expr.dtype.name]
            case Select():
                parts = [self.expr(e) for e in (expr.condition, expr.then, expr.otherwise)]
                return ["select", *parts, expr.dtype.name]
            case _:
                raise ValueError("a lowered expression is no part of a definition")


class _Reader:
    """Builds the objects of a document; nodes are made in order, each once."""

    def __init__(self) -> None:
        self._vars: list[Var] = []
        self._tensors: list[Tensor] = []
        self._scalars: list[Scalar] = []
        self._placeholders: dict[int, Placeholder] = {}
        self._nodes: list[Json] = []
        self._made: dict[int, Expr] = {}

    def definition(self, document: Json) -> Definition:
        self._vars = [Var(_text(name)) for name in document["variables"]]
        self._nodes = list(document["nodes"])
        self._scalars = [Scalar(_text(n), _dtype(d)) for n, d in document["scalars"]]
        inputs = tuple(self.tensor(tensor) for tensor in document["inputs"])
        stages = tuple(self.stage(stage) for stage in document["stages"])
        conditions = tuple(
            Condition(self.index(form), _text(message), bool(equality))
            for form, message, equality in document["conditions"]
        )
        return Definition(
            _text(document["name"]),
            tuple(self._vars[n] for n in document["sizes"]),
            inputs,
            tuple(self._scalars),
            stages,
            tuple(self._tensors[n] for n in document["outputs"]),
            conditions,
            tuple(self._vars[n] for n in document["dims"]),
            tuple(_text(name) for name in document["parameters"]),
            tuple((_text(n), _attribute(v)) for n, v in document["attributes"]),
            _read_location(document["location"]),
            _text(document["documentation"]),
        )

    def tensor(self, data: Json) -> Tensor:
        name, shape, dtype = data
        made = Tensor(_text(name), tuple(self.index(extent) for extent in shape), _dtype(dtype))
        self._tensors.append(made)
        return made

    def stage(self, data: Json) -> Stage:
        tensors = tuple(self.tensor(tensor) for tensor in data["tensors"])
        combiner = None if data["combiner"] is None else self.combiner(data["combiner"])
        return Stage(
            tensors,
            tuple(self.axis(axis) for axis in data["axes"]),
            tuple(self.expr(value) for value in data["values"]),
            tuple(self.axis(axis) for axis in data["reduction_axes"]),
            combiner,
            tuple(self.index(form) for form in data["predicate"]),
            None,
            _read_location(data["location"]),
        )

    def axis(self, data: Json) -> Axis:
        variable, extent = data
        return Axis(self._vars[_natural(variable)], self.index(extent))

    def combiner(self, data: Json) -> Combiner:
        def declare(side: Json) -> tuple[Placeholder, ...]:
            made = [(Placeholder(_text(name), _dtype(dtype)), n) for name, dtype, n in side]
            self._placeholders.update({_natural(n): placeholder for placeholder, n in made})
            return tuple(placeholder for placeholder, _ in made)

        return Combiner(
            _text(data["name"]),
            declare(data["left"]),
            declare(data["right"]),
            tuple(self.expr(result) for result in data["result"]),
            tuple(self.expr(value) for value in data["identity"]),
            bool(data["ordered"]),
        )

    def index(self, data: Json) -> Affine:
        constant, terms = data
        result = affine(_integer(constant))
        for atom, coef in terms:
            result = result + self.atom(atom) * _integer(coef)
        return result

    def atom(self, data: Json) -> Affine:
        if isinstance(data, int):
            return affine(self._vars[_natural(data)])
        kind, *rest = data
        match kind:
            case "div":
                return self.index(rest[0]) // _natural(rest[1])
            case "symbolic_div":
                return self.index(rest[0]) // self.index(rest[1])
            case "product":
                factors: list[Affine] = [self.atom(factor) for factor in rest[0]]
                result = affine(1)
                for factor in factors:
                    result = result * factor
                return result
            case "min":
                return minimum(*[self.index(operand) for operand in rest[0]])
            case "value":
                return index_from_value(self.expr(rest[0]))
            case _:
                raise ValueError(f"{kind!r} is no kind of index")

    def expr(self, number: Json) -> Expr:
        position = _natural(number)
        known = self._made.get(position)
        if known is None:
            known = self._node(self._nodes[position])
            self._made[position] = known
        return known

    def _node(self, data: Json) -> Expr:
        kind, *rest = data
        match kind:
            case "const":
                return Const(_read_number(rest[0]), _dtype(rest[1]))
            case "index":
                return IndexValue(self.index(rest[0]), _dtype(rest[1]))
            case "scalar":
                return ScalarRef(self._scalars[_natural(rest[0])])
            case "placeholder":
                return self._placeholders[_natural(rest[0])]
            case "load":
                tensor = self._tensors[_natural(rest[0])]
                indices = tuple(self.index(index) for index in rest[1])
                if len(indices) != len(tensor.shape):
                    raise ValueError(f"{tensor} is read with {len(indices)} indices")
                return Load(tensor, indices)
            case "call":
                args = tuple(self.expr(arg) for arg in rest[1])
                if rest[0] not in FUNCTIONS or FUNCTIONS[rest[0]].arity != len(args):
                    raise ValueError(f"there is no function {rest[0]!r} of {len(args)}")
                return Call(rest[0], args, _dtype(rest[2]))
            case "cast":
                return Cast(self.expr(rest[0]), _dtype(rest[1]))
            case "bitcast":
                return Bitcast(self.expr(rest[0]), _dtype(rest[1]))
            case "select":
                return Select(*[self.expr(e) for e in rest[:3]], _dtype(rest[3]))
            case _:
                raise ValueError(f"{kind!r} is no kind of expression")


def _number(value: float) -> Json:
    """JSON has no infinities and no NaN; they are written as text."""
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)
    return value


def _read_number(value: Json) -> bool | int | float:
    if value in ("inf", "-inf", "nan"):
        return float(value)
    if not isinstance(value, bool | int | float):
        raise ValueError(f"{value!r} is no number")
    return value


def _integer(value: Json) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError(f"{value!r} is no integer")
    return value


def _natural(value: Json) -> int:
    if _integer(value) < 0:
        raise ValueError(f"{value} is negative")
    return value


def _text(value: Json) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is no text")
    return value


def _dtype(name: Json) -> DType:
    if name not in BY_NAME:
        raise ValueError(f"there is no dtype {name!r}")
    return BY_NAME[name]


def _plain(value: Any) -> Json:
    return {"tuple": list(value)} if isinstance(value, tuple) else value  # pyright: ignore[reportUnknownArgumentType]


def _attribute(value: Json) -> Any:
    return tuple(value["tuple"]) if isinstance(value, dict) else value  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]


def _location(location: SourceLocation) -> Json:
    return [location.file, location.line, location.function]


def _read_location(data: Json) -> SourceLocation:
    file, line, function = data
    return SourceLocation(_text(file), _integer(line), _text(function))
