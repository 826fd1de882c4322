"""Definitions from plain JSON values, as ``serialize`` wrote them.

Input:  nested lists, strings and numbers      Output: a ``Definition``

The objects are built anew. Nothing in a document is trusted: one that is not ours raises
``ValueError``, and nothing in it is ever executed.
"""

from __future__ import annotations

from typing import Any, cast

from tensorlang.dtypes import BY_NAME, DType, i64
from tensorlang.ir.affine import (
    Affine,
    Var,
    affine,
    minimum,
)
from tensorlang.ir.definition import (
    Axis,
    Combiner,
    Condition,
    Definition,
    Order,
    Routine,
    Scalar,
    Scatter,
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
from tensorlang.ir.functions import ANYWHERE, FUNCTIONS
from tensorlang.source import SourceLocation

Json = Any


def definition_from_json(document: Json) -> Definition:
    """Return the definition that :func:`definition_to_json` wrote; raises ValueError otherwise."""
    try:
        return _Reader().definition(document)
    except (KeyError, IndexError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"this is no saved definition ({type(error).__name__}: {error})") from None


class _Reader:
    """Builds the objects of a document; nodes are made in order, each once."""

    def __init__(self) -> None:
        self._vars: list[Var] = []
        self._tensors: list[Tensor] = []
        self._scalars: list[Scalar] = []
        self._placeholders: dict[int, Placeholder] = {}
        self._nodes: list[Json] = []
        self._made: list[Expr] = []

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
            tuple(self.var(n) for n in document["sizes"]),
            inputs,
            tuple(self._scalars),
            stages,
            tuple(self.tensor_at(n) for n in document["outputs"]),
            conditions,
            tuple(self.var(n) for n in document["dims"]),
            tuple(_text(name) for name in document["parameters"]),
            tuple((_text(n), attribute_from_json(v)) for n, v in document["attributes"]),
            _read_location(document["location"]),
            _text(document["documentation"]),
        )

    def var(self, number: Json) -> Var:
        return self._vars[_natural(number)]

    def tensor_at(self, number: Json) -> Tensor:
        return self._tensors[_natural(number)]

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
            _routine(data.get("routine")),
        )

    def axis(self, data: Json) -> Axis:
        variable, extent = data
        return Axis(self.var(variable), self.index(extent))

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
            return affine(self.var(data))
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
        """Return a node; those before it, among which its operands are, are made first."""
        position = _natural(number)
        while len(self._made) <= position:
            self._made.append(self._node(self._nodes[len(self._made)]))
        return self._made[position]

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
                tensor = self.tensor_at(rest[0])
                indices = tuple(self.index(index) for index in rest[1])
                if len(indices) != len(tensor.shape):
                    raise ValueError(f"{tensor} is read with {len(indices)} indices")
                return Load(tensor, indices)
            case "call":
                args = tuple(self.expr(arg) for arg in rest[1])
                if rest[0] == ANYWHERE and not args:
                    return Call(ANYWHERE, (), i64)
                if rest[0] not in FUNCTIONS or FUNCTIONS[rest[0]].arity != len(args):
                    raise ValueError(f"there is no function {rest[0]!r} of {len(args)}")
                return Call(rest[0], args, _dtype(rest[2]))
            case "cast":
                return Cast(self.expr(rest[0]), _dtype(rest[1]))
            case "bitcast":
                return Bitcast(self.expr(rest[0]), _dtype(rest[1]))
            case "select":
                condition, then, otherwise = (self.expr(part) for part in rest[:3])
                return Select(condition, then, otherwise, _dtype(rest[3]))
            case _:
                raise ValueError(f"{kind!r} is no kind of expression")


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


def _routine(data: Json) -> Routine | None:
    if data is None:
        return None
    kind, *rest = data
    if kind == "order":
        return Order(_natural(rest[0]), bool(rest[1]))
    if kind == "scatter":
        return Scatter(None if rest[0] is None else _text(rest[0]))
    raise ValueError(f"there is no routine {kind!r}")


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


def attribute_from_json(value: Json) -> Any:
    """Return an attribute that :func:`~tensorlang.ir.serialize.attribute_to_json` wrote."""
    if isinstance(value, dict):
        value = cast("dict[str, Any]", value)["tuple"]
    if isinstance(value, list):
        return tuple([attribute_from_json(part) for part in cast("list[Any]", value)])
    return value


def _read_location(data: Json) -> SourceLocation:
    file, line, function = data
    return SourceLocation(_text(file), _integer(line), _text(function))
