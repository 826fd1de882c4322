"""Random steps of a schedule, most of them plausible.

A step is a method's name with its arguments, everything named by text, so that it can be printed,
taken by a ``Schedule``, or turned into a primitive that is applied without its check.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

import tensorlang as tl
from tensorlang.schedule import resolve
from tensorlang.schedule.tree import find_loop, handle_of, places_of

FACTORS = (1, 2, 3, 4, 5, 8, 16)
TAILS = ("auto", "auto", "auto", "auto", "guard", "peel", "mask", "pad", "exact", "shift")


@dataclass(frozen=True)
class Call:
    """A step that may be taken."""

    name: str
    arguments: tuple[Any, ...]
    keywords: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        given = [repr(argument) for argument in self.arguments]
        given += [f"{key}={value!r}" for key, value in self.keywords.items()]
        return f"s.{self.name}({', '.join(given)})"

    def take(self, schedule: tl.Schedule) -> Any:
        arguments = [_layout(a) if self.name == "layout" else a for a in self.arguments]
        return getattr(schedule, self.name)(*arguments, **self.keywords)


LAYOUTS = {
    "reversed": lambda *p: tuple(reversed(p)),
    "panels": lambda *p: (p[-1] // 4, *p[:-1], p[-1] % 4),
    "shifted": lambda *p: tuple(x + 1 for x in p),
    "flattened": lambda *p: (sum(p),),
    "halved": lambda *p: (*p[:-1], p[len(p) - 1] // 2),
    "doubled": lambda *p: (*p[:-1], p[-1] * 2),
}


def _layout(argument: Any) -> Any:
    return LAYOUTS.get(argument, argument)


WEIGHTS = {
    "split": 6, "reorder": 5, "fuse": 3, "tile": 2, "peel": 2, "parallel": 2, "vectorize": 2,
    "unroll": 2, "compute_at": 4, "compute_inline": 1, "compute_root": 1, "reverse_compute_at": 2,
    "cache_read": 2, "cache_write": 3, "layout": 1, "rfactor": 3, "decompose_reduction": 1,
    "assume": 1, "annotate": 1, "prefetch": 1, "stream": 1,
    "pad_storage": 1, "swizzle": 1, "storage_fold": 2, "reverse_compute_inline": 1,
}  # fmt: skip


MOVES = ("compute_at", "reverse_compute_at", "compute_inline", "rfactor")


def random_call(schedule: tl.Schedule, random: Random, names: tuple[str, ...] = ()) -> Call | None:
    """Return a step; None where the drawn primitive has nothing to be applied to."""
    names = names or tuple(WEIGHTS)
    weights = [WEIGHTS[name] for name in names]
    if len(schedule.trace) < 3 and len(schedule.stages) > 1:  # before the loops are scheduled
        weights = [WEIGHTS[name] * (5 if name in MOVES else 1) for name in names]
    name = random.choices(names, weights)[0]
    loops = list(resolve.loop_paths(schedule.program))
    stages = list(resolve.stage_labels(schedule.program))
    if not loops:
        return None
    match name:
        case "split":
            keywords = {} if (tail := random.choice(TAILS)) == "auto" else {"tail": tail}
            return Call(name, (random.choice(loops), random.choice(FACTORS)), keywords)
        case "tile":
            chain = random_chain(schedule, random)[:3]
            sizes = [random.choice(FACTORS) for _ in chain]
            return Call(name, (chain, sizes))
        case "reorder":
            chain = random_chain(schedule, random)
            chosen = random.sample(chain, random.randint(1, len(chain)))
            if random.random() < 0.1:
                chosen = random.sample(loops, min(len(loops), 2))
            return Call(name, tuple(chosen))
        case "fuse":
            chain = random_chain(schedule, random)
            if len(chain) < 2:
                return None
            start = random.randrange(len(chain) - 1)
            return Call(name, tuple(chain[start : start + random.choice((2, 2, 3))]))
        case "peel" | "parallel" | "vectorize" | "rfactor":
            return Call(name, (random.choice(loops),))
        case "unroll":
            factor = random.choice((None, 2, 3))
            return Call(name, (random.choice(loops),), {} if factor is None else {"factor": factor})
        case "pad_storage" | "swizzle" | "storage_fold":
            return Call(name, (random.choice(stages), random.randint(0, 2), random.randint(1, 4)))
        case "compute_inline" | "compute_root" | "reverse_compute_inline":
            return Call(name, (random.choice(stages),))
        case "compute_at" | "reverse_compute_at" | "decompose_reduction":
            return Call(name, (random.choice(stages), random.choice(loops)))
        case "cache_write":
            scope = random.choice(("global", "global", "local"))
            loop = random.choice(loops)
            if random.random() < 0.7:
                found = find_loop(schedule.program.body, resolve.loop_paths(schedule.program)[loop])
                inside = [p.compute.stage for p in places_of(found)]
                labels = {id(s): n for n, s in resolve.stage_labels(schedule.program).items()}
                return Call(
                    name, (labels[id(random.choice(inside))],), {"at": loop, "scope": scope}
                )
            return Call(name, (random.choice(stages),), {"at": loop, "scope": scope})
        case "cache_read":
            tensors = [t.name for t in schedule.definition.inputs] + stages
            keywords: dict[str, Any] = {}
            if random.random() < 0.9:
                keywords["at"] = random.choice(loops)
            if random.random() < 0.3:
                keywords["scope"] = random.choice(("local", "shared"))
            return Call(name, (random.choice(tensors),), keywords)
        case "prefetch":
            tensors = [t.name for t in schedule.definition.inputs] + stages
            chain = random_chain(schedule, random)
            keywords = {"at": chain[-1], "ahead": random.choice((1, 1, 2, 9))}
            if random.random() < 0.3:
                keywords["along"] = random.choice(chain)
            return Call(name, (random.choice(tensors),), keywords)
        case "stream":
            return Call(name, (random.choice(stages),))
        case "layout":
            return Call(name, (random.choice(stages), random.choice(list(LAYOUTS))))
        case "assume":
            sizes = [size.name for size in schedule.definition.sizes]
            if not sizes:
                return None
            return Call(name, (f"{random.choice(sizes)} % {random.choice(FACTORS)} == 0",))
        case _:
            return Call(name, (random.choice(loops),), {"hint": random.choice(FACTORS)})


def random_chain(schedule: tl.Schedule, random: Random) -> list[str]:
    """Return the paths of perfectly nested loops, outermost first, beginning anywhere."""
    paths = {variable: path for path, variable in resolve.loop_paths(schedule.program).items()}
    current: Any = find_loop(schedule.program.body, random.choice(list(paths)))
    chain: list[str] = []
    while current is not None:
        chain.append(paths[handle_of(current)])
        below = current.body
        current = below if hasattr(below, "kind") else None
    return chain
