"""Tables and classes: embedding and one_hot.

Input:  ``embedding(indices, w)`` with ``indices: i64[...]``, ``w: [V, D]``
Output: ``[..., D]``, the rows of the table at the indices
"""

from __future__ import annotations

from typing import Any

import tensorlang as tl
from tensorlang.dtypes import is_integer
from tensorlang.lang.mistakes import definition_error


@tl.compute
def embedding(x: Any, w: Any):
    """Return the rows of ``w: [V, D]`` at the indices ``x``, one more axis than ``x`` has.

    At the call, IndexError for an index that is not a row; negative ones do not count from the end.
    """
    if not is_integer(x.dtype) or w.ndim != 2:
        raise definition_error("embedding: x holds integers, and w has shape [V, D]")
    return tl.tensor(w[x[i[:-1]], i[-1]] for i in tl.grid((*x.shape, w.shape[1])))


@tl.compute
def one_hot(x: Any, *, num_classes: int):
    """Return 1 where a class stands, 0 elsewhere, as i64: one more axis, of ``num_classes``.

    A class outside of 0 .. ``num_classes`` - 1 has no 1.
    """
    if not is_integer(x.dtype):
        raise definition_error(f"one_hot: x is {x.dtype.name}; it must hold integers")
    if num_classes < 0:
        raise definition_error(f"one_hot: num_classes must not be negative: {num_classes}")
    return tl.tensor(
        tl.cast(tl.cast(x[i[:-1]], tl.i64) == i[-1], tl.i64)
        for i in tl.grid((*x.shape, num_classes))
    )
