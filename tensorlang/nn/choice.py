"""Choice by element: where.

Input:  ``where(x > 0, x, y)`` with operands that broadcast
Output: ``x`` where the condition holds, ``y`` elsewhere
"""

from __future__ import annotations

from typing import Any

import tensorlang as tl
from tensorlang.dtypes import bool_
from tensorlang.lang.mistakes import definition_error
from tensorlang.nn.broadcasting import Stretch, Stretched, broadcasting


@broadcasting()
def where(condition: Any, a: Any, b: Any, *, stretch: Stretch = ()):
    """Return ``a`` where ``condition`` (of bool) holds, ``b`` elsewhere.

    The three broadcast as NumPy's operands do (``stretch`` says how, and is found from the shapes);
    the dtypes of ``a`` and ``b`` meet as those of a sum do.
    """
    if condition.dtype is not bool_:
        raise definition_error(
            f"where: the condition is {condition.dtype.name}; compare it first, as in x != 0"
        )
    over = Stretched("where", [condition.shape, a.shape, b.shape], stretch)
    return tl.tensor(
        tl.where(condition[over.at(0, i)], a[over.at(1, i)], b[over.at(2, i)])
        for i in tl.grid(over.shape)
    )
