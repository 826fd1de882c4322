"""``tlt.check``: the usual tests of an operator, in one line.

Input:  ``tlt.check(matmul, against=np.matmul)``
Output: nothing, or AssertionError with the arguments (and the schedule) that give a wrong result
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import HealthCheck, Phase, given, settings

import tensorlang as tl
from tensorlang.lang.compute import Operator
from tensorlang.schedule.schedule import Schedule
from tensorlang.testing.comparison import assert_close
from tensorlang.testing.random_arguments import Arguments, arguments
from tensorlang.testing.random_schedules import schedules
from tensorlang.testing.sizes import most_terms


def check(
    operator: Operator,
    *annotations: Any,
    against: Callable[..., Any] | None = None,
    examples: int = 30,
    rtol: float | None = None,
    atol: float | None = None,
    special: bool = True,
    **sizes_and_attributes: Any,
) -> None:
    """Check an operator: its definition, compiled by default, and compiled from random schedules.

    Three properties are tried, each on random arguments (see ``tlt.arguments``):

    1. the definition, evaluated with NumPy, agrees with ``against``;
    2. calling the operator agrees with its definition;
    3. so does what any random schedule is compiled to (fewer examples: each is compiled).

    Parameters
    ----------
    operator, *annotations, **sizes_and_attributes
        As for ``tlt.arguments``.
    against
        A function of the positional arguments that computes the same, such as ``np.matmul``.
    examples
        How many arguments to try for each of the first two properties.
    rtol, atol
        As for ``tlt.assert_close``; the default allows for the length of the reductions.
    special
        Whether infinities and NaN may be among the values.

    Raises
    ------
    AssertionError
        With the arguments, the worst element, and the schedule.

    """
    drawn = arguments(operator, *annotations, special=special, **sizes_and_attributes)

    def agree(actual: Any, expected: Any, args: Arguments) -> None:
        terms = most_terms(args.definition, args.sizes)
        assert_close(actual, expected, rtol=rtol, atol=atol, terms=terms or None)

    @_quietly(examples)
    @given(drawn)
    def check_definition(args: Arguments) -> None:
        assert against is not None
        with np.errstate(all="ignore"):
            expected = against(*args)
        agree(operator.reference(*args, **args.keywords), expected, args)

    @_quietly(examples)
    @given(drawn)
    def check_call(args: Arguments) -> None:
        agree(operator(*args, **args.keywords), operator.reference(*args, **args.keywords), args)

    @_quietly(max(examples // 3, 1))
    @given(schedules(operator, *annotations, **sizes_and_attributes), drawn)
    def check_schedule(s: Schedule, args: Arguments) -> None:
        compiled = tl.compile(s)
        agree(_call(compiled, args), operator.reference(*args, **args.keywords), args)

    if against is not None:
        check_definition()
    check_call()
    check_schedule()


def _call(compiled: Any, args: Arguments) -> Any:
    """Call what was compiled for given attributes: only sizes remain to be named."""
    names = {size.name for size in args.definition.dims}
    return compiled(*args, **{k: v for k, v in args.keywords.items() if k in names})


def _quietly(examples: int) -> Callable[[Any], Any]:
    """Return settings without deadlines (compiling takes what it takes) or explanations (long)."""
    return settings(
        phases=[Phase.generate, Phase.shrink],
        max_examples=examples,
        deadline=None,
        database=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
