"""How a reduction is read: its axes, values, combiner and identity.

Input:  ``tl.sum(A[i, k] * B[k, j] for k in K)``
Output: a ``ReductionValue``; it becomes the stage of ``tl.tensor`` if it is the whole body, and a
        stage of its own as soon as it takes part in an expression (``tl.sum(...) / N``)
"""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any, cast

from tensorlang.dtypes import (
    DType,
    Element,
    bool_,
    f64,
    i64,
    integer_range,
    is_float,
)
from tensorlang.ir.affine import Affine, affine
from tensorlang.ir.definition import Axis, Combiner, Tensor
from tensorlang.ir.expr import Call, Cast, Const, Expr, IndexValue, Load, Placeholder, Select
from tensorlang.lang.application import as_value
from tensorlang.lang.conversion import adapt, convert, strengthen
from tensorlang.lang.mistakes import definition_error
from tensorlang.lang.promotion import promote_all
from tensorlang.lang.stages import Reduction, hoist, hoisted_axes, state_dtype
from tensorlang.lang.trace import Scope, Trace, TracedAxis, current
from tensorlang.lang.values import Value
from tensorlang.source import user_location


class ReductionValue(Value):
    """One component of a reduction's result, which gets a stage when it is first computed with."""

    __slots__ = ("component", "reduction", "trace")

    def __init__(self, trace: Trace, reduction: Reduction, component: int) -> None:
        super().__init__(None, reduction.results[component][1])
        self.trace = trace
        self.reduction = reduction
        self.component = component

    @property
    def expr(self) -> Expr:
        """A load of the stage's result at the enclosing axes."""
        tensor = hoist(self.trace, self.reduction)[self.component].tensor
        axes = hoisted_axes(self.reduction)
        load = Load(tensor, tuple([affine(axis.variable) for axis in axes]))
        return convert(load, state_dtype(tensor.dtype))

    @property
    def hoisted_tensors(self) -> tuple[Tensor, ...]:
        """The component's tensor, if the reduction has a stage of its own."""
        handles = self.reduction.handles
        return () if handles is None else (handles[self.component].tensor,)

    def __repr__(self) -> str:
        return f"tl.{self.reduction.kind}(...)"


def whole_reduction(parts: tuple[object, ...], axes: list[TracedAxis]) -> Reduction | None:
    """Return the reduction of which a body is exactly the result, read inside these ``axes``."""
    first = parts[0] if parts else None
    if not isinstance(first, ReductionValue) or first.reduction.handles is not None:
        return None
    reduction = first.reduction
    components = [part.component for part in parts if isinstance(part, ReductionValue)]
    same = all(isinstance(p, ReductionValue) and p.reduction is reduction for p in parts)
    if not same or components != list(range(len(reduction.results))):
        return None
    inside = {id(axis) for axis in reduction.enclosing}
    return reduction if all(id(axis) in inside for axis in axes) and axes else None


def read(
    generator: object, reader: str
) -> tuple[Trace, Any, Scope, tuple[TracedAxis, ...], tuple[Affine, ...]]:
    """Advance a comprehension; return trace, body, its scope, the axes around, the predicate."""
    trace = current(reader)
    body, scope = trace.advance(generator, reader)
    if not scope.axes and not scope.has_grid:
        raise definition_error(f"the comprehension of {reader} has no loop over a size or tl.range")
    predicate = tuple([form for axis in scope.axes for form in axis.predicate])
    return trace, body, scope, tuple(trace.open_axes()), predicate


def axes_of(scope: Scope) -> tuple[Axis, ...]:
    """Return the axes of a comprehension, in the order of its loops."""
    return tuple([axis.axis for axis in scope.axes])


def check_dtype(dtype: object, reader: str) -> DType | None:
    """Return a ``dtype=`` argument as a dtype."""
    if dtype is None:
        return None
    if isinstance(dtype, type) and issubclass(dtype, Element):
        return dtype
    raise definition_error(f"dtype= of {reader} must be a dtype such as tl.f32, not {dtype!r}")


