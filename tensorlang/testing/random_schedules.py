"""``tlt.schedules``: random schedules of an operator, for hypothesis.

Input:  an operator
Output: a ``Schedule`` after up to eight random steps, proved to compute the operator

A step that is refused is skipped: what is legal is the primitives' to decide. Steps that pass
one by one and are not proved together are taken back from the end.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import note
from hypothesis import strategies as st

import tensorlang as tl
from tensorlang.errors import ScheduleError
from tensorlang.lang.compute import Operator
from tensorlang.schedule.handles import Loop, StageHandle
from tensorlang.schedule.schedule import Schedule

Draw = st.DrawFn

FACTORS = (1, 2, 3, 4, 5, 7, 8, 16)
_TAILS = ("auto", "guard", "peel", "mask", "shift", "pad")


def schedules(
    operator: Operator,
    *annotations: Any,
    max_steps: int = 8,
    steps: tuple[str, ...] | None = None,
    **sizes_and_attributes: Any,
) -> st.SearchStrategy[Schedule]:
    """Return a strategy of schedules of ``operator`` that are proved to be right.

    Parameters
    ----------
    operator, *annotations, **sizes_and_attributes
        As for ``tl.schedule``.
    max_steps
        The most steps to try.
    steps
        The primitives to draw from, by name; all those that hold for every size by default.

    A failing example shows the schedule as the Python that rebuilds it.

    """
    names = tuple(STEPS) if steps is None else steps
    unknown = sorted(set(names) - set(STEPS))
    if unknown:
        raise ValueError(f"no random steps {', '.join(unknown)}; there are {', '.join(STEPS)}")

    @st.composite
    def draw_schedule(draw: Draw) -> Schedule:
        s = tl.schedule(operator, *annotations, **sizes_and_attributes)
        for name in draw(st.lists(st.sampled_from(names), max_size=max_steps)):
            try:
                STEPS[name](draw, s)
            except ScheduleError:
                continue
        while not _is_proved(s):
            s.undo()
        note(s.to_python())
        return s

    return draw_schedule()


def _is_proved(s: Schedule) -> bool:
    if not s.trace:
        return True
    try:
        s.verify()
    except ScheduleError:
        return False
    return True


# --- what a step applies to ----------------------------------------------------------------------


def _stage(draw: Draw, s: Schedule) -> StageHandle:
    return draw(st.sampled_from(s.stages))


def _loops(draw: Draw, s: Schedule) -> tuple[Loop, ...]:
    """Return the loops of a stage that has some; refuse the step if none has."""
    nests = [stage.loops for stage in s.stages]
    nests = [nest for nest in nests if nest]
    if not nests:
        raise ScheduleError("there are no loops")
    return draw(st.sampled_from(nests))


def _loop(draw: Draw, s: Schedule) -> Loop:
    return draw(st.sampled_from(_loops(draw, s)))


def _factor(draw: Draw) -> int:
    return draw(st.sampled_from(FACTORS))


def _tensor(draw: Draw, s: Schedule) -> str:
    inputs = [tensor.name for tensor in s.definition.inputs]
    return draw(st.sampled_from(inputs + [stage.name for stage in s.stages]))


# --- the steps -----------------------------------------------------------------------------------


def _split(draw: Draw, s: Schedule) -> None:
    s.split(_loop(draw, s), _factor(draw), tail=draw(st.sampled_from(_TAILS)))


def _tile(draw: Draw, s: Schedule) -> None:
    loops = _loops(draw, s)
    count = draw(st.integers(1, min(len(loops), 3)))
    first = draw(st.integers(0, len(loops) - count))
    s.tile(loops[first : first + count], [_factor(draw) for _ in range(count)])


def _fuse(draw: Draw, s: Schedule) -> None:
    loops = _loops(draw, s)
    first = draw(st.integers(0, len(loops) - 1))
    s.fuse(*loops[first : first + draw(st.integers(2, 3))])


def _reorder(draw: Draw, s: Schedule) -> None:
    s.reorder(*draw(st.permutations(_loops(draw, s))))


def _compute_at(draw: Draw, s: Schedule) -> None:
    s.compute_at(_stage(draw, s), _loop(draw, s))


def _cache_read(draw: Draw, s: Schedule) -> None:
    s.cache_read(_tensor(draw, s), at=_loop(draw, s), scope=draw(_SCOPES))


def _cache_write(draw: Draw, s: Schedule) -> None:
    stage = _stage(draw, s)
    if not stage.loops:
        raise ScheduleError("there are no loops")
    s.cache_write(stage, at=draw(st.sampled_from(stage.loops)), scope=draw(_SCOPES))


def _layout(draw: Draw, s: Schedule) -> None:
    """Permute the axes of a buffer and split one of them."""
    stage = _stage(draw, s)
    rank = len(s.program.stages[[other.name for other in s.stages].index(stage.name)].axes)
    if not rank:
        raise ScheduleError("a layout needs axes")
    order = draw(st.permutations(range(rank)))
    axis, factor = draw(st.integers(0, rank - 1)), _factor(draw)

    def place(*position: Any) -> tuple[Any, ...]:
        split = [
            (position[axis] // factor, position[axis] % factor) if number == axis else (at,)
            for number, at in enumerate(position)
        ]
        return tuple(part for number in order for part in split[number])

    s.layout(stage, place)


_SCOPES: st.SearchStrategy[Any] = st.sampled_from(["global", "local"])

STEPS: dict[str, Callable[[Draw, Schedule], object]] = {
    "split": _split,
    "tile": _tile,
    "fuse": _fuse,
    "reorder": _reorder,
    "peel": lambda draw, s: s.peel(_loop(draw, s)),
    "parallel": lambda draw, s: s.parallel(_loop(draw, s)),
    "vectorize": lambda draw, s: s.vectorize(_loop(draw, s)),
    "unroll": lambda draw, s: s.unroll(_loop(draw, s)),
    "compute_at": _compute_at,
    "compute_inline": lambda draw, s: s.compute_inline(_stage(draw, s)),
    "compute_root": lambda draw, s: s.compute_root(_stage(draw, s)),
    "reverse_compute_at": lambda draw, s: s.reverse_compute_at(_stage(draw, s), _loop(draw, s)),
    "cache_read": _cache_read,
    "cache_write": _cache_write,
    "layout": _layout,
    "rfactor": lambda draw, s: s.rfactor(_loop(draw, s)),
    "decompose_reduction": lambda draw, s: s.decompose_reduction(_stage(draw, s), _loop(draw, s)),
}
"""A random step for each primitive; ``assume`` and exact tails restrict the sizes: left out."""
