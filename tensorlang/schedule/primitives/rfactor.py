"""rfactor: each iteration of a reduction loop gets a partial result of its own.

Before (k split by 8)               After ``rfactor(k.i)``
::

    for k.o in (K + 7) // 8:            total.rf = global f32[8]
        for k.i in 8:                   for k.o in (K + 7) // 8:
            total += X[8*k.o + k.i]         for k.i in 8:
                                                total.rf[k.i] += X[8*k.o + k.i]
                                        for k.i in 8:
                                            total += total.rf[k.i]

The loop no longer carries the reduction, so it may be vectorized or run in parallel. Legal for
combiners that are associative and commutative. The partial results live inside the data loops
around the reduction.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tensorlang.ir.affine import ZERO, Affine, Var, affine, depends_on, substitute, variables_of
from tensorlang.ir.definition import Axis, Stage, Tensor
from tensorlang.ir.derivation import Factored
from tensorlang.ir.expr import Load
from tensorlang.ir.program import Alloc, Compute, For, Fused, Program, Stmt
from tensorlang.ir.walk import rewrite, sequence, substitute_in_expr
from tensorlang.schedule.boxes import Box, covers_box, writes_box, written_guard
from tensorlang.schedule.legality import require_proof
from tensorlang.schedule.naive import nest_over_box
from tensorlang.schedule.place_inits import depth_of_place, reduction_variables
from tensorlang.schedule.primitives.base import Outcome, the_loop
from tensorlang.schedule.primitives.caching import cache_name
from tensorlang.schedule.primitives.decompose_reduction import the_place
from tensorlang.schedule.refusal import Refusal
from tensorlang.schedule.tree import Place, places_of, replace_stmt


@dataclass(frozen=True, slots=True)
class Rfactor:
    """Give each iteration of ``loop`` its own partial result; returns the partial stage."""

    loop: Var

    def check(self, program: Program) -> None:
        """Refuse data loops, ordered combiners, cached accumulators, and tangled guards."""
        loop = the_loop(program, self.loop)
        if isinstance(loop, Fused) or (isinstance(loop.body, Fused) and loop.body.run is not None):
            raise Refusal(
                f"{self.loop} runs through a fused loop of several variables, or its pieces",
                "rfactor before fuse; or fix the sizes, which fuse to one variable: "
                "tl.schedule(op, N=1024)",
                loops=(self.loop,),
            )
        place = self._place(program)
        stage = place.compute.stage
        assert stage.combiner is not None
        if stage.combiner.ordered:
            raise Refusal(
                f"{stage.name} combines in a fixed order (ordered=True)",
                "leave the reduction in one piece",
                loops=(self.loop,),
            )
        if any(source in stage.tensors for source, _ in place.compute.via):
            raise Refusal(
                f"{stage.name} accumulates in a copy already",
                "rfactor before cache_write",
                loops=(self.loop,),
            )
        binding = place.compute.binding
        data, reduction = binding[: len(stage.axes)], binding[len(stage.axes) :]
        if any(depends_on(form, {self.loop}) for form in data):
            raise Refusal(
                f"{self.loop} moves through data axes as well as reduction axes",
                "rfactor before fuse",
                loops=(self.loop,),
            )
        plain = {loop.variable for loop in place.loops if isinstance(loop, For)}
        if not {v for form in reduction for v in variables_of(form)} <= plain:
            raise Refusal(
                f"the reduction of {stage.name} runs through a fused loop of symbolic sizes",
                "rfactor before fuse",
                loops=(self.loop,),
            )
        if self._predicate(place) is None:
            raise Refusal(
                f"a guard of {stage.name} ties {self.loop} to data loops",
                "rfactor before the data loops are split",
                loops=(self.loop,),
                compute=place.compute,
            )
        outside = place.ancestors[
            : depth_of_place(place.ancestors, reduction_variables(place.compute))
        ]
        inner = place.ancestors[len(outside)]
        if any(other.compute is not place.compute for other in places_of(inner)):
            raise Refusal(
                f"other stages are computed inside the reduction loops of {stage.name}",
                "rfactor before compute_at and cache_read",
                loops=(self.loop,),
            )
        relative = Place(place.compute, place.ancestors[len(outside) :])
        box = writes_box([relative], stage.tensor)
        around = Place(place.compute, outside).extents()
        if not (covers_box(relative) and written_guard(relative, stage, box, around)[1]):
            require_proof(
                self.apply(program).program,
                f"the partial results of {stage.name} are no box",
                "rfactor before the data loops are split",
                self.loop,
            )

    def apply(self, program: Program) -> Outcome:
        """Return the program with the partial stage, followed by the one that combines."""
        place = self._place(program)
        compute, stage = place.compute, place.compute.stage
        partial, forms = self._partial_stage(program, place)
        final = _final_stage(stage, partial)
        depth = depth_of_place(place.ancestors, reduction_variables(compute))
        relative = Place(compute, place.ancestors[depth:])
        around = Place(compute, place.ancestors[:depth]).extents()
        box = writes_box([relative], stage.tensor)
        guard, _ = written_guard(relative, stage, box, around)
        instance = self._partial_instance(place, partial)
        nest = place.ancestors[depth]
        partial_nest = rewrite(
            nest, lambda stmt: instance if stmt is compute else _owned(stmt, stage, partial)
        )
        mapping = {
            old.variable: affine(new.variable)
            for old, new in zip(stage.axes, final.axes, strict=True)
        }
        final_guard = tuple(substitute(form, mapping) for form in guard)
        combining = nest_over_box(final, box, stage.name, final_guard)
        whole: Stmt = sequence(partial_nest, combining)
        lanes = partial.axes[-1].extent
        partial_box: Box = (*box, (ZERO, lanes))
        for tensor in reversed(partial.tensors):
            origin = tuple(low for low, _ in partial_box)
            shape = tuple(extent for _, extent in partial_box)
            whole = Alloc(tensor, origin, shape, "global", whole)
        stages = tuple(final if known is stage else known for known in program.stages)
        record = Factored(stage, partial, final, forms)
        after = replace(
            program,
            body=replace_stmt(program.body, nest, whole),
            stages=(*stages, partial),
            derivations=(*program.derivations, record),
        )
        return Outcome(after, (partial,))

    def _place(self, program: Program) -> Place:
        loop = the_loop(program, self.loop)
        below = [place.compute.stage for place in places_of(loop.body)]
        found = [stage for stage in below if stage.is_reduction]
        for stage in found:
            place = the_place(program, stage, "rfactor")
            if self.loop in reduction_variables(place.compute):
                return place
        raise Refusal(
            f"{self.loop} is no loop of a reduction",
            "a loop that runs through a reduction axis, or a part of one after split",
            loops=(self.loop,),
        )

    def _predicate(self, place: Place) -> tuple[Affine, ...] | None:
        """Return the tails of the reduction as forms over its loops; None if data is mixed in."""
        compute, stage = place.compute, place.compute.stage
        reduction = reduction_variables(compute)
        mapping = dict(zip(stage.variables, compute.binding, strict=True))
        known = {substitute(form, mapping) for form in stage.predicate}
        loops = set(place.extents())
        tails: list[Affine] = []
        for form in compute.guard:
            if form in known or not depends_on(form, reduction):
                continue
            if (variables_of(form) & loops) - reduction:
                return None
            tails.append(form)
        return tuple(tails)

    def _partial_stage(self, program: Program, place: Place) -> tuple[Stage, tuple[Affine, ...]]:
        compute, stage = place.compute, place.compute.stage
        extents = place.extents()
        tails = self._predicate(place)
        assert tails is not None
        reduction = compute.binding[len(stage.axes) :]
        used = [v for v in extents if v in reduction_variables(compute)]
        loops = {v: Axis(Var(v.name), extents[v]) for v in used}
        axes = tuple(Axis(Var(axis.variable.name), axis.extent) for axis in stage.axes)
        to_new = {v: affine(axis.variable) for v, axis in loops.items()}
        forms = tuple(substitute(form, to_new) for form in reduction)
        mapping = {o.variable: affine(n.variable) for o, n in zip(stage.axes, axes, strict=True)}
        mapping |= {
            axis.variable: form for axis, form in zip(stage.reduction_axes, forms, strict=True)
        }
        lanes = loops.pop(self.loop)
        predicate = [substitute(form, mapping) for form in stage.predicate]
        predicate += [substitute(form, to_new) for form in tails]
        tensors = tuple(
            Tensor(cache_name(program, tensor, "rf"), (*tensor.shape, lanes.extent), tensor.dtype)
            for tensor in stage.tensors
        )
        partial = replace(
            stage,
            tensors=tensors,
            axes=(*axes, lanes),
            values=tuple(substitute_in_expr(value, mapping) for value in stage.values),
            reduction_axes=tuple(loops.values()),
            predicate=tuple(predicate),
        )
        return partial, forms

    def _partial_instance(self, place: Place, partial: Stage) -> Compute:
        compute, stage = place.compute, place.compute.stage
        extents = place.extents()
        rest = [v for v in extents if v in reduction_variables(compute) and v is not self.loop]
        data = compute.binding[: len(stage.axes)]
        binding = (*data, affine(self.loop), *(affine(v) for v in rest))
        return replace(compute, stage=partial, binding=binding)


def _owned(stmt: Stmt, stage: Stage, partial: Stage) -> Stmt:
    if isinstance(stmt, For) and stmt.owner == stage.name:
        return replace(stmt, owner=partial.name)
    return stmt


def _final_stage(stage: Stage, partial: Stage) -> Stage:
    axes = tuple(Axis(Var(axis.variable.name), axis.extent) for axis in stage.axes)
    lanes = Axis(Var(partial.axes[-1].variable.name), partial.axes[-1].extent)
    indices = tuple(affine(axis.variable) for axis in (*axes, lanes))
    values = tuple(Load(tensor, indices) for tensor in partial.tensors)
    return replace(stage, axes=axes, values=values, reduction_axes=(lanes,), predicate=())
