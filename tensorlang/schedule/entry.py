"""``tl.schedule``: from an operator to a schedule."""

from __future__ import annotations

from typing import Any

from tensorlang.ir.definition import Definition
from tensorlang.schedule.schedule import Schedule


def schedule(operator: Any, /, *arguments: Any, **sizes_and_attributes: Any) -> Schedule:
    """Return a schedule of ``operator``: the naive loops, ready to be rewritten.

    Sizes (``N=1024``) are fixed and attributes (``stride=2``) chosen by keyword. A generic
    operator, whose parameters have no annotations, needs annotations or arrays as ``arguments``:
    ``tl.schedule(relu, tl.f32[M, N])``.

    Raises DefinitionError for sizes or attributes that the operator does not have.
    """
    if isinstance(operator, Definition):
        if not sizes_and_attributes:
            return Schedule(operator)
        from tensorlang.ir.specialize import fix_sizes

        return Schedule(fix_sizes(operator, sizes_and_attributes), sizes_and_attributes)
    definition = operator.definition(*arguments, **sizes_and_attributes)
    return Schedule(definition, sizes_and_attributes, operator)
