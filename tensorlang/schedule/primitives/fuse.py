"""fuse: perfectly nested loops become one.

Before                      After ``fuse(i, j)`` of fixed N = 8      of symbolic N
::

    for i in M:                 for i.j in 8 * M:                        for i.j = (i, j) in (M, N):
        for j in 8:                 C[i.j // 8, i.j % 8] = ...               C[i, j] = ...
            C[i, j] = ...

The instances and their order stay the same, so it is always legal. For symbolic inner extents
``i.j // N`` would not be affine: the fused loop then keeps its variables, in lexicographic order.
So it does where it mixes data and reduction loops, whose init runs over the data loops alone.
Loops that all are parallel, or all unrolled, stay so.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tensorlang.ir.affine import ONE, Affine, Var, affine, variables_of
from tensorlang.ir.program import For, Fused, Program, Stmt
from tensorlang.ir.walk import computes_of, substitute_in_stmt
from tensorlang.schedule.place_inits import reduction_variables
from tensorlang.schedule.primitives.base import (
    Outcome,
    obstacle,
    require_no_pieces,
    require_plain,
    require_serial,
    the_loop,
)
from tensorlang.schedule.refusal import Refusal
from tensorlang.schedule.tree import replace_loop


@dataclass(frozen=True, slots=True)
class Fuse:
    """Fuse ``loops``, given outermost first, each directly inside the one before."""

    loops: tuple[Var, ...]

    def check(self, program: Program) -> None:
        """Refuse fewer than two loops, and loops that are not directly nested in this order."""
        if len(self.loops) < 2:
            raise Refusal("fuse needs two loops or more", 's.fuse("i", "j")', loops=self.loops)
        current = require_plain(the_loop(program, self.loops[0]), "fuse")
        kind = current.kind
        if kind not in ("parallel", "unrolled"):
            require_serial(current, "fuse")
        own = {current.variable}
        for handle in self.loops[1:]:
            require_no_pieces(current, "fuse")
            below = current.body
            if not isinstance(below, For) or below.variable is not handle:
                between = below.variable if isinstance(below, For) else obstacle(below)
                raise Refusal(
                    f"{handle} is not directly inside {current.variable}; found there: {between}",
                    "reorder the loops so that each is directly inside the one before",
                    loops=self.loops,
                )
            if below.kind != kind:
                raise Refusal(
                    f"{current.variable} is {kind} and {handle} is {below.kind}, and one loop runs "
                    "in one way",
                    "fuse first, and choose how the fused loop runs afterwards",
                    loops=self.loops,
                )
            if not own.isdisjoint(variables_of(below.extent)):
                raise Refusal(
                    f"the extent {below.extent} of {handle} changes with an outer loop",
                    "fuse loops whose extents are independent of each other",
                    loops=self.loops,
                )
            own.add(handle)
            current = below
        require_no_pieces(current, "fuse")

    def apply(self, program: Program) -> Outcome:
        """Return the program with the loops fused."""
        chain: list[For] = []
        current: Stmt = the_loop(program, self.loops[0])
        for _ in self.loops:
            assert isinstance(current, For)
            chain.append(current)
            current = current.body
        name = ".".join(loop.variable.name for loop in chain)
        fixed = all(loop.extent.is_constant and loop.extent.constant > 0 for loop in chain[1:])
        if fixed and not _mixes_reductions(chain):
            fused = _fuse_fixed(chain, Var(name))
        else:
            fused = Fused(
                Var(name),
                tuple(loop.variable for loop in chain),
                tuple(loop.extent for loop in chain),
                "parallel" if chain[0].kind == "parallel" else "serial",  # nothing to write out
                chain[-1].body,
                owner=chain[0].owner,
            )
        handle = fused.variable if isinstance(fused, For) else fused.handle
        body = replace_loop(program.body, self.loops[0], lambda _: fused)
        return Outcome(replace(program, body=body), (handle,))


def _mixes_reductions(chain: list[For]) -> bool:
    """Tell whether data and reduction loops of a stage whose init is not placed yet meet.

    Its init runs over the data loops alone, so they must stay apart.
    """
    variables = {loop.variable for loop in chain}
    for compute in computes_of(chain[-1].body):
        reduction = reduction_variables(compute)
        data = {
            v for form in compute.binding[: len(compute.stage.axes)] for v in variables_of(form)
        }
        if compute.part == "whole" and variables & reduction and variables & data:
            return True
    return False


def _fuse_fixed(chain: list[For], variable: Var) -> For:
    """Fuse loops whose inner extents are constants, by quotients and remainders."""
    position: Affine = affine(variable)
    total = ONE
    mapping: dict[Var, Affine] = {}
    for loop in reversed(chain[1:]):
        size = loop.extent.constant
        mapping[loop.variable] = position % size
        position = position // size
        total = total * size
    mapping[chain[0].variable] = position
    body = substitute_in_stmt(chain[-1].body, mapping)
    return For(variable, total * chain[0].extent, chain[0].kind, body, owner=chain[0].owner)
