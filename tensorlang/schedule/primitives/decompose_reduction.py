"""decompose_reduction: the init of a reduction becomes a nest of its own, right before a loop.

Before                              After ``decompose_reduction(C, k)``
::

    for i in M:                         for i in M:
        for k in K:                         C[i] = 0
            C[i] += A[i, k]                 for k in K:
                                                C[i] += A[i, k]

What is implied becomes visible, to be scheduled by itself. Legal at any loop around the reduction
that lies outside (or is the outermost of) the reduction loops.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tensorlang.ir.affine import Var
from tensorlang.ir.definition import Stage
from tensorlang.ir.program import Compute, For, Fused, Program, Stmt
from tensorlang.ir.walk import rewrite, sequence
from tensorlang.schedule.place_inits import (
    depth_of_place,
    init_nest,
    outer_target,
    reduction_variables,
)
from tensorlang.schedule.primitives.base import Outcome
from tensorlang.schedule.refusal import Refusal
from tensorlang.schedule.tree import Place, handle_of, places_of, replace_stmt


@dataclass(frozen=True, slots=True)
class DecomposeReduction:
    """Place the init of ``stage`` right before ``loop``."""

    stage: Stage
    loop: Var

    def check(self, program: Program) -> None:
        """Refuse maps, decomposed reductions, and loops inside the reduction."""
        if not self.stage.is_reduction:
            raise Refusal(f"{self.stage.name} is no reduction", "a stage that reduces")
        place = the_place(program, self.stage, "decompose_reduction")
        depth = self._depth(place)
        if depth is None:
            raise Refusal(
                f"{self.loop} is no loop around {self.stage.name}",
                "one of the stage's loops",
                loops=(self.loop,),
            )
        if depth > depth_of_place(place.ancestors, reduction_variables(place.compute)):
            raise Refusal(
                f"an init right before {self.loop} would run again in the middle of the reduction",
                "the outermost reduction loop, or a loop around it",
                loops=(self.loop,),
            )

        for tensor in map(place.compute.redirect, self.stage.tensors):
            if outer_target(tensor, place.ancestors[depth:]) is None:
                raise Refusal(
                    f"{tensor} is allocated inside {self.loop}, and an init before the loop could "
                    "not reach it",
                    "a loop inside the storage that is accumulated in",
                    loops=(self.loop,),
                )

    def apply(self, program: Program) -> Outcome:
        """Return the program with the init placed."""
        place = the_place(program, self.stage, "decompose_reduction")
        depth = self._depth(place)
        assert depth is not None
        return Outcome(decomposed(program, place, depth))

    def _depth(self, place: Place) -> int | None:
        for depth, stmt in enumerate(place.ancestors):
            if isinstance(stmt, For | Fused) and handle_of(stmt) is self.loop:
                return depth
        return None


def the_place(program: Program, stage: Stage, step: str) -> Place:
    """Return the only instance of a reduction that is still whole; refuse others."""
    places = [place for place in places_of(program.body) if place.compute.stage is stage]
    if len(places) != 1 or places[0].compute.part != "whole":
        raise Refusal(
            f"the reduction {stage.name} has been decomposed already",
            f"{step} before decompose_reduction and peel",
        )
    return places[0]


def decomposed(program: Program, place: Place, depth: int) -> Program:
    """Return the program with the init of ``place`` right before its ancestor at ``depth``."""
    init = init_nest(place.compute, place.ancestors[depth:])
    target: Stmt = place.ancestors[depth] if depth < len(place.ancestors) else place.compute

    def as_update(stmt: Stmt) -> Stmt:
        if isinstance(stmt, Compute) and stmt is place.compute:
            return replace(stmt, part="update")
        return stmt

    updated = rewrite(target, as_update)
    return replace(program, body=replace_stmt(program.body, target, sequence(init, updated)))
