"""peel: the last iterations of a loop, where guards may fail, become a loop of their own.

Before                              After ``peel(i.o)``
::

    for i.o in (M + 5) // 6:            for i.o in M // 6:
        for i.i in 6:                       for i.i in 6:
            C[...] = ...  # if ... < M          C[...] = ...
                                        for i.o.rest in (M + 5) // 6 - M // 6:
                                            for i.i in 6:
                                                C[...] = ...  # if ... < M

The instances and their order stay, so it is always legal; the main part runs without guards.
Returns (main, rest). The init of a reduction that the loop carries is placed before both.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tensorlang.ir.affine import Affine, FloorDiv, Var, affine, linear_coefficient, substitute
from tensorlang.ir.interval import bounds, is_nonnegative
from tensorlang.ir.program import Alloc, For, Fused, Program, Stmt
from tensorlang.ir.walk import iterate, map_children, sequence, substitute_in_stmt
from tensorlang.schedule.guards import without_known
from tensorlang.schedule.legality import carries_reduction, require_proof
from tensorlang.schedule.place_inits import depth_of_place, reduction_variables
from tensorlang.schedule.primitives.base import (
    Outcome,
    extents_around,
    require_plain,
    require_serial,
    the_loop,
)
from tensorlang.schedule.primitives.decompose_reduction import decomposed
from tensorlang.schedule.refusal import Refusal
from tensorlang.schedule.tree import Place, places_of, replace_loop


@dataclass(frozen=True, slots=True)
class Peel:
    """Run the iterations of ``loop`` whose guards always hold apart from the rest."""

    loop: Var

    def check(self, program: Program) -> None:
        """Refuse loops without a tail, with several different tails, or with storage inside."""
        loop = require_plain(the_loop(program, self.loop), "peel")
        require_serial(loop, "peel")
        for stmt in iterate(loop.body):
            if isinstance(stmt, Alloc | Fused):
                what = (
                    f"{stmt.tensor} is allocated" if isinstance(stmt, Alloc) else "a loop is fused"
                )
                raise Refusal(
                    f"{what} inside {self.loop}",
                    "peel before compute_at, cache_read, cache_write and fuse",
                    loops=(self.loop,),
                )
        counts = self._full_counts(loop)
        if not counts:
            raise Refusal(
                f"no guard depends on {self.loop}: it has no tail",
                "the outer loop of a split whose factor does not divide the extent",
                loops=(self.loop,),
            )
        if len(counts) > 1:
            raise Refusal(
                f"several tails meet in {self.loop}: full iterations end at "
                f"{' or '.join(map(str, sorted(counts, key=str)))}",
                "peel the outer loop of each split by itself",
                loops=(self.loop,),
            )
        (count,) = counts
        if not _is_within(count, loop.extent):
            require_proof(
                self.apply(program).program,
                f"the full iterations of {self.loop} cannot be counted",
                "peel the outer loop of a split before either of its loops is split again",
                self.loop,
            )

    def apply(self, program: Program) -> Outcome:
        """Return the program with the main loop and the rest one after the other."""
        if carries_reduction(the_loop(program, self.loop)):
            program = _with_inits(program, self.loop)
        loop = the_loop(program, self.loop)
        assert isinstance(loop, For)
        (count,) = self._full_counts(loop)
        around = extents_around(program.body, self.loop)
        main_body = without_known(loop.body, around | {loop.variable: count})
        main = replace(loop, extent=count, body=main_body)
        rest_variable = Var(f"{self.loop.name}.rest")
        shifted = substitute_in_stmt(loop.body, {loop.variable: count + rest_variable})
        rest = replace(
            loop,
            variable=rest_variable,
            extent=loop.extent - count,
            body=with_fresh_loops(shifted),
        )
        body = replace_loop(program.body, self.loop, lambda _: sequence(main, rest))
        return Outcome(replace(program, body=body), (self.loop, rest_variable))

    def _full_counts(self, loop: For) -> set[Affine]:
        counts: set[Affine] = set()
        for place in places_of(loop.body):
            for form in place.compute.guard:
                low = bounds(form, place.extents())
                step = None if low is None else linear_coefficient(low[0], loop.variable)
                if low is None or not step or step > 0:
                    continue
                rest = substitute(low[0], {loop.variable: affine(0)})
                counts.add(rest // -step + 1)
        return counts


def _is_within(count: Affine, extent: Affine) -> bool:
    """Whether 0 <= count <= extent is plain: both round the same quotient, one down, one up."""
    if not is_nonnegative(count):
        return False
    if is_nonnegative(extent - count):
        return True
    divisions = [form.terms[0][0] for form in (count, extent) if len(form.terms) == 1]
    if len(divisions) != 2 or count.constant > extent.constant:
        return False
    low, high = divisions
    return (
        isinstance(low, FloorDiv)
        and isinstance(high, FloorDiv)
        and low.divisor == high.divisor
        and is_nonnegative(high.operand - low.operand)
    )


def _with_inits(program: Program, handle: Var) -> Program:
    """Return the program with the inits placed of reductions that a loop carries."""
    while True:
        carried = (place for place in places_of(program.body) if _is_carried(place, handle))
        place = next(carried, None)
        if place is None:
            return program
        # one at a time: each init changes the statements around the instances that follow
        depth = depth_of_place(place.ancestors, reduction_variables(place.compute))
        program = decomposed(program, place, depth)


def _is_carried(place: Place, handle: Var) -> bool:
    """Tell whether the sums of an instance, not begun yet, go on from one iteration to the next."""
    compute = place.compute
    return compute.part == "whole" and handle in reduction_variables(compute)


def with_fresh_loops(stmt: Stmt) -> Stmt:
    """Return a copy whose loops have variables of their own, of the same names."""
    if isinstance(stmt, For):
        fresh = Var(stmt.variable.name)
        body = substitute_in_stmt(stmt.body, {stmt.variable: affine(fresh)})
        return replace(stmt, variable=fresh, body=with_fresh_loops(body))
    return map_children(stmt, with_fresh_loops)
