"""Which loops can run how: what parallel, vectorize and unroll have in common."""

from __future__ import annotations

from dataclasses import replace

from tensorlang.ir.affine import Var
from tensorlang.ir.program import LoopKind, Program
from tensorlang.schedule.primitives.base import Outcome, the_loop
from tensorlang.schedule.refusal import Refusal
from tensorlang.schedule.resolve import shortest_path
from tensorlang.schedule.tree import replace_loop


def with_kind(program: Program, handle: Var, kind: LoopKind) -> Outcome:
    """Return the program with the kind of one loop changed."""
    body = replace_loop(program.body, handle, lambda loop: replace(loop, kind=kind))
    return Outcome(replace(program, body=body))


def require_constant_extent(program: Program, handle: Var, step: str, factor: int) -> int:
    """Return the number of iterations of a loop; refuse one whose extent is symbolic."""
    from tensorlang.ir.program import For

    loop = the_loop(program, handle)
    if isinstance(loop, For) and loop.extent.is_constant:
        return loop.extent.constant
    extent = loop.extent if isinstance(loop, For) else f"({', '.join(map(str, loop.extents))})"
    path = shortest_path(program, handle)
    raise Refusal(
        f"{step} needs a constant number of iterations, and {handle} has {extent}",
        f'split first: outer, inner = s.split("{path}", {factor}); s.{step}(inner)',
        loops=(handle,),
    )
