"""Definitions as plain JSON values: what a saved schedule or a cache key holds.

Input:  a ``Definition``      Output: nested lists, strings and numbers, without any object in them

Variables, tensors and scalars are numbered in the order in which they are met, so equal
definitions give equal documents. ``deserialize`` reads them back.
"""

from __future__ import annotations

import math
from typing import Any, cast

import numpy as np

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
from tensorlang.ir.definition import (
    Axis,
    Combiner,
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
    iterate,
)
from tensorlang.source import SourceLocation

Json = Any


def definition_to_json(definition: Definition) -> Json:
    """Return the definition as a JSON value."""
    return _Writer().definition(definition)


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
            "attributes": [
                [name, attribute_to_json(name, value)] for name, value in definition.attributes
            ],
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
            "routine": _routine(stage.routine),
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
        if id(expr) not in self._known:
            for node in iterate(expr):  # operands first, so that depth is no matter
                if id(node) not in self._known:
                    self._nodes.append(self._node(node))
                    self._known[id(node)] = (len(self._nodes) - 1, node)
        return self._known[id(expr)][0]

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


def _routine(routine: Routine | None) -> Json:
    match routine:
        case None:
            return None
        case Order():
            return ["order", routine.axis, routine.descending]
        case Scatter():
            return ["scatter", routine.combine]


def _number(value: float) -> Json:
    """JSON has no infinities and no NaN; they are written as text."""
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)
    return value


def attribute_to_json(name: str, value: Any) -> Json:
    """Return an attribute as JSON; raises ValueError for a value that a text cannot hold."""
    if isinstance(value, tuple | list):
        parts = cast("tuple[Any, ...]", value)
        return {"tuple": [attribute_to_json(name, part) for part in parts]}
    if isinstance(value, np.generic):
        value = cast("Any", value).item()
    if value is not None and type(value) not in (bool, int, float, str):
        raise ValueError(
            f"the attribute {name} cannot be saved as JSON: it must be a number, a string, None or"
            f" a tuple of these, not {type(value).__name__}"
        )
    return value


def _location(location: SourceLocation) -> Json:
    return [location.file, location.line, location.function]
