"""Random expressions over an index, and programs that store them, for comparison with an oracle.

Every access is in bounds where it is evaluated, so that the oracle accepts each program; some are
in bounds only because a ``Select`` guards them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tensorlang import dtypes
from tensorlang.dtypes import DType, bool_, evaluation_dtype, i64, is_float
from tensorlang.ir.affine import Affine, Var, affine
from tensorlang.ir.definition import Scalar
from tensorlang.ir.expr import Call, Cast, Const, Expr, IndexValue, ScalarRef, Select, value_atom
from tensorlang.ir.functions import FUNCTIONS
from tensorlang.ir.lowered import Buffer, FlatLoad
from tests.backends.programs import buffer

ELEMENTARY = frozenset(
    {
        "exp", "exp2", "expm1", "log", "log2", "log1p", "sin", "cos", "tan", "asin", "acos", "atan",
        "atan2", "sinh", "cosh", "tanh", "erf", "sigmoid", "pow", "rsqrt",
    }
)  # fmt: skip
EXACT = tuple(name for name in FUNCTIONS if name not in ELEMENTARY)


@dataclass
class Inputs:
    """Buffers by dtype, of size 3N + 4 and (guarded accesses) exactly N, and scalars."""

    size: Var
    stride: Var
    wide: dict[DType, Buffer] = field(default_factory=dict)
    exact: dict[DType, Buffer] = field(default_factory=dict)
    scalars: dict[DType, Scalar] = field(default_factory=dict)

    def wide_of(self, dtype: DType) -> Buffer:
        name = f"W_{dtype.name}"
        return self.wide.setdefault(dtype, buffer(name, dtype, affine(self.size) * 3 + 4))

    def exact_of(self, dtype: DType) -> Buffer:
        return self.exact.setdefault(dtype, buffer(f"X_{dtype.name}", dtype, affine(self.size)))

    def scalar_of(self, dtype: DType) -> Scalar:
        return self.scalars.setdefault(dtype, Scalar(f"s_{dtype.name}", dtype))


@st.composite
def index_forms(draw: Any, inputs: Inputs, index: Affine) -> Affine:
    """An index into a buffer of 3N + 4 elements, for 0 <= index < N; stride is 0 to 3."""
    size = affine(inputs.size)
    shift = draw(st.integers(0, 3))
    return draw(
        st.sampled_from(
            [
                index, size - 1 - index, index * 2, index * 3, size * 2 - index * 2,
                index // 2, index // 3 + shift, index % 3, index % 4 + index, index * inputs.stride,
                affine(shift), size, (size - 1 - index) // 2, index // (size + 1) + index,
            ]
        )
    )  # fmt: skip


@st.composite
def expressions(
    draw: Any, inputs: Inputs, index: Affine, dtype: DType, functions: tuple[str, ...], depth: int
) -> Expr:
    """An expression of ``dtype`` over ``index``."""
    kinds = ["leaf"] if depth == 0 else ["leaf", "call", "call", "call", "cast", "select", "guard"]
    kind = draw(st.sampled_from(kinds))
    again = lambda of: expressions(inputs, index, of, functions, depth - 1)  # noqa: E731
    if kind == "call":
        return draw(_calls(inputs, index, dtype, functions, depth))
    if kind == "cast":
        return Cast(draw(again(draw(st.sampled_from(USED)))), dtype)
    if kind == "select":
        condition = draw(again(bool_))
        return Select(condition, draw(again(dtype)), draw(again(dtype)), dtype)
    if kind == "guard":
        return draw(_guarded(inputs, index, dtype, draw(again(dtype))))
    return draw(_leaves(inputs, index, dtype))


USED: tuple[DType, ...] = (
    dtypes.f32, dtypes.f64, dtypes.i32, dtypes.i64, dtypes.bool_, dtypes.u8, dtypes.i16, dtypes.u32,
)  # fmt: skip


@st.composite
def _leaves(draw: Any, inputs: Inputs, index: Affine, dtype: DType) -> Expr:
    kind = draw(st.sampled_from(["load", "load", "load", "const", "index", "scalar", "gather"]))
    if kind == "const":
        return Const(draw(values(dtype)), dtype)
    if kind == "scalar":
        return ScalarRef(inputs.scalar_of(dtype))
    if kind == "index" and dtype is not bool_:
        return IndexValue(draw(index_forms(inputs, index)), dtype)
    if kind == "gather":
        table = FlatLoad(inputs.wide_of(dtypes.u8), draw(index_forms(inputs, index)))
        position = affine(value_atom(Cast(table, i64))) % 4
        return FlatLoad(inputs.wide_of(dtype), position)
    return FlatLoad(inputs.wide_of(dtype), draw(index_forms(inputs, index)))


@st.composite
def _calls(
    draw: Any, inputs: Inputs, index: Affine, dtype: DType, functions: tuple[str, ...], depth: int
) -> Expr:
    name = draw(st.sampled_from([name for name in functions if _makes(name, dtype)]))
    function = FUNCTIONS[name]
    operand = dtype
    if function.result == "bool" and function.operands in ("any", "number"):
        operand = draw(st.sampled_from([d for d in USED if _accepts(name, d)]))
    part = expressions(inputs, index, operand, functions, depth - 1)
    return Call(name, tuple([draw(part) for _ in range(function.arity)]), dtype)


def _makes(name: str, dtype: DType) -> bool:
    if FUNCTIONS[name].result == "bool":
        return dtype is bool_
    return _accepts(name, dtype)


def _accepts(name: str, dtype: DType) -> bool:
    match FUNCTIONS[name].operands:
        case "number":
            return dtype is not bool_
        case "integer":
            return dtype.kind in ("int", "uint")
        case "float":
            return is_float(dtype)
        case "bits":
            return not is_float(dtype)
        case "any":
            return True


@st.composite
def _guarded(draw: Any, inputs: Inputs, index: Affine, dtype: DType, other: Expr) -> Expr:
    """A load that is in bounds only where its condition holds."""
    shift = draw(st.integers(1, 5))
    source = inputs.exact_of(dtype)
    zero, size = Const(0, i64), IndexValue(affine(inputs.size), i64)
    if draw(st.booleans()):
        place = index - shift
        condition = Call("ge", (IndexValue(place, i64), zero), bool_)
    else:
        place = index + shift
        condition = Call("lt", (IndexValue(place, i64), size), bool_)
    if draw(st.booleans()):
        uniform = Call("gt", (size, Const(draw(st.integers(0, 9)), i64)), bool_)
        condition = Call("and", (condition, uniform), bool_)
    return Select(condition, FlatLoad(source, place), other, dtype)


def values(dtype: DType) -> st.SearchStrategy[Any]:
    """Values of a dtype, the awkward ones often."""
    if dtype is bool_:
        return st.booleans()
    if is_float(dtype):
        bits = evaluation_dtype(dtype).bits
        return st.one_of(
            st.sampled_from([0.0, -0.0, 1.0, -1.0, 0.5, float("inf"), float("-inf"), float("nan")]),
            st.floats(-100, 100, width=bits),
            st.floats(width=bits),
        )
    low, high = dtypes.integer_range(dtype)
    return st.one_of(
        st.sampled_from([low, high, 0, 1, max(low, -1), 2]),
        st.integers(max(low, -10), min(high, 10)),
        st.integers(low, high),
    )


def arrays(dtype: DType, size: int, seed: int) -> np.ndarray:
    """An array of values of a dtype, the awkward ones often."""
    generator = np.random.default_rng(seed)
    kind = dtypes.to_numpy(dtype)
    if dtype is bool_:
        return generator.integers(0, 2, size).astype(kind)
    if is_float(dtype):
        result = generator.normal(0, 10, size)
        special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 1e30, 1e-40, 2.5])
        chosen = generator.random(size) < 0.3
        result[chosen] = generator.choice(special, chosen.sum())
        return result.astype(kind)
    low, high = dtypes.integer_range(dtype)
    result = generator.integers(max(low, -20), min(high, 20), size, endpoint=True)
    special = np.array([low, high, 0, 1, max(low, -1)])
    chosen = generator.random(size) < 0.3
    result = result.astype(kind)
    result[chosen] = generator.choice(special.astype(kind), chosen.sum())
    return result
