"""``tl.compile``: one verb for operators and schedules.

Input:  ``tl.compile(matmul, M=1024)``, ``tl.compile(s)``, ``tl.compile(relu)``
Output: a ``CompiledFunction``; for an operator whose ranks and dtypes come with the call, a
        ``SpecializingFunction``
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, TypeVar, cast, overload, runtime_checkable

from tensorlang.driver.options import (
    DEFAULT_RTOL,
    BoundsChecks,
    CompileOptions,
    Precision,
    make_options,
)
from tensorlang.driver.pipeline import compile_default, compile_schedule
from tensorlang.driver.specialize import SpecializingFunction
from tensorlang.lang.compute import Operator
from tensorlang.runtime.callable import CompiledFunction
from tensorlang.schedule.entry import schedule
from tensorlang.schedule.schedule import Schedule

Compiled = TypeVar("Compiled", covariant=True)


@runtime_checkable
class Compilable(Protocol[Compiled]):
    """What knows how to compile itself: graphs, which are made of operators."""

    def __tensorlang_compile__(self, options: CompileOptions, fixed: Mapping[str, Any]) -> Compiled:
        """Return the compiled form; ``fixed`` are sizes and attributes."""
        ...


@overload
def compile(
    x: Schedule,
    target: str = "cpu",
    *,
    check_bounds: BoundsChecks = "auto",
    verify: bool = True,
    fast_math: bool = False,
    opt_level: int = 3,
    rtol: float = DEFAULT_RTOL,
    precision: Precision = "default",
) -> CompiledFunction: ...


@overload
def compile(
    x: Operator,
    target: str = "cpu",
    *,
    check_bounds: BoundsChecks = "auto",
    verify: bool = True,
    fast_math: bool = False,
    opt_level: int = 3,
    rtol: float = DEFAULT_RTOL,
    precision: Precision = "default",
    **sizes_and_attributes: Any,
) -> CompiledFunction | SpecializingFunction: ...


@overload
def compile(
    x: Compilable[Compiled],
    target: str = "cpu",
    *,
    check_bounds: BoundsChecks = "auto",
    verify: bool = True,
    fast_math: bool = False,
    opt_level: int = 3,
    rtol: float = DEFAULT_RTOL,
    precision: Precision = "default",
    **sizes_and_attributes: Any,
) -> Compiled: ...


def compile(
    x: Any,
    target: str = "cpu",
    *,
    check_bounds: BoundsChecks = "auto",
    verify: bool = True,
    fast_math: bool = False,
    opt_level: int = 3,
    rtol: float = DEFAULT_RTOL,
    precision: Precision = "default",
    **sizes_and_attributes: Any,
) -> Any:
    """Compile an operator, a schedule or a graph into a function over arrays.

    Parameters
    ----------
    x
        An operator, for which the default schedule is made, a schedule, or a graph. A schedule
        with steps of your own is proved to compute its operator first.
    target
        ``"cpu"``, or ``"cpu -mcpu=NAME"`` for another processor of the same kind; ``"cuda:sm_90"``
        makes PTX of a schedule with bound loops, to be read with ``source("ptx")``.
    check_bounds
        Whether indices taken from data are checked; "auto" checks those that are not proved to
        lie inside, False none: then a wrong index reads memory that is not the tensor's.
    verify
        False skips the proof of a schedule written by hand. Its steps were still checked one by
        one, but nothing vouches for the whole.
    fast_math
        Lets results depend on the order of floating-point operations, and ignore NaN.
    opt_level
        How hard LLVM tries, 0 to 3; for a graph also which passes run.
    rtol
        The error, relative to the spread of a result, up to which another algorithm may compute
        it: Winograd's for convolutions of a graph with constant filters, from 1e-5 and 1e-4 on.
        It never changes a schedule written by hand.
    precision
        "strict" is short for ``rtol=0``: every sum is the one that its definition writes.
    **sizes_and_attributes
        Sizes to fix (``M=1024``) and attributes (``stride=2``) of an operator.

    Returns
    -------
    A function over arrays, with ``source``, ``time`` and ``report``.

    Raises
    ------
    ScheduleError
        If a schedule written by hand is wrong, or cannot be proved.
    CompileError
        If the target is not known, or cannot run the program.
    TypeError, ValueError
        For options without meaning, and names that the operator does not have.

    Examples
    --------
    >>> import numpy as np, tensorlang as tl
    >>> N = tl.dim("N")
    >>> @tl.compute
    ... def double(x: tl.f32[N]):
    ...     return tl.tensor(x[i] * 2 for i in N)
    >>> tl.compile(double)(np.arange(3, dtype=np.float32))
    array([0., 2., 4.], dtype=float32)

    """
    options = make_options(target, check_bounds, verify, fast_math, opt_level, rtol, precision)
    match x:
        case Schedule():
            if sizes_and_attributes:
                names = ", ".join(f"{name}=" for name in sizes_and_attributes)
                raise TypeError(
                    f"a schedule has its sizes and attributes already: give {names} to tl.schedule"
                )
            return _prepared(compile_schedule(x, options))
        case Operator() if x.is_generic:
            return SpecializingFunction(x, options, sizes_and_attributes)
        case Operator():
            return _prepared(compile_default(schedule(x, **sizes_and_attributes), options))
        case Compilable():
            graph = cast("Compilable[Any]", x)
            return graph.__tensorlang_compile__(options, sizes_and_attributes)
        case _:
            raise TypeError(
                f"tl.compile takes an operator (@tl.compute), a schedule or a graph, found"
                f" {type(x).__name__}"
            )


def _prepared(function: CompiledFunction) -> CompiledFunction:
    function.prepare()
    return function
