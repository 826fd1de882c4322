"""reorder: perfectly nested loops change places.

Before                      After ``reorder(k, i)``
::

    for i in M:                 for k in K:
        for k in K:                 for i in M:
            C[i] += A[i, k]             C[i] += A[i, k]

The places that the given loops held are filled in the new order; loops between them stay. Legal
where each element is computed from others than the loops carry: always for a map, for a reduction
because its combiner is associative and commutative; otherwise the resulting program is proved.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tensorlang.ir.affine import Affine, Min, Var, variables_of
from tensorlang.ir.expr import loads_of
from tensorlang.ir.program import For, Fused, Program, Stmt
from tensorlang.ir.walk import loop_variables
from tensorlang.schedule.legality import require_proof
from tensorlang.schedule.primitives.base import (
    Outcome,
    enclosing_loops,
    obstacle,
    require_no_pieces,
    the_loop,
)
from tensorlang.schedule.refusal import Refusal
from tensorlang.schedule.resolve import loop_paths
from tensorlang.schedule.tree import Loop, handle_of, loops_of, places_of, replace_loop


@dataclass(frozen=True, slots=True)
class Reorder:
    """Give ``loops`` the given order, outermost first."""

    loops: tuple[Var, ...]

    def check(self, program: Program) -> None:
        """Refuse loops that are not perfectly nested, and an order that a dependence forbids."""
        if not self.loops:
            raise Refusal("no loops are given", 's.reorder("k", "i", "j"), outermost first')
        if len(set(self.loops)) != len(self.loops):
            twice = next(v for v in self.loops if self.loops.count(v) > 1)
            raise Refusal(f"{twice} is named twice", "each loop once", loops=(twice,))
        chain = self._chain(program)
        self._check_extents(chain)
        if not self._is_plainly_legal(chain):
            require_proof(
                self.apply(program).program,
                f"the order {', '.join(map(str, self.loops))} breaks a dependence",
                "keep the loops that carry the dependence in their order",
                *self.loops,
            )

    def apply(self, program: Program) -> Outcome:
        """Return the program with the loops in their new places."""
        chain = self._chain(program)
        rebuilt = self._rebuilt(chain, chain[-1].body)
        top = handle_of(chain[0])
        return Outcome(replace(program, body=replace_loop(program.body, top, lambda _: rebuilt)))

    def _chain(self, program: Program) -> list[Loop]:
        """Return the perfectly nested loops from the outermost given one to the innermost."""
        depth = {v: len(enclosing_loops(program.body, v)) for v in self.loops}
        top = min(self.loops, key=lambda v: depth[v])
        missing = set(self.loops)
        chain: list[Loop] = []
        current: Stmt = the_loop(program, top)
        while missing:
            if not isinstance(current, For | Fused):
                self._require_one_nest(program, top, missing)
                below = chain[-1]
                raise Refusal(
                    f"{', '.join(sorted(map(str, missing)))} and {top} are not perfectly nested "
                    f"({obstacle(current)} below {handle_of(below)})",
                    "reorder before stages or copies are placed between the loops",
                    loops=self.loops,
                )
            chain.append(current)
            missing.discard(handle_of(current))
            current = current.body
        return chain

    def _require_one_nest(self, program: Program, top: Var, missing: set[Var]) -> None:
        inside = {handle_of(loop) for loop in loops_of(the_loop(program, top))}
        apart = sorted(missing - inside, key=self.loops.index)
        if apart:
            paths = {handle: path for path, handle in loop_paths(program).items()}
            raise Refusal(
                f"{paths[apart[0]]} does not stand inside {paths[top]}, nor around it",
                "loops of one nest; compute_at and reverse_compute_at move a stage into another's",
                loops=(top, apart[0]),
            )

    def _rebuilt(self, chain: list[Loop], body: Stmt) -> Stmt:
        by_handle = {handle_of(loop): loop for loop in chain}
        order = iter(self.loops)
        new = [by_handle[next(order)] if handle_of(loop) in self.loops else loop for loop in chain]
        for loop in reversed(new):
            body = replace(loop, body=body)
        return body

    def _check_extents(self, chain: list[Loop]) -> None:
        order = iter(self.loops)
        by_handle = {handle_of(loop): loop for loop in chain}
        new = [by_handle[next(order)] if handle_of(x) in self.loops else x for x in chain]
        seen: set[Var] = set()
        own = {v for loop in chain for v in loop_variables(loop)}
        for position, loop in enumerate(new):
            extents = (loop.extent,) if isinstance(loop, For) else loop.extents
            needed = {v for extent in extents for v in variables_of(extent)} & own
            if not needed <= seen:
                raise Refusal(
                    f"the extent of {handle_of(loop)} depends on {', '.join(map(str, needed))}",
                    "keep the loop inside those that its extent depends on",
                    loops=self.loops,
                )
            if isinstance(loop, Fused) and loop.run is not None:
                around = new[position - 1] if position else None
                if around is None or handle_of(around) is not loop.run.chunk:
                    raise Refusal(
                        f"{loop.handle} is a piece of a fused loop, and only {loop.run.chunk} may "
                        "stand directly around it",
                        "fix the sizes (tl.schedule(op, N=1024)), or split before fusing",
                        loops=self.loops,
                    )
            seen.update(loop_variables(loop))
        piece = chain[-1].body  # below the last given loop, so that it stays where it is
        run = piece.run if isinstance(piece, Fused) else None
        if run is not None and handle_of(new[-1]) is not run.chunk:
            require_no_pieces(chain[-1], "reorder")

    def _is_plainly_legal(self, chain: list[Loop]) -> bool:
        inner = chain[0]
        places = list(places_of(inner))
        shared = {
            id(place.compute.redirect(tensor))
            for place in places
            for tensor in place.compute.stage.tensors
            if not place.is_private(place.compute.redirect(tensor))
        }
        concurrent = any(loop.kind not in ("serial", "unrolled") for loop in loops_of(inner))
        for place in places:
            compute = place.compute
            if concurrent and any(_may_repeat(form) for form in compute.binding):
                return False  # what ran one after the other may run at once
            if compute.part != "whole" and compute.part != "update":
                return False
            combiner = compute.stage.combiner
            if compute.part == "update" or (combiner is not None and combiner.ordered):
                return False
            for load in loads_of(*compute.stage.values):
                if id(compute.redirect(load.tensor)) in shared:
                    return False
        return True


def _may_repeat(form: Affine) -> bool:
    """Tell whether an index may have one value in several iterations, as shifted tiles have."""
    return any(isinstance(atom, Min) for atom, _ in form.terms)
