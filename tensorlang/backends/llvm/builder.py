"""Typed instructions over scalars and vectors alike: what expressions and maths are written in.

Input:  ``builder.multiply_add(x, builder.splat(2.0, x), y)``, x of 8 lanes and y of one
Output: ``%v3 = call <8 x float> @llvm.fmuladd.v8f32(...)``, y broadcast

Operands may differ in lanes: one of them a scalar, which is broadcast where it meets a vector, so
that what does not depend on the lane is computed once. ``flags`` are the fast-math flags of the
user's own arithmetic; the functions in ``maths`` run with none, for they live on exact rounding.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from tensorlang.backends.llvm.types import I1, Type, Value, constant, vector
from tensorlang.backends.llvm.writer import FunctionWriter

_FLOAT_PREDICATES = {"eq": "oeq", "ne": "une", "lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge"}


class Builder:
    """Writes instructions into a function; see the module."""

    __slots__ = ("flags", "fused", "rounds", "scales", "writer")

    def __init__(
        self,
        writer: FunctionWriter,
        flags: str = "",
        *,
        fused: bool = True,
        rounds: bool = True,
        scales: bool = False,
    ) -> None:
        """``fused``, ``rounds``, ``scales``: what the machine has instructions for.

        They multiply and add at once, are ``floor`` and its like, and multiply by powers of two.
        """
        self.writer = writer
        self.flags = flags
        self.fused = fused
        self.rounds = rounds
        self.scales = scales

    def beside(self, writer: FunctionWriter) -> Builder:
        """Return a builder for another function of the same module."""
        return Builder(writer, self.flags, fused=self.fused, rounds=self.rounds, scales=self.scales)

    @contextmanager
    def exact(self) -> Generator[None, None, None]:
        """Write without fast-math flags for a while."""
        flags, self.flags = self.flags, ""
        try:
            yield
        finally:
            self.flags = flags

    # --- lanes ---

    def broadcast(self, value: Value, lanes: int) -> Value:
        """Return ``value`` in every one of ``lanes`` lanes (a vector is left as it is)."""
        if lanes == 1 or value.type.lanes == lanes:
            return value
        type = vector(value.type.element, lanes)
        if value.is_constant:
            return Value(f"splat ({value.text})", type)
        first = self.writer.emit(f"insertelement {type.text} poison, {value.text}, i64 0", type)
        mask = f"<{lanes} x i32> zeroinitializer"
        return self.writer.emit(f"shufflevector {first.text}, {type.text} poison, {mask}", type)

    def unify(self, *values: Value) -> list[Value]:
        """Return the values with one number of lanes."""
        lanes = max([value.type.lanes for value in values])
        return [self.broadcast(value, lanes) for value in values]

    def constant(self, value: bool | int | float, like: Value) -> Value:
        """Return a literal of the type of ``like``."""
        return constant(value, like.type)

    # --- arithmetic ---

    def binary(self, operation: str, left: Value, right: Value) -> Value:
        """Return an instruction of two operands of one type: ``add nsw``, ``and``, ``fdiv``."""
        if left.type is not right.type:
            left, right = self.unify(left, right)
        type = left.type
        return self.writer.emit(f"{operation} {type.text} {left.ref}, {right.ref}", type)

    def add(self, left: Value, right: Value) -> Value:
        """Return the sum, of floats or integers."""
        return self._arithmetic("add", left, right)

    def subtract(self, left: Value, right: Value) -> Value:
        """Return the difference, of floats or integers."""
        return self._arithmetic("sub", left, right)

    def multiply(self, left: Value, right: Value) -> Value:
        """Return the product, of floats or integers."""
        return self._arithmetic("mul", left, right)

    def divide(self, left: Value, right: Value) -> Value:
        """Return the quotient of floats."""
        return self._arithmetic("div", left, right)

    def _arithmetic(self, operation: str, left: Value, right: Value) -> Value:
        if left.type.is_float:
            operation = f"f{operation} {self.flags}" if self.flags else f"f{operation}"
        return self.binary(operation, left, right)

    def negate(self, value: Value) -> Value:
        """Return ``-value``."""
        if not value.type.is_float:
            return self.subtract(constant(0, value.type), value)
        return self.writer.emit(f"fneg {value.text}", value.type)

    def multiply_add(self, a: Value, b: Value, c: Value) -> Value:
        """Return ``a * b + c``, rounded once where the machine can and twice elsewhere."""
        return self.intrinsic("fmuladd", *self.unify(a, b, c))

    def intrinsic(self, name: str, *args: Value) -> Value:
        """Return ``llvm.NAME`` of operands that have the type of the result."""
        type = args[0].type
        function = f"@llvm.{name}.{type.suffix}"
        signature = ", ".join([type.text] * len(args))
        self.writer.module.declare(f"{type.text} {function}({signature})")
        operands = ", ".join([arg.text for arg in args])
        return self.writer.emit(f"call {type.text} {function}({operands})", type)

    def call(self, function: str, result: Type, *args: Value, attributes: str = "") -> Value:
        """Return the result of any function, declared by the types of its operands."""
        signature = ", ".join([arg.type.text for arg in args])
        self.writer.module.declare(f"{result.text} @{function}({signature}) {attributes}".rstrip())
        operands = ", ".join([arg.text for arg in args])
        return self.writer.emit(f"call {result.text} @{function}({operands})", result)

    # --- comparison and choice ---

    def compare(self, predicate: str, left: Value, right: Value, signed: bool = True) -> Value:
        """Return ``eq ne lt le gt ge`` of two operands; false for NaN, but for ``ne``."""
        left, right = self.unify(left, right)
        type = left.type
        if type.is_float:
            text = f"fcmp {_FLOAT_PREDICATES[predicate]}"
        elif predicate in ("eq", "ne"):
            text = f"icmp {predicate}"
        else:
            text = f"icmp {'s' if signed else 'u'}{predicate}"
        result = I1 if type.lanes == 1 else vector("i1", type.lanes)
        return self.writer.emit(f"{text} {type.text} {left.ref}, {right.ref}", result)

    def is_nan(self, value: Value) -> Value:
        """Return whether a float is NaN."""
        result = vector("i1", value.type.lanes)
        return self.writer.emit(f"fcmp uno {value.text}, {value.ref}", result)

    def freeze(self, value: Value) -> Value:
        """Return ``value``, which LLVM will not merge with what is made of it."""
        return self.writer.emit(f"freeze {value.text}", value.type)

    def select(self, condition: Value, then: Value, otherwise: Value) -> Value:
        """Return ``then`` where ``condition`` holds; both are computed."""
        if condition.type.lanes > 1:
            condition, then, otherwise = self.unify(condition, then, otherwise)
        else:
            then, otherwise = self.unify(then, otherwise)
        operands = f"{condition.text}, {then.text}, {otherwise.text}"
        return self.writer.emit(f"select {operands}", then.type)

    # --- conversion ---

    def convert(self, operation: str, value: Value, element: str) -> Value:
        """Return ``operation`` (``sext``, ``fptosi``, ``bitcast``) of every lane."""
        type = vector(element, value.type.lanes)
        if type is value.type:
            return value
        return self.writer.emit(f"{operation} {value.text} to {type.text}", type)

    def bits(self, value: Value) -> Value:
        """Return the bits of a float as integers of its width."""
        return self.convert("bitcast", value, f"i{value.type.bits}")

    def from_bits(self, value: Value) -> Value:
        """Return integers of 32 or 64 bits read as floats."""
        return self.convert("bitcast", value, "float" if value.type.bits == 32 else "double")

    def shuffle(self, left: Value, right: Value | None, lanes: list[int] | range) -> Value:
        """Return chosen lanes of two vectors, numbered one after the other."""
        type = vector(left.type.element, len(lanes))
        other = f"{left.type.text} poison" if right is None else right.text
        mask = ", ".join([f"i32 {lane}" for lane in lanes])
        return self.writer.emit(
            f"shufflevector {left.text}, {other}, <{len(lanes)} x i32> <{mask}>", type
        )

    def extract(self, value: Value, lane: int) -> Value:
        """Return one lane."""
        type = vector(value.type.element, 1)
        return self.writer.emit(f"extractelement {value.text}, i64 {lane}", type)

    def any(self, mask: Value) -> Value:
        """Return whether a mask holds in some lane."""
        if mask.type.lanes == 1:
            return mask
        name = f"@llvm.vector.reduce.or.{mask.type.suffix}"
        self.writer.module.declare(f"i1 {name}({mask.type.text})")
        return self.writer.emit(f"call i1 {name}({mask.text})", I1)

    def unlikely(self, condition: Value) -> Value:
        """Return a scalar condition, marked as one that is rarely true."""
        self.writer.module.declare("i1 @llvm.expect.i1(i1, i1)")
        return self.writer.emit(f"call i1 @llvm.expect.i1({condition.text}, i1 false)", I1)
