"""``tlt.schedules``: random schedules of an operator, for hypothesis.

Input:  an operator
Output: a ``Schedule`` after up to eight random steps, proved to compute the operator

A step that is refused is skipped: what is legal is the primitives' to decide. Steps that pass
one by one and are not proved together are taken back from the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from hypothesis import note
from hypothesis import strategies as st

import tensorlang as tl
from tensorlang.errors import ScheduleError
from tensorlang.lang.compute import Operator
from tensorlang.schedule.handles import Loop, StageHandle
from tensorlang.schedule.schedule import Schedule

Draw = st.DrawFn
T = TypeVar("T")

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
            except Exception:
                note(f"{s.to_python()}\n# then {name} failed")
                raise
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


# --- what a step applies to: mostly what it may apply to, so that most steps are taken ------------


def _one_of(draw: Draw, choices: Iterable[T]) -> T:
    """Return one of ``choices``; refuse the step if there are none."""
    some = list(choices)
    if not some:
        raise ScheduleError("there is nothing to apply the step to")
    return draw(st.sampled_from(some))


def _stage(draw: Draw, s: Schedule) -> StageHandle:
    return _one_of(draw, s.stages)


def _hidden_stage(draw: Draw, s: Schedule) -> StageHandle:
    """Return a stage of which the caller does not see the storage."""
    outputs = {tensor.name for tensor in s.definition.outputs}
    return _one_of(draw, [stage for stage in s.stages if stage.name not in outputs])


def _nest(draw: Draw, s: Schedule) -> tuple[Loop, ...]:
    return _one_of(draw, [stage.loops for stage in s.stages if stage.loops])


def _loop(draw: Draw, s: Schedule) -> Loop:
    return _one_of(draw, _nest(draw, s))


def _serial_loop(draw: Draw, s: Schedule) -> Loop:
    return _one_of(draw, [loop for loop in _nest(draw, s) if loop.kind == "serial"])


def _loop_elsewhere(draw: Draw, s: Schedule, stage: StageHandle) -> Loop:
    """Return a loop that is not one of the stage's own."""
    own = set(stage.loops)
    loops = [loop for other in s.stages for loop in other.loops if loop not in own]
    return _one_of(draw, loops)


def _counted_loop(draw: Draw, s: Schedule) -> Loop:
    """Return a loop of constant extent: one that is there, or what splits off another."""
    nest = [loop for loop in _nest(draw, s) if loop.kind == "serial"]
    counted = [loop for loop in nest if loop.extent.isdigit()]
    if counted and draw(st.booleans()):
        return _one_of(draw, counted)
    # the innermost loops are those that usually become lanes
    loop = nest[-1] if nest and draw(st.booleans()) else _one_of(draw, nest)
    return s.split(loop, _factor(draw))[1]


def _reduction_loop(draw: Draw, s: Schedule) -> Loop:
    reduced = {axis.variable.name for stage in s.program.stages for axis in stage.reduction_axes}
    loops = [loop for stage in s.stages for loop in stage.loops]
    return _one_of(draw, [loop for loop in loops if loop.name.split(".")[0] in reduced])


def _factor(draw: Draw) -> int:
    return draw(st.sampled_from(FACTORS))


def _tensor(draw: Draw, s: Schedule) -> str:
    inputs = [tensor.name for tensor in s.definition.inputs]
    return _one_of(draw, inputs + [stage.name for stage in s.stages])


# --- the steps -----------------------------------------------------------------------------------


def _split(draw: Draw, s: Schedule) -> None:
    s.split(_serial_loop(draw, s), _factor(draw), tail=draw(st.sampled_from(_TAILS)))


def _tile(draw: Draw, s: Schedule) -> None:
    loops = _nest(draw, s)
    count = draw(st.integers(1, min(len(loops), 3)))
    first = draw(st.integers(0, len(loops) - count))
    s.tile(loops[first : first + count], [_factor(draw) for _ in range(count)])


def _fuse(draw: Draw, s: Schedule) -> None:
    loops = _nest(draw, s)
    first = draw(st.integers(0, max(len(loops) - 2, 0)))
    s.fuse(*loops[first : first + draw(st.integers(2, 3))])