def builtin_reduction(
    kind: str, function: str, generator: object, dtype: object, ordered: bool = False
) -> ReductionValue:
    """Read a reduction whose combiner is a binary function of the table."""
    reader = f"tl.{kind}"
    wanted = check_dtype(dtype, reader)
    trace, body, scope, enclosing, predicate = read(generator, reader)
    value = as_value(body)
    if kind in ("all", "any"):
        value = value if value.dtype is bool_ else as_value(value != 0)
    elif wanted is None and kind in ("sum", "prod") and value.dtype is bool_:
        wanted = i64
    value = strengthen(value, wanted)
    state = state_dtype(value.dtype)
    left, right = Placeholder("a", state), Placeholder("b", state)
    result = Call(function, (left, right), state)
    start = (_identity(kind, state),)
    combiner = Combiner(kind, (left,), (right,), (result,), start, ordered)
    reduction = Reduction(
        kind, axes_of(scope), predicate, (value.expr,), (state,), combiner, ((0, value.dtype),),
        enclosing, user_location(),
    )  # fmt: skip
    return ReductionValue(trace, reduction, 0)


def _identity(kind: str, dtype: DType) -> Const:
    match kind:
        case "sum":
            number: bool | int | float = 0
        case "prod":
            number = 1
        case "all":
            number = True
        case "any":
            number = False
        case _:
            number = _extreme(kind, dtype)
    return Const(float(number) if is_float(dtype) else number, dtype)


def _extreme(kind: str, dtype: DType) -> bool | int | float:
    """Return the identity of max (the least value) or of min (the greatest)."""
    if is_float(dtype):
        return float("-inf") if kind == "max" else float("inf")
    number = integer_range(dtype)[0 if kind == "max" else 1]
    return bool(number) if dtype is bool_ else number


def argument_reduction(kind: str, generator: object) -> ReductionValue:
    """Read argmax or argmin: a reduction of (value, position) of which the position is seen."""
    trace, body, scope, enclosing, predicate = read(generator, f"tl.{kind}")
    value = strengthen(as_value(body))
    dtype = state_dtype(value.dtype)
    axes = axes_of(scope)
    if len(axes) == 1:
        position = scope.axes[0].shown.affine
    else:
        position = affine(0)
        for axis in axes:
            position = position * axis.extent + axis.variable
    left = (Placeholder("a", dtype), Placeholder("at", i64))
    right = (Placeholder("b", dtype), Placeholder("bt", i64))
    takes_right = _takes_right(kind, left, right)
    result = tuple(
        [Select(takes_right, new, old, old.dtype) for old, new in zip(left, right, strict=True)]
    )
    worst = _extreme("max" if kind == "argmax" else "min", dtype)
    last = integer_range(i64)[1]
    combiner = Combiner(kind, left, right, result, (Const(worst, dtype), Const(last, i64)))
    reduction = Reduction(
        kind, axes, predicate, (value.expr, IndexValue(position, i64)), (dtype, i64), combiner,
        ((1, i64),), enclosing, user_location(), needs_element=True,
    )  # fmt: skip
    return ReductionValue(trace, reduction, 0)


def _takes_right(
    kind: str, left: tuple[Placeholder, Placeholder], right: tuple[Placeholder, Placeholder]
) -> Expr:
    """Return the condition under which the right state wins: a better value, or an earlier one."""

    def both(a: Expr, b: Expr) -> Expr:
        return Call("and", (a, b), bool_)

    def either(a: Expr, b: Expr) -> Expr:
        return Call("or", (a, b), bool_)

    (a, a_at), (b, b_at) = left, right
    better: Expr = Call("gt" if kind == "argmax" else "lt", (b, a), bool_)
    equal: Expr = Call("eq", (b, a), bool_)
    if is_float(a.dtype):
        a_nan, b_nan = Call("isnan", (a,), bool_), Call("isnan", (b,), bool_)
        better = either(better, both(b_nan, Call("not", (a_nan,), bool_)))
        equal = either(equal, both(a_nan, b_nan))
    return either(better, both(equal, Call("lt", (b_at, a_at), bool_)))


# --- a user's own combiner -------------------------------------------------------------------


