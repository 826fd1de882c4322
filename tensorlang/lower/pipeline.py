"""The passes, in order: from a scheduled program to flat loops.

Input:  the program of a schedule (loops around instances of stages, tails as guards)
Output: a ``LoweredProgram`` (loops, conditions and stores to flat buffers)

Each pass is one file and one line here, takes and returns a program that the interpreter runs, and
changes one thing. ``lowering_steps`` yields the program after each, which is how a wrong result is
traced to the pass that made it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from tensorlang.ir.definition import Tensor
from tensorlang.ir.lowered import LoweredProgram
from tensorlang.ir.program import Program
from tensorlang.lower.bound_loops import bound_loops
from tensorlang.lower.buffers import ArrayLayout
from tensorlang.lower.flatten import flatten
from tensorlang.lower.fold import fold
from tensorlang.lower.hoist_storage import hoist_storage
from tensorlang.lower.lower_fused import lower_fused
from tensorlang.lower.match_vector_widths import match_vector_widths
from tensorlang.lower.merge_parallel import merge_parallel
from tensorlang.lower.peel_tails import peel_tails
from tensorlang.lower.place_conditions import place_conditions
from tensorlang.lower.run_private_tails import run_private_tails
from tensorlang.lower.simplify_guards import simplify_guards
from tensorlang.lower.simplify_indices import simplify_indices
from tensorlang.lower.sink_vectors import sink_vectors
from tensorlang.lower.unroll import unroll
from tensorlang.lower.unroll_registers import unroll_registers
from tensorlang.lower.vectorize_copies import vectorize_copies
from tensorlang.lower.version_tiles import version_tiles
from tensorlang.schedule.place_barriers import place_barriers
from tensorlang.schedule.place_inits import place_inits


@dataclass(frozen=True, slots=True)
class ScheduledPass:
    """A pass over scheduled programs."""

    name: str
    run: Callable[[Program], Program]


@dataclass(frozen=True, slots=True)
class LoweredPass:
    """A pass over lowered programs."""

    name: str
    run: Callable[[LoweredProgram], LoweredProgram]


SCHEDULED_PASSES: tuple[ScheduledPass, ...] = (
    ScheduledPass("place_inits", place_inits),
    ScheduledPass("place_barriers", place_barriers),
    ScheduledPass("vectorize_copies", vectorize_copies),
    ScheduledPass("match_vector_widths", match_vector_widths),
    ScheduledPass("unroll_registers", unroll_registers),
    ScheduledPass("merge_parallel", merge_parallel),
    ScheduledPass("simplify_guards", simplify_guards),
    ScheduledPass("peel_tails", peel_tails),
    ScheduledPass("bound_loops", bound_loops),
    ScheduledPass("version_tiles", version_tiles),
    ScheduledPass("run_private_tails", run_private_tails),
    ScheduledPass("lower_fused", lower_fused),
)

LOWERED_PASSES: tuple[LoweredPass, ...] = (
    LoweredPass("place_conditions", place_conditions),
    LoweredPass("simplify_indices", simplify_indices),
    LoweredPass("sink_vectors", sink_vectors),
    LoweredPass("unroll", unroll),
    LoweredPass("hoist_storage", hoist_storage),
    LoweredPass("fold", fold),
)


def lower(
    program: Program,
    layouts: Mapping[Tensor, ArrayLayout] | None = None,
    *,
    check_bounds: bool = True,
) -> LoweredProgram:
    """Return ``program`` as flat loops.

    ``layouts`` says how arrays of the caller lie in memory ("contiguous", which is the default,
    "inner": unit stride along the last axis, "any"); their strides become further sizes, named
    ``A.stride0``. With ``check_bounds``, an index that depends on data is checked when it is used.
    Raises CompileError for storage in registers that has no constant size and for unrolled loops
    without a constant extent.
    """
    lowered = None
    for _, state in lowering_steps(program, layouts, check_bounds=check_bounds):
        lowered = state
    assert isinstance(lowered, LoweredProgram)
    return lowered


def lowering_steps(
    program: Program,
    layouts: Mapping[Tensor, ArrayLayout] | None = None,
    *,
    check_bounds: bool = True,
) -> Iterator[tuple[str, Program | LoweredProgram]]:
    """Yield the name of each pass and the program after it."""
    for scheduled in SCHEDULED_PASSES:
        program = scheduled.run(program)
        yield scheduled.name, program
    lowered = flatten(program, layouts or {}, check_bounds=check_bounds)
    yield "flatten", lowered
    for step in LOWERED_PASSES:
        lowered = step.run(lowered)
        yield step.name, lowered