def _reorder(draw: Draw, s: Schedule) -> None:
    s.reorder(*draw(st.permutations(_nest(draw, s))))


def _peel(draw: Draw, s: Schedule) -> None:
    """Peel a loop over blocks, of which the last one may stick out."""
    blocks = [loop for loop in _nest(draw, s) if loop.name.endswith(".o")]
    s.peel(_one_of(draw, blocks) if blocks else s.split(_serial_loop(draw, s), _factor(draw))[0])


def _compute_at(draw: Draw, s: Schedule) -> None:
    stage = _hidden_stage(draw, s)
    s.compute_at(stage, _loop_elsewhere(draw, s, stage))


def _reverse_compute_at(draw: Draw, s: Schedule) -> None:
    stage = _stage(draw, s)
    s.reverse_compute_at(stage, _loop_elsewhere(draw, s, stage))


def _cache_read(draw: Draw, s: Schedule) -> None:
    s.cache_read(_tensor(draw, s), at=_loop(draw, s), scope=draw(_SCOPES))


def _cache_write(draw: Draw, s: Schedule) -> None:
    stage = _stage(draw, s)
    s.cache_write(stage, at=_one_of(draw, stage.loops), scope=draw(_SCOPES))


def _rfactor(draw: Draw, s: Schedule) -> None:
    loop = _reduction_loop(draw, s)
    s.rfactor(s.split(loop, _factor(draw))[draw(st.integers(0, 1))])


def _layout(draw: Draw, s: Schedule) -> None:
    """Permute the axes of a buffer and split one of them."""
    stage = _hidden_stage(draw, s)
    rank = len(s.program.stages[[other.name for other in s.stages].index(stage.name)].axes)
    order = draw(st.permutations(range(rank)))
    axis, factor = _one_of(draw, range(rank)), _factor(draw)

    def place(*position: Any) -> tuple[Any, ...]:
        split = [
            (position[axis] // factor, position[axis] % factor) if number == axis else (at,)
            for number, at in enumerate(position)
        ]
        return tuple(part for number in order for part in split[number])

    s.layout(stage, place)


def _prefetch(draw: Draw, s: Schedule) -> None:
    s.prefetch(_tensor(draw, s), at=_loop(draw, s), ahead=draw(st.sampled_from((1, 2, 16))))


def _in_memory(draw: Draw, s: Schedule, name: str) -> None:
    """Change how a buffer lies in memory."""
    step = getattr(s, name)
    step(_hidden_stage(draw, s), draw(st.integers(0, 2)), draw(st.integers(1, 4)))


_SCOPES: st.SearchStrategy[Any] = st.sampled_from(["global", "local"])

STEPS: dict[str, Callable[[Draw, Schedule], object]] = {
    "split": _split,
    "tile": _tile,
    "fuse": _fuse,
    "reorder": _reorder,
    "peel": _peel,
    "parallel": lambda draw, s: s.parallel(_serial_loop(draw, s)),
    "vectorize": lambda draw, s: s.vectorize(_counted_loop(draw, s)),
    "unroll": lambda draw, s: s.unroll(_counted_loop(draw, s)),
    "compute_at": _compute_at,
    "compute_inline": lambda draw, s: s.compute_inline(_hidden_stage(draw, s)),
    "compute_root": lambda draw, s: s.compute_root(_hidden_stage(draw, s)),
    "reverse_compute_at": _reverse_compute_at,
    "cache_read": _cache_read,
    "cache_write": _cache_write,
    "layout": _layout,
    "pad_storage": lambda draw, s: _in_memory(draw, s, "pad_storage"),
    "swizzle": lambda draw, s: _in_memory(draw, s, "swizzle"),
    "storage_fold": lambda draw, s: _in_memory(draw, s, "storage_fold"),
    "reverse_compute_inline": lambda draw, s: s.reverse_compute_inline(_stage(draw, s)),
    "prefetch": _prefetch,
    "stream": lambda draw, s: s.stream(_stage(draw, s)),
    "rfactor": _rfactor,
    "decompose_reduction": lambda draw, s: s.decompose_reduction(_stage(draw, s), _loop(draw, s)),
}
"""A random step for each primitive; ``assume`` and exact tails restrict the sizes: left out."""
