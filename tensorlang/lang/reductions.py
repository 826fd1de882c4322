"""Reductions: ``tl.sum``, ``tl.prod``, ``tl.max``, ..., and ``tl.reduce`` with a user's combiner.

Input:  ``tl.sum(A[i, k] * B[k, j] for k in K)``
Output: a ``ReductionValue`` (see ``read_reduction``)

The functions bear the names of Python's builtins, so nothing else lives here.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

from tensorlang.lang.read_reduction import (
    argument_reduction,
    builtin_reduction,
    custom_reduction,
)

Comprehension = Generator[Any, None, None]


def sum(generator: Comprehension, *, dtype: Any = None, ordered: bool = False) -> Any:
    """Return the sum over the axes of a comprehension; 0 if there are none.

    Parameters
    ----------
    generator
        A comprehension over sizes and ``tl.range`` whose body is a number or a bool.
    dtype
        The dtype of accumulator and result. Default: that of the body (i64 for bools); f16 and
        bf16 accumulate in f32 and are rounded once.
    ordered
        Add from left to right, in the order of the loops, beginning with 0: no schedule may
        reorder the loops, and the result is that of the same loop in plain Python.

    Raises
    ------
    DefinitionError
        If the comprehension contains an ``if`` on traced values, or loops over anything but
        sizes and ``tl.range``.

    Examples
    --------
    >>> import numpy as np, tensorlang as tl
    >>> M, N = tl.dims("M N")
    >>> @tl.compute
    ... def row_sums(x: tl.f32[M, N]):
    ...     return tl.tensor(tl.sum(x[i, j] for j in N) for i in M)
    >>> row_sums.reference(np.ones((2, 3), np.float32))
    array([3., 3.], dtype=float32)

    """
    return builtin_reduction("sum", "add", generator, dtype, ordered)


def prod(generator: Comprehension, *, dtype: Any = None, ordered: bool = False) -> Any:
    """Return the product over the axes of a comprehension; 1 if there are none (see ``sum``)."""
    return builtin_reduction("prod", "mul", generator, dtype, ordered)


def max(generator: Comprehension, *, dtype: Any = None) -> Any:
    """Return the greatest element; NaN if there is one; -inf or the dtype's least if empty."""
    return builtin_reduction("max", "maximum", generator, dtype)


def min(generator: Comprehension, *, dtype: Any = None) -> Any:
    """Return the least element; NaN if there is one; inf or the dtype's greatest if empty."""
    return builtin_reduction("min", "minimum", generator, dtype)


def all(generator: Comprehension) -> Any:
    """Tell whether every element is true (numbers: not 0); true if there are none."""
    return builtin_reduction("all", "and", generator, None)


def any(generator: Comprehension) -> Any:
    """Tell whether some element is true (numbers: not 0); false if there are none."""
    return builtin_reduction("any", "or", generator, None)


def argmax(generator: Comprehension) -> Any:
    """Return where the greatest element lies, as i64.

    The lowest index wins a tie, the first NaN wins over all. Several axes: the flat row-major
    position. At the call, ValueError if there is no element.

    Examples
    --------
    >>> import numpy as np, tensorlang as tl
    >>> M, N = tl.dims("M N")
    >>> @tl.compute
    ... def best(x: tl.f32[M, N]):
    ...     return tl.tensor(tl.argmax(x[i, j] for j in N) for i in M)
    >>> best.reference(np.array([[1, 3, 3]], np.float32))
    array([1])

    """
    return argument_reduction("argmax", generator)


def argmin(generator: Comprehension) -> Any:
    """Return where the least element lies, as i64 (see ``argmax``)."""
    return argument_reduction("argmin", generator)


def reduce(
    combine: Callable[..., Any],
    identity: Any,
    generator: Comprehension,
    *,
    ordered: bool = False,
) -> Any:
    """Return the elements of a comprehension combined by ``combine(state, state)``.

    Parameters
    ----------
    combine
        Takes two states and returns one, each a number or a tuple of numbers. It is claimed to be
        associative and commutative, which is tried on random elements right away.
    identity
        The state of no elements: ``combine(identity, x) == x``, tried as well.
    generator
        A comprehension whose body is one state.
    ordered
        Combine from left to right, in the order of the loops, beginning with ``identity``;
        nothing is claimed of ``combine`` then, and no schedule may reorder the loops.

    Returns
    -------
    A state; for tuples, ``tl.tensor`` of it returns a tuple of tensors.

    Raises
    ------
    DefinitionError
        If a trial fails, with the elements for which it does.

    Examples
    --------
    >>> import numpy as np, tensorlang as tl
    >>> N = tl.dim("N")
    >>> @tl.compute
    ... def longest(x: tl.f64[N]):
    ...     return tl.reduce(tl.maximum, -tl.inf, (abs(x[i]) for i in N))
    >>> longest.reference(np.array([1.0, -3.0]))
    array(3.)

    """
    return custom_reduction(combine, identity, generator, ordered)
