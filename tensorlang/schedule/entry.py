"""``tl.schedule``: from an operator to a schedule."""

from __future__ import annotations

from typing import Any

from tensorlang.ir.definition import Definition
from tensorlang.lang.compute import Operator
from tensorlang.schedule.schedule import Schedule


def schedule(operator: Any, /, *arguments: Any, **sizes_and_attributes: Any) -> Schedule:
    """Return a schedule of ``operator``: the naive loops, ready to be rewritten.

    Sizes (``N=1024``) are fixed and attributes (``stride=2``) chosen by keyword. A generic
    operator, whose parameters have no annotations, needs annotations or arrays as ``arguments``:
    ``tl.schedule(relu, tl.f32[M, N])``.

    Raises TypeError for anything but an operator, ValueError for sizes that it does not have.

    Examples
    --------
    >>> import tensorlang as tl
    >>> N = tl.dim("N")
    >>> @tl.compute
    ... def double(x: tl.f32[N]):
    ...     return tl.tensor(x[i] * 2 for i in N)
    >>> print(tl.schedule(double, N=64))
    def double(x: f32[64]) -> f32[64]:
        for i in 64:
            double[i] = x[i] * 2

    """
    if isinstance(operator, Definition):
        if not sizes_and_attributes:
            return Schedule(operator)
        from tensorlang.ir.specialize import fix_sizes

        return Schedule(fix_sizes(operator, sizes_and_attributes), sizes_and_attributes)
    if not isinstance(operator, Operator):
        raise TypeError(
            f"tl.schedule takes an operator (@tl.compute), found {type(operator).__name__}"
        )
    definition = operator.definition(*arguments, **sizes_and_attributes)
    return Schedule(definition, sizes_and_attributes, operator)
