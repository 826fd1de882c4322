"""``tlt.arguments``: random arguments that fit an operator, for hypothesis.

Input:  an operator
Output: ``(A, B)`` of agreeing sizes (0, 1, primes, beside a tile), contiguous or strided, with
        values among which are zeros of both signs, infinities and NaN

An integer array that is used as an index holds indices that are in range.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast

import numpy as np
from hypothesis import strategies as st
from numpy.random import Generator
from numpy.typing import NDArray

from tensorlang.dtypes import (
    DType,
    bool_,
    f32,
    f64,
    integer_range,
    is_float,
    to_numpy,
)
from tensorlang.ir.affine import Affine, ValueAtom, Var, evaluate, minimum
from tensorlang.ir.definition import Definition, Tensor
from tensorlang.ir.expr import Cast, Expr, Load, loads_of
from tensorlang.lang.compute import Operator
from tensorlang.testing.sizes import candidate_sizes

Array = NDArray[Any]

_MOST_SHOWN = 64


class Arguments(tuple[Any, ...]):
    """Positional arguments of a call; ``keywords`` holds attributes and sizes given by name.

    ``op(*args, **args.keywords)`` calls any operator; without keyword parameters ``op(*args)``
    does.
    """

    keywords: dict[str, Any]
    sizes: Mapping[Var, int]
    definition: Definition

    def __repr__(self) -> str:
        parts = [_describe(argument) for argument in self]
        parts += [f"{name}={value!r}" for name, value in self.keywords.items()]
        return f"Arguments({', '.join(parts)})"


def arguments(
    operator: Operator, *annotations: Any, special: bool = True, **sizes_and_attributes: Any
) -> st.SearchStrategy[Arguments]:
    """Return a strategy of arguments for ``operator``.

    Parameters
    ----------
    operator
        What is to be called.
    *annotations
        For parameters without annotation, ``tl.f32[M, N]``; without these, generic operators are
        given f32 and f64 arrays of up to three axes.
    special
        Whether infinities and NaN may be among the values.
    **sizes_and_attributes
        Fixed sizes (``N=24``) and attributes (``stride=2``); the latter are in ``keywords`` too.

    Examples
    --------
    >>> import tensorlang as tl
    >>> N = tl.dim("N")
    >>> @tl.compute
    ... def double(x: tl.f32[N]):
    ...     return tl.tensor(x[i] * 2 for i in N)
    >>> from hypothesis import given
    >>> @given(arguments(double))
    ... def test_double(args):
    ...     assert double.reference(*args).shape == args[0].shape
    >>> test_double()

    """

    @st.composite
    def draw_arguments(draw: st.DrawFn) -> Arguments:
        definition = draw(st.sampled_from(_definitions(operator, annotations, fixed)))
        candidates = _sizes(definition)
        # by number: to draw from a long list directly, hypothesis hashes all of it every time
        sizes = candidates[draw(st.integers(0, len(candidates) - 1))]
        named: dict[str, Any] = {}
        for tensor in definition.inputs:
            named[tensor.name] = draw(_arrays(definition, tensor, sizes, special))
        for scalar in definition.scalars:
            named[scalar.name] = draw(_scalars(scalar.dtype, special))
        return _ordered(operator, definition, named, sizes, sizes_and_attributes)

    fixed = tuple(sorted(sizes_and_attributes.items()))
    return draw_arguments()


def _definitions(
    operator: Operator, annotations: tuple[Any, ...], fixed: tuple[tuple[str, Any], ...]
) -> list[Definition]:
    """Return the definitions to try: one, or those that a generic operator can be traced to."""
    keywords = dict(fixed)
    if annotations or not operator.is_generic:
        return [operator.definition(*annotations, **keywords)]
    generic = [p.name for p in operator.parameters if p.kind == "generic" and not p.is_optional]
    found: list[Definition] = []
    for rank in range(4):
        for dtype in (f32, f64):
            described = {name: np.zeros((1,) * rank, to_numpy(dtype)) for name in generic}
            try:
                found.append(operator.definition(**described, **keywords))
            except Exception:
                continue  # whatever the user's function raises for a rank it is not made for
    if not found:
        raise ValueError(
            f"{operator.name} is generic: describe its parameters, "
            f"as in tlt.arguments({operator.name}, tl.f32[M, N])"
        )
    return found


@lru_cache(maxsize=64)
def _sizes(definition: Definition) -> list[dict[Var, int]]:
    """Return the sizes to try; those without an element that an index could name are left out."""
    limits = [(tensor, _index_limit(definition, tensor)) for tensor in definition.inputs]

    def have_indices(sizes: dict[Var, int]) -> bool:
        return all(
            limit is None or evaluate(limit, sizes) > 0 or 0 in _shape(tensor, sizes)
            for tensor, limit in limits
        )

    return list(filter(have_indices, candidate_sizes(definition)))


def _shape(tensor: Tensor, sizes: Mapping[Var, int]) -> tuple[int, ...]:
    return tuple([evaluate(extent, sizes) for extent in tensor.shape])


def _ordered(
    operator: Operator,
    definition: Definition,
    named: Mapping[str, Any],
    sizes: Mapping[Var, int],
    given: Mapping[str, Any],
) -> Arguments:
    """Put values in the order of the parameters; those given by name only are keywords."""
    by_name = {size.name: value for size, value in sizes.items()}
    positional: list[Any] = []
    keywords: dict[str, Any] = {}
    for parameter in operator.parameters:
        name = parameter.name
        match parameter.kind:
            case "attribute":
                if name in given:
                    keywords[name] = given[name]
                continue
            case "dim":
                value = by_name[name] if name in by_name else given[name]
            case _:
                value = named.get(name)
        if parameter.keyword_only:
            keywords[name] = value
        else:
            positional.append(value)
    result = Arguments(positional)
    result.keywords, result.sizes, result.definition = keywords, sizes, definition
    return result


# --- values --------------------------------------------------------------------------------------


def _scalars(dtype: DType, special: bool) -> st.SearchStrategy[Any]:
    if dtype is bool_:
        return st.booleans()
    if is_float(dtype):
        plain = st.integers(-32, 32).map(lambda eighths: eighths / 8)
        return plain | st.sampled_from([0.0, -0.0, np.inf, np.nan]) if special else plain
    low, high = integer_range(dtype)
    return st.integers(max(low, -8), min(high, 8))


@dataclass(frozen=True, slots=True)
class _Fill:
    """How an array is filled: kind of values, seed, and where it gets special ones."""

    kind: str
    seed: int
    specials: int
    memory: str


_FILLS = st.builds(
    _Fill,
    st.sampled_from(["small", "zero", "normal"]),
    st.integers(0, 2**16),
    st.integers(0, 3),
    st.sampled_from(["contiguous", "transposed", "every second", "reversed", "read-only"]),
)


def _arrays(
    definition: Definition, tensor: Tensor, sizes: Mapping[Var, int], special: bool
) -> st.SearchStrategy[Array]:
    shape = _shape(tensor, sizes)
    limit = _index_limit(definition, tensor)

    def make(fill: _Fill) -> Array:
        generator = np.random.default_rng(fill.seed)
        if limit is not None:
            array = generator.integers(0, max(evaluate(limit, sizes), 1), shape)
            array = np.asarray(array, to_numpy(tensor.dtype))
        else:
            array = np.asarray(_values(generator, fill, shape, tensor.dtype))
            if special and fill.specials and array.size:
                _put_specials(generator, array, fill.specials, tensor.dtype)
        return _in_memory(array, fill.memory)

    return _FILLS.map(make)


def _values(generator: Generator, fill: _Fill, shape: tuple[int, ...], dtype: DType) -> Array:
    """Return values of a few bits, whose sums and products are exact in any order, or any."""
    if fill.kind == "zero":
        return np.zeros(shape, to_numpy(dtype))
    if dtype is bool_:
        return generator.integers(0, 2, shape).astype(bool)
    if is_float(dtype):
        if fill.kind == "normal":
            return generator.standard_normal(shape).astype(to_numpy(dtype))
        return (generator.integers(-32, 33, shape) / 8).astype(to_numpy(dtype))
    low, high = integer_range(dtype)
    return generator.integers(max(low, -8), min(high, 8), shape, endpoint=True).astype(
        to_numpy(dtype)
    )


def _put_specials(generator: Generator, array: Array, count: int, dtype: DType) -> None:
    """Overwrite a few elements with the values that arithmetic treats otherwise."""
    chosen: list[Any]
    if is_float(dtype):
        smallest = float(np.finfo(np.float32).smallest_subnormal)
        chosen = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, smallest]
    else:
        chosen = list(integer_range(dtype))
    flat = array.reshape(-1)
    places = generator.integers(0, flat.size, count)
    flat[places] = np.array(chosen, array.dtype)[generator.integers(0, len(chosen), count)]


def _in_memory(array: Array, memory: str) -> Array:
    """Return equal elements that lie in memory in another way."""
    match memory:
        case "transposed":
            return np.asfortranarray(array)
        case "every second" if array.ndim:
            spread = np.zeros((*array.shape[:-1], 2 * array.shape[-1]), array.dtype)
            spread[..., ::2] = array
            return spread[..., ::2]
        case "reversed" if array.ndim:
            return np.ascontiguousarray(array[::-1])[::-1]
        case "read-only":
            array.flags.writeable = False
            return array
        case _:
            return array


# --- arrays of indices ---------------------------------------------------------------------------


def _index_limit(definition: Definition, tensor: Tensor) -> Affine | None:
    """Return the least extent that an element of ``tensor`` indexes; None if it indexes nothing."""
    limits: list[Affine] = []
    for stage in definition.stages:
        for load in loads_of(*stage.values):
            for index, extent in zip(load.indices, load.tensor.shape, strict=True):
                if any(_is_element(atom, tensor) for atom, _ in index.terms):
                    limits.append(extent)
    return minimum(*limits) if limits else None


def _is_element(atom: object, tensor: Tensor) -> bool:
    return isinstance(atom, ValueAtom) and _source(atom.expr) is tensor


def _source(expr: Expr) -> Tensor | None:
    """Return the tensor of which ``expr`` is an element, perhaps of another integer type."""
    while isinstance(expr, Cast):
        expr = expr.operand
    return expr.tensor if isinstance(expr, Load) else None


def _describe(argument: Any) -> str:
    if not isinstance(argument, np.ndarray):
        return repr(argument)
    array = cast("Array", argument)
    flags = "" if array.flags.c_contiguous else ", strided"
    values = array.tolist() if array.size <= _MOST_SHOWN else np.array2string(array, threshold=8)
    return f"<{array.dtype} {array.shape}{flags}: {values}>"
