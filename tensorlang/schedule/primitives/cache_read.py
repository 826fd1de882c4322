"""cache_read: what a loop's body reads of a tensor is copied first, and read from the copy.

Before                              After ``cache_read("B", at=j.o)``
::

    for j.o in ...:                     for j.o in ...:
        for k in K:                         B.local = global f32[K, 16] at [0, 16 * j.o]
            C[...] += A[...] * B[k, ...]    for i in K:
                                                for j in 16:
                                                    B.local[i, 16*j.o + j] = B[i, 16*j.o + j]
                                            for k in K:
                                                C[...] += A[...] * B.local[k, ...]

The copy holds the box that one iteration reads, clipped to the tensor. Legal where nothing inside
the loop writes the tensor.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from tensorlang.ir.affine import Affine, Var
from tensorlang.ir.definition import Tensor
from tensorlang.ir.expr import loads_of
from tensorlang.ir.program import Alloc, Program, Scope, Stmt
from tensorlang.ir.walk import sequence
from tensorlang.schedule.boxes import clipping_guard, keeping_guard, reads_box
from tensorlang.schedule.naive import nest_over_box
from tensorlang.schedule.primitives.base import (
    Outcome,
    extents_around,
    own_extents,
    require_room,
    the_loop,
)
from tensorlang.schedule.primitives.caching import (
    cache_name,
    copy_stage,
    extents,
    origins,
    redirect,
    require_constant_box,
)
from tensorlang.schedule.primitives.root import root_statements, with_root_statements
from tensorlang.schedule.refusal import Refusal
from tensorlang.schedule.tree import Place, find_alloc, find_loop, places_of, replace_loop


@dataclass(frozen=True, slots=True)
class CacheRead:
    """Copy what one iteration of ``loop`` reads of ``tensor``; None copies it whole, once."""

    tensor: Tensor
    loop: Var | None
    scope: Scope = "global"

    def check(self, program: Program) -> None:
        """Refuse tensors that the body does not read, or that it writes."""
        if self.loop is not None:
            require_room(program, self.loop, "cache_read")
        body = self._body(program)
        where = () if self.loop is None else (self.loop,)
        places = list(places_of(body))
        if not any(self._is_read(place) for place in places):
            raise Refusal(
                f"nothing inside {self.loop or 'the program'} reads {self.tensor}",
                "a tensor that the loop's body reads, by the name it has there",
                loops=where,
            )
        for place in places:
            compute = place.compute
            if any(compute.redirect(own) is self.tensor for own in compute.stage.tensors):
                if self.loop is None:
                    continue
                raise Refusal(
                    f"{self.tensor} is written inside {self.loop}, after it would be copied",
                    "a loop that only reads the tensor, further in",
                    loops=where,
                    compute=compute,
                )
        inside = sequence(*root_statements(body)) if self.loop is None else body
        if find_alloc(inside, self.tensor) is not None:
            raise Refusal(
                f"{self.tensor} has no storage yet where its copy would begin",
                "a loop inside that storage, given as at=",
                loops=where,
            )
        require_constant_box(self._box(program), self.tensor, self.scope, self.loop)

    def apply(self, program: Program) -> Outcome:
        """Return the program with the copy placed and the reads redirected; returns its stage."""
        box = self._box(program)
        local = Tensor(
            cache_name(program, self.tensor, "shared" if self.scope == "shared" else "local"),
            self.tensor.shape,
            self.tensor.dtype,
        )
        stage = copy_stage(local, self.tensor)
        around = self._around(program)
        guard = clipping_guard(stage, box, around)
        stored = find_alloc(program.body, self.tensor)
        if stored is not None:  # the tensor may have storage for a part of itself only
            kept = tuple(zip(stored.origin, stored.shape, strict=True))
            guard += tuple(f for f in keeping_guard(stage, box, kept, around) if f not in guard)
        nest = nest_over_box(stage, box, local.name, guard)

        def cached(body: Stmt) -> Stmt:
            inner = sequence(nest, redirect(body, self.tensor, local))
            return Alloc(local, origins(box), extents(box), self.scope, inner)

        if self.loop is None:
            body = self._at_root(program, cached)
        else:
            body = replace_loop(
                program.body, self.loop, lambda old: replace(old, body=cached(old.body))
            )
        after = replace(program, body=body, stages=(*program.stages, stage))
        return Outcome(after, (stage,))

    def _at_root(self, program: Program, cached: Callable[[Stmt], Stmt]) -> Stmt:
        stmts = root_statements(program.body)
        writers = [n for n, stmt in enumerate(stmts) if _writes(stmt, self.tensor)]
        first = writers[-1] + 1 if writers else 0
        rest = cached(sequence(*stmts[first:]))
        return with_root_statements(program.body, sequence(*stmts[:first], rest))

    def _is_read(self, place: Place) -> bool:
        compute = place.compute
        return compute.part != "init" and any(
            compute.redirect(load.tensor) is self.tensor for load in loads_of(*compute.stage.values)
        )

    def _body(self, program: Program) -> Stmt:
        if self.loop is None:
            return program.body
        loop = find_loop(program.body, self.loop)
        assert loop is not None
        return loop.body

    def _box(self, program: Program) -> tuple[tuple[Affine, Affine], ...]:
        return reads_box(list(places_of(self._body(program))), self.tensor)

    def _around(self, program: Program) -> dict[Var, Affine]:
        if self.loop is None:
            return {}
        loop = the_loop(program, self.loop)
        return extents_around(program.body, self.loop) | own_extents(loop)


def _writes(stmt: Stmt, tensor: Tensor) -> bool:
    return any(
        place.compute.redirect(own) is tensor
        for place in places_of(stmt)
        for own in place.compute.stage.tensors
    )
