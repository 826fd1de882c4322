"""Tries what ``tl.reduce`` claims of a combiner on random elements, when it is defined.

Input:  a combiner and the expressions of the elements it will combine
Output: nothing, or a ``DefinitionError`` with the elements for which a claim fails

Elements are made as the reduction makes them, from random tensors: the count of Welford's algorithm
is 1 in each, and ``abs(x[i])`` is never negative, so that invariants a combiner relies on hold in
the trials too. Elements that are NaN are left out; a combination that is NaN counts as a failure.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorlang.dtypes import DType, bool_, evaluation_dtype, f64, is_float, to_numpy
from tensorlang.ir.definition import Combiner
from tensorlang.ir.expr import Expr, IndexValue, Load, Placeholder, ScalarRef
from tensorlang.ir.walk import rewrite_expr
from tensorlang.lang.evaluate import Environment, evaluate_expr
from tensorlang.lang.mistakes import definition_error

State = tuple[Any, ...]
_TRIALS = 64


def check_combiner(combiner: Combiner, elements: tuple[Expr, ...]) -> None:
    """Try identity, commutativity and associativity of ``combiner``."""
    generator = np.random.default_rng(0)
    a, b, c = (_random_element(elements, generator) for _ in range(3))
    usable = ~np.any([_is_nan(component) for state in (a, b, c) for component in state], axis=0)
    identity = tuple(
        [np.broadcast_to(evaluate_expr(e, Environment({}, {})), _TRIALS) for e in combiner.identity]
    )
    ab = apply_combiner(combiner, a, b)
    states = {"a": a, "b": b, "c": c}
    claims = (
        ("identity is no identity", "combine(identity, a)", "a",
         apply_combiner(combiner, identity, a), a),
        ("combine is not commutative", "combine(a, b)", "combine(b, a)",
         ab, apply_combiner(combiner, b, a)),
        ("combine is not associative", "combine(combine(a, b), c)", "combine(a, combine(b, c))",
         apply_combiner(combiner, ab, c),
         apply_combiner(combiner, a, apply_combiner(combiner, b, c))),
    )  # fmt: skip
    for claim, left_text, right_text, left, right in claims:
        differs = np.zeros(_TRIALS, bool)
        for one, other, expr in zip(left, right, combiner.result, strict=True):
            differs |= ~_agree(one, other, expr.dtype) & usable
        if differs.any():
            trial = int(np.argmax(differs))
            used = [name for name in states if name in left_text.replace("combine", "")]
            where = ", ".join(f"{name} = {_show(states[name], trial)}" for name in used)
            raise definition_error(
                f"{claim}: for {where}, {left_text} is {_show(left, trial)}, but {right_text} is "
                f"{_show(right, trial)}; a reduction may combine in any order (ordered=True keeps "
                "the loops' order, and asks nothing of combine)"
            )


def apply_combiner(combiner: Combiner, left: State, right: State) -> State:
    """Return the combination of two states, each a tuple of arrays."""
    bound: dict[Placeholder, Any] = {}
    bound.update(zip(combiner.left, left, strict=True))
    bound.update(zip(combiner.right, right, strict=True))
    env = Environment({}, {}, placeholders=bound)
    return tuple([evaluate_expr(result, env) for result in combiner.result])


def _random_element(elements: tuple[Expr, ...], generator: np.random.Generator) -> State:
    """Evaluate what is combined, with random values for everything that it is made of."""
    values: dict[Placeholder, Any] = {}
    known: dict[Expr, Placeholder] = {}

    def leaf(node: Expr) -> Expr:
        if not isinstance(node, Load | IndexValue | ScalarRef):
            return node
        if node not in known:
            dtype = evaluation_dtype(node.dtype)
            known[node] = Placeholder("x", dtype)
            values[known[node]] = _random_values(dtype, generator, isinstance(node, IndexValue))
        return known[node]

    env = Environment({}, {}, placeholders=values)
    made = [evaluate_expr(rewrite_expr(element, leaf), env) for element in elements]
    return tuple([np.broadcast_to(component, _TRIALS) for component in made])


def _random_values(dtype: DType, generator: np.random.Generator, is_index: bool) -> Any:
    kind = to_numpy(dtype)
    if dtype is bool_:
        return generator.integers(0, 2, _TRIALS).astype(bool)
    if not is_float(dtype) or is_index:
        low = 0 if dtype.kind == "uint" or is_index else -6
        return generator.integers(low, 7, _TRIALS).astype(kind)
    halves = generator.integers(-8, 9, _TRIALS) / 2  # with ties
    return np.where(np.arange(_TRIALS) % 2, halves, generator.normal(size=_TRIALS)).astype(kind)


def _is_nan(component: Any) -> Any:
    return component != component


def _agree(left: Any, right: Any, dtype: DType) -> Any:
    if not is_float(dtype):
        return left == right
    tolerance = 1e-9 if dtype is f64 else 1e-3
    scale = np.maximum(np.maximum(np.abs(left), np.abs(right)), 1)
    with np.errstate(all="ignore"):
        return (left == right) | (np.abs(left - right) <= tolerance * scale)


def _show(state: State, trial: int) -> str:
    parts = [f"{np.asarray(part)[trial].item():.6g}" for part in state]
    return parts[0] if len(parts) == 1 else f"({', '.join(parts)})"
