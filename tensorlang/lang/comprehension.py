"""``tl.tensor``: turns the axes of a comprehension into the axes of a tensor.

Input:  ``tl.tensor(tl.sum(A[i, k] * B[k, j] for k in K) for i in M for j in N)``
Output: one stage over (i, j) that reduces over k, and a handle for its tensor
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, cast

from tensorlang.ir.affine import ZERO
from tensorlang.lang.application import as_value
from tensorlang.lang.conversion import strengthen
from tensorlang.lang.mistakes import definition_error
from tensorlang.lang.read_reduction import check_dtype, whole_reduction
from tensorlang.lang.scan import ScanValue, add_scan
from tensorlang.lang.stages import add_map, add_reduction
from tensorlang.lang.tensor import TensorHandle
from tensorlang.lang.trace import Scope, current
from tensorlang.source import user_location


def tensor(
    generator: Generator[Any, None, None], *, name: str | None = None, dtype: Any = None
) -> Any:
    """Return the tensor whose elements the body of a comprehension describes.

    Parameters
    ----------
    generator
        A comprehension over sizes, ``tl.range(n)`` and ``tl.grid(shape)``; its loops, in order,
        are the tensor's axes. A body that is exactly one reduction (or ``tl.scan``) is one stage;
        reductions inside a larger expression become stages of their own. A tuple gives a tuple of
        tensors, computed together.
    name
        The stage's name; default: the local variable that holds the result.
    dtype
        The dtype of the elements; default: that of the body.

    Returns
    -------
    A tensor, indexed by ``t[i, j]`` in later comprehensions, with ``shape``, ``ndim``, ``dtype``.

    Raises
    ------
    DefinitionError
        If the body uses a size that no parameter has, an axis of another comprehension, or an
        index that leaves its tensor for all sizes.

    Examples
    --------
    >>> import numpy as np, tensorlang as tl
    >>> M, N, K = tl.dims("M N K")
    >>> @tl.compute
    ... def matmul(A: tl.f32[M, K], B: tl.f32[K, N]):
    ...     return tl.tensor(tl.sum(A[i, k] * B[k, j] for k in K) for i in M for j in N)
    >>> matmul.reference(np.eye(2, dtype=np.float32), np.full((2, 1), 3, np.float32))
    array([[3.],
           [3.]], dtype=float32)

    """
    trace = current("tl.tensor")
    wanted = check_dtype(dtype, "tl.tensor")
    location = user_location()
    body, scope = trace.advance(generator, "tl.tensor")
    _check_axes(scope)
    axes = tuple([axis.axis for axis in scope.axes])
    if isinstance(body, TensorHandle) and body.ndim:
        raise definition_error(f"the body of tl.tensor is the tensor {body}; index it")
    if isinstance(body, ScanValue):
        handles = add_scan(trace, axes, body, location)
        many = len(handles) > 1
    else:
        parts = cast("tuple[object, ...]", body if isinstance(body, tuple) else (body,))
        many = isinstance(body, tuple)
        reduction = whole_reduction(parts, scope.axes) if wanted is None else None
        if reduction is not None:
            handles = add_reduction(trace, axes, reduction)
        else:
            values = tuple([strengthen(as_value(part), wanted) for part in parts])
            handles = add_map(trace, axes, values, location)
    if name is not None:
        trace.given_names[handles[0].tensor] = name
    return handles if many else handles[0]


def _check_axes(scope: Scope) -> None:
    if not scope.axes and not scope.has_grid:
        raise definition_error("the comprehension of tl.tensor has no loop over a size")
    for axis in scope.axes:
        if axis.predicate or axis.shown.affine - axis.axis.variable != ZERO:
            raise definition_error(
                f"the axis {axis.axis.variable} of tl.tensor must run from 0 to an extent that "
                "depends on sizes alone; lower bounds, and bounds that depend on other axes, are "
                "for reductions (shift the index instead)"
            )
