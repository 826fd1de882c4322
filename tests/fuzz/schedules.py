"""Random schedules: any primitive with any arguments; what is refused is counted and skipped.

Input:  an operator, a ``Random``
Output: a schedule with up to a dozen accepted steps, and how often each primitive was accepted

A primitive may refuse; any other exception is a fault of the primitive.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

import tensorlang as tl
from tensorlang.ir.expr import loads_of
from tensorlang.ir.program import Alloc, For, Fused
from tensorlang.ir.walk import iterate
from tensorlang.schedule import resolve
from tensorlang.schedule.handles import Loop
from tensorlang.schedule.place_inits import reduction_variables
from tensorlang.schedule.primitives.compute_at import consumers_of
from tensorlang.schedule.tree import handle_of, loops_of, places_of

FACTORS = (1, 2, 3, 4, 5, 8)
TAILS = ("auto", "auto", "auto", "guard", "peel", "mask", "pad", "shift")
COPIES = 96  # how many copies of a statement unrolling and vectorising may make, all in all


@dataclass
class Drawn:
    """A schedule and the account of how it came about."""

    schedule: Any
    accepted: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    copies: int = 1


def draw_schedule(random: Random, operator: Any) -> Drawn:
    drawn = Drawn(tl.schedule(operator))
    wanted = random.choice([1, 2, 3, 4, 5, 6, 8, 12])
    if random.random() < 0.3:  # stages can be moved while their loops are as they were made
        for _ in range(2):
            move = random.choice([_compute_at, _compute_at, _reverse_compute_at])
            take(drawn, move.__name__[1:], lambda move=move: move(random, drawn))
    if random.random() < 0.25:
        _blocked(random, drawn)
    for _ in range(3 * wanted):
        if sum(drawn.accepted.values()) >= wanted:
            break
        name = random.choices(list(STEPS), [weight for weight, _ in STEPS.values()])[0]
        take(drawn, name, lambda name=name: STEPS[name][1](random, drawn))
    return drawn


def take(drawn: Drawn, name: str, step: Callable[[], object]) -> bool:
    """Try a step; a schedule whose step was refused must be as it was."""
    before = drawn.schedule.program
    try:
        step()
    except tl.ScheduleError:
        drawn.refused[name] += 1
        if drawn.schedule.program is not before:
            raise AssertionError(f"{name} was refused, but changed the schedule") from None
        return False
    if drawn.schedule.program is not before:
        drawn.accepted[name] += 1
    return True


def _blocked(random: Random, drawn: Drawn) -> None:
    """The usual tiling of one stage: split all loops, outer parts out, then choose kinds."""
    s = drawn.schedule
    stage = random.choice(s.stages)
    outers: list[Any] = []
    inners: list[Any] = []
    for loop in stage.loops:

        def split(loop: Any = loop) -> None:
            outer, inner = s.split(loop, random.choice(FACTORS), random.choice(TAILS))
            outers.append(outer)
            inners.append(inner)

        if not take(drawn, "split", split):
            outers.append(loop)
    if random.random() < 0.5:
        random.shuffle(outers)
        random.shuffle(inners)
    if len(outers) + len(inners) > 1:
        take(drawn, "reorder", lambda: s.reorder(*outers, *inners))
    for loop in random.sample(inners, min(len(inners), 2)):
        kind = random.choice(["unroll", "vectorize"])
        take(drawn, kind, lambda loop=loop, kind=kind: _set_kind(drawn, kind, loop))


# --- what to draw from ---------------------------------------------------------------------------


def _loops(drawn: Drawn) -> list[Any]:
    return list(loops_of(drawn.schedule.program.body))


def _loop(random: Random, drawn: Drawn) -> Any:
    found = _loops(drawn)
    if not found:
        raise tl.ScheduleError("no loops")
    return Loop(drawn.schedule, handle_of(random.choice(found)))


def _chain(random: Random, drawn: Drawn) -> list[Any]:
    """Perfectly nested loops, from a random one on."""
    found = _loops(drawn)
    if not found:
        raise tl.ScheduleError("no loops")
    stmt = random.choice(found)
    chain = []
    while isinstance(stmt, For | Fused):
        chain.append(Loop(drawn.schedule, handle_of(stmt)))
        stmt = stmt.body
    return chain


def _stage(random: Random, drawn: Drawn) -> str:
    return random.choice(list(resolve.stage_labels(drawn.schedule.program)))


def _tensor(random: Random, drawn: Drawn) -> str:
    inputs = [tensor.name for tensor in drawn.schedule.definition.inputs]
    return random.choice([*inputs, _stage(random, drawn)])


def _scope(random: Random) -> Any:
    return random.choice(["global", "local", "local"])


def _at_or_none(random: Random, drawn: Drawn) -> Any:
    return None if random.random() < 0.15 else _loop(random, drawn)


# --- the steps -----------------------------------------------------------------------------------


def _split(random: Random, drawn: Drawn) -> None:
    tail: Any = "exact" if random.random() < 0.02 else random.choice(TAILS)
    drawn.schedule.split(_loop(random, drawn), random.choice(FACTORS), tail)


def _tile(random: Random, drawn: Drawn) -> None:
    loops = _chain(random, drawn)[:2]
    drawn.schedule.tile(loops, [random.choice(FACTORS) for _ in loops], random.choice(TAILS))


def _reorder(random: Random, drawn: Drawn) -> None:
    loops = _chain(random, drawn)
    random.shuffle(loops)
    if len(loops) > 2 and random.random() < 0.3:
        loops = loops[:2]
    drawn.schedule.reorder(*loops)


def _fuse(random: Random, drawn: Drawn) -> None:
    drawn.schedule.fuse(*_chain(random, drawn)[: random.choice([2, 2, 3])])


def _set_kind(drawn: Drawn, kind: str, loop: Any) -> None:
    """Unroll or vectorise, but keep the code small enough to compile at once."""
    extent = loop.extent
    copies = int(extent) if extent.isdigit() else 1
    if kind != "parallel" and drawn.copies * max(1, copies) > COPIES:
        raise tl.ScheduleError("too much code")
    before = drawn.schedule.program
    getattr(drawn.schedule, kind)(loop)
    if kind != "parallel" and drawn.schedule.program is not before:
        drawn.copies *= max(1, copies)


def _parallel(random: Random, drawn: Drawn) -> None:
    _set_kind(drawn, "parallel", _loop(random, drawn))


def _vectorize(random: Random, drawn: Drawn) -> None:
    _short(random, drawn, "vectorize")


def _unroll(random: Random, drawn: Drawn) -> None:
    if random.random() < 0.2 and drawn.copies * 4 <= COPIES:
        drawn.schedule.unroll(_loop(random, drawn), factor=random.choice([2, 3, 4]))
        drawn.copies *= 4
        return
    _short(random, drawn, "unroll")


def _short(random: Random, drawn: Drawn, kind: str) -> None:
    """Choose a kind for a loop of constant extent, if there is one."""
    constant = [loop for loop in _loops(drawn) if isinstance(loop, For) and loop.extent.is_constant]
    if constant and random.random() < 0.95:
        _set_kind(drawn, kind, Loop(drawn.schedule, handle_of(random.choice(constant))))
    else:
        _set_kind(drawn, kind, _loop(random, drawn))


def _cache_read(random: Random, drawn: Drawn) -> None:
    at = _at_or_none(random, drawn)
    places = list(places_of(drawn.schedule.program.body))
    if isinstance(at, Loop):
        places = [p for p in places if any(handle_of(loop) is at.variable for loop in p.loops)]
    read = [
        place.compute.redirect(load.tensor).name
        for place in places
        for load in loads_of(*place.compute.stage.values)
    ]
    tensor = random.choice(read) if read and random.random() < 0.9 else _tensor(random, drawn)
    drawn.schedule.cache_read(tensor, at=at, scope=_scope(random))


def _cache_write(random: Random, drawn: Drawn) -> None:
    at = _loop(random, drawn)
    drawn.schedule.cache_write(_stage(random, drawn), at=at, scope=_scope(random))


def _layout(random: Random, drawn: Drawn) -> None:
    program = drawn.schedule.program
    owned = [stmt.tensor for stmt in iterate(program.body) if isinstance(stmt, Alloc)]
    if not owned:
        raise tl.ScheduleError("nothing is owned")
    tensor = random.choice(owned)
    maps: dict[int, list[Any]] = {
        1: [lambda i: (i // 4, i % 4), lambda i: 2 * i, lambda i: i + 1, lambda i: i // 2],
        2: [
            lambda i, j: (j, i),
            lambda i, j: (i // 2, j, i % 2),
            lambda i, j: (i, j // 4, j % 4),
            lambda i, j: (j // 4, i, j % 4),
            lambda i, j: (i, i + j),
            lambda i, j: i + j,
        ],
        3: [lambda i, j, k: (k, i, j), lambda i, j, k: (i, k // 2, j, k % 2)],
    }
    rank = len(tensor.shape)
    drawn.schedule.layout(tensor.name, random.choice(maps.get(rank, [lambda *p: p])))


def _compute_at(random: Random, drawn: Drawn) -> None:
    """Move a stage into a loop around those that read it, or anywhere."""
    program = drawn.schedule.program
    stages = [
        s
        for s in program.stages
        if s.copies is None and consumers_of(program, s) and not _is_output(drawn, s)
    ]
    if not stages or random.random() < 0.1:
        drawn.schedule.compute_at(_stage(random, drawn), _loop(random, drawn))
        return
    stage = random.choice(stages)
    around = [
        loop
        for loop in _loops(drawn)
        if all(loop in place.loops for place in consumers_of(program, stage))
    ]
    if not around:
        raise tl.ScheduleError("no loop holds all that read it")
    loop = Loop(drawn.schedule, handle_of(random.choice(around)))
    drawn.schedule.compute_at(_label(drawn, stage), loop)


def _reverse_compute_at(random: Random, drawn: Drawn) -> None:
    """Move a stage into a loop of one that it reads, or anywhere."""
    program = drawn.schedule.program
    pairs = [
        (place.compute.stage, stage)
        for stage in program.stages
        if stage.copies is None
        for place in consumers_of(program, stage)
        if place.compute.stage.copies is None and not place.compute.stage.is_reduction
    ]
    if not pairs or random.random() < 0.1:
        drawn.schedule.reverse_compute_at(_stage(random, drawn), _loop(random, drawn))
        return
    reader, stage = random.choice(pairs)
    loops = [loop for p in places_of(program.body) if p.compute.stage is stage for loop in p.loops]
    if not loops:
        raise tl.ScheduleError("it has no loops")
    loop = Loop(drawn.schedule, handle_of(random.choice(loops)))
    drawn.schedule.reverse_compute_at(_label(drawn, reader), loop)


def _compute_inline(random: Random, drawn: Drawn) -> None:
    inner = [s for s in drawn.schedule.program.stages if not _is_output(drawn, s)]
    plain = [s for s in inner if not s.is_reduction and not s.is_recurrence and s.copies is None]
    found = random.choice(plain) if plain and random.random() < 0.9 else None
    drawn.schedule.compute_inline(_label(drawn, found) if found else _stage(random, drawn))


def _is_output(drawn: Drawn, stage: Any) -> bool:
    return any(tensor in drawn.schedule.definition.outputs for tensor in stage.tensors)


def _label(drawn: Drawn, stage: Any) -> str:
    labels = resolve.stage_labels(drawn.schedule.program)
    return next(label for label, known in labels.items() if known is stage)


def _rfactor(random: Random, drawn: Drawn) -> None:
    """Split up a loop of a reduction, or any."""
    moving = [
        loop
        for place in places_of(drawn.schedule.program.body)
        for loop in place.loops
        if isinstance(loop, For) and loop.variable in reduction_variables(place.compute)
    ]
    if not moving or random.random() < 0.1:
        drawn.schedule.rfactor(_loop(random, drawn))
    else:
        drawn.schedule.rfactor(Loop(drawn.schedule, random.choice(moving).variable))


def _peel(random: Random, drawn: Drawn) -> None:
    outer = [loop for loop in _loops(drawn) if handle_of(loop).name.endswith(".o")]
    found = random.choice(outer) if outer else random.choice(_loops(drawn) or [None])
    if found is None:
        raise tl.ScheduleError("no loops")
    drawn.schedule.peel(Loop(drawn.schedule, handle_of(found)))


def _decompose(random: Random, drawn: Drawn) -> None:
    drawn.schedule.decompose_reduction(_stage(random, drawn), _loop(random, drawn))


def _prefetch(random: Random, drawn: Drawn) -> None:
    """Ask for what a loop reads, or for any tensor."""
    chain = _chain(random, drawn)
    at, along = random.choice(chain), random.choice([None, *chain])
    ahead = random.choice([1, 1, 2, 16])
    drawn.schedule.prefetch(_tensor(random, drawn), at=at, ahead=ahead, along=along)


def _memory(random: Random, drawn: Drawn) -> None:
    """Change how a buffer lies in memory."""
    step = getattr(drawn.schedule, random.choice(["pad_storage", "swizzle", "storage_fold"]))
    step(_stage(random, drawn), random.randint(0, 2), random.randint(1, 4))


def _assume(random: Random, drawn: Drawn) -> None:
    sizes = drawn.schedule.definition.sizes
    if not sizes:
        raise tl.ScheduleError("no sizes")
    size = random.choice(sizes).name
    drawn.schedule.assume(random.choice([f"{size} % 2 == 0", f"{size} >= 2", f"{size} >= 1"]))


def _undo(random: Random, drawn: Drawn) -> None:
    if random.random() < 0.5:
        drawn.schedule = drawn.schedule.fork()
    drawn.schedule.undo()


STEPS: dict[str, tuple[float, Callable[[Random, Drawn], None]]] = {
    "split": (16, _split),
    "tile": (4, _tile),
    "reorder": (10, _reorder),
    "fuse": (6, _fuse),
    "peel": (4, _peel),
    "parallel": (7, _parallel),
    "vectorize": (9, _vectorize),
    "unroll": (7, _unroll),
    "compute_at": (9, _compute_at),
    "compute_inline": (4, _compute_inline),
    "compute_root": (2, lambda random, drawn: drawn.schedule.compute_root(_stage(random, drawn))),
    "reverse_compute_at": (5, _reverse_compute_at),
    "cache_read": (9, _cache_read),
    "cache_write": (9, _cache_write),
    "layout": (5, _layout),
    "rfactor": (7, _rfactor),
    "decompose_reduction": (3, _decompose),
    "prefetch": (3, _prefetch),
    "memory": (6, _memory),
    "reverse_compute_inline": (
        3, lambda random, drawn: drawn.schedule.reverse_compute_inline(_stage(random, drawn))
    ),
    "stream": (2, lambda random, drawn: drawn.schedule.stream(_stage(random, drawn))),
    "assume": (0.7, _assume),
    "annotate": (
        0.5, lambda random, drawn: drawn.schedule.annotate(_loop(random, drawn), hint=1)
    ),
    "undo": (2, _undo),
}  # fmt: skip
"""The primitives, with how often each is drawn."""