def custom_reduction(
    combine: Callable[..., Any], identity: object, generator: object, ordered: bool
) -> Any:
    """Read ``tl.reduce`` and return its state: one value, or a tuple of them."""
    trace, body, scope, enclosing, predicate = read(generator, "tl.reduce")
    values = state_values(body)
    combiner = make_combiner(combine, identity, values, ordered)
    states = tuple([state_dtype(value.dtype) for value in values])
    results = tuple([(place, value.dtype) for place, value in enumerate(values)])
    exprs = tuple([value.expr for value in values])
    reduction = Reduction(
        "reduce", axes_of(scope), predicate, exprs, states, combiner, results, enclosing,
        user_location(),
    )  # fmt: skip
    if not ordered:
        from tensorlang.lang.check_combiner import check_combiner  # brings the interpreter

        check_combiner(combiner, exprs)
    parts = tuple([ReductionValue(trace, reduction, place) for place in range(len(values))])
    return parts if isinstance(body, tuple) else parts[0]


def state_values(body: object) -> tuple[Value, ...]:
    """Return the components of a state, each with a dtype of its own.

    A literal float takes the type of the floats beside it: ``(1.0, x[i])`` of an f32 is two f32.
    """
    parts = cast("tuple[object, ...]", body if isinstance(body, tuple) else (body,))
    values = [as_value(part) for part in parts]
    floats = [value.dtype for value in values if not value.weak and is_float(value.dtype)]
    beside = promote_all(floats) if floats else None
    return tuple([strengthen(v, beside if v.weak and is_float(v.dtype) else None) for v in values])


def make_combiner(
    combine: Callable[..., Any], identity: object, values: tuple[Value, ...], ordered: bool
) -> Combiner:
    """Trace ``combine`` on placeholders for two states of the dtypes of ``values``."""
    left = tuple(
        [Placeholder(_name("a", n, values), state_dtype(v.dtype)) for n, v in _each(values)]
    )
    right = tuple(
        [Placeholder(_name("b", n, values), state_dtype(v.dtype)) for n, v in _each(values)]
    )
    states = [
        tuple([Value(p, value.dtype) for p, value in zip(side, values, strict=True)])
        for side in (left, right)
    ]
    single = len(values) == 1
    if combine in _BUILTIN_COMBINERS:
        name = _BUILTIN_COMBINERS[combine]
        raise definition_error(
            f"the builtin {combine.__name__} cannot combine states; write {name}"
        )
    returned = combine(*[state[0] if single else state for state in states])
    result = _components(returned, values, "combine returns")
    initial = _components(identity, values, "identity has")
    exprs = tuple([_matching(part, v) for part, v in zip(result, values, strict=True)])
    starts = tuple([adapt(as_value(p), v.dtype) for p, v in zip(initial, values, strict=True)])
    for start in starts:
        if not isinstance(start, Const | Cast):
            raise definition_error(f"the identity of a reduction must be a number, not {start}")
    return Combiner("custom", left, right, exprs, starts, ordered)


_BUILTIN_COMBINERS: dict[object, str] = {
    builtins.max: "tl.maximum",
    builtins.min: "tl.minimum",
    builtins.sum: "lambda a, b: a + b",
}


def _each(values: tuple[Value, ...]) -> list[tuple[int, Value]]:
    return list(enumerate(values))


def _name(side: str, place: int, values: tuple[Value, ...]) -> str:
    return side if len(values) == 1 else f"{side}{place}"


def _components(state: object, values: tuple[Value, ...], subject: str) -> tuple[object, ...]:
    parts = cast("tuple[object, ...]", state if isinstance(state, tuple) else (state,))
    if len(parts) != len(values):
        raise definition_error(
            f"{subject} {len(parts)} components, but a state has {len(values)}: "
            "the comprehension's body, the identity and combine's result must be alike"
        )
    return parts


def _matching(part: object, value: Value) -> Expr:
    result = as_value(part)
    if not result.weak and result.dtype is not value.dtype:
        raise definition_error(
            f"combine returns {result.dtype.name} where the state has {value.dtype.name}; cast the "
            f"comprehension's body, tl.cast(x, tl.{result.dtype.name}), or combine's result"
        )
    if result.weak and result.dtype is f64 and not is_float(value.dtype):
        raise definition_error(f"combine returns a float where the state has {value.dtype.name}")
    return adapt(result, value.dtype)
