"""Count what the loops of a scheduled program do.

Input:  a program, a CPU target, and sizes (those that are not fixed stay symbolic)
Output: an ``Explanation``: per loop iterations, footprint and strides; per stage instances and
recomputation; bytes between the levels of memory; the roofline bound

Counts come from interval arithmetic on the loops, as boxes do. Memory traffic follows the usual
model of a cache that keeps what was used last: the outermost loop of which one iteration fits into
a cache brings its footprint in anew in each iteration, apart from what stays the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from tensorlang.dtypes import DType
from tensorlang.ir.affine import ONE, ZERO, Affine, Var, affine, depends_on, substitute
from tensorlang.ir.definition import Tensor
from tensorlang.ir.expr import Call, iterate, loads_of
from tensorlang.ir.interval import bounds
from tensorlang.ir.program import Compute, For, Fused, Program, Stmt
from tensorlang.ir.walk import children_of, loop_variables
from tensorlang.schedule import resolve
from tensorlang.schedule.boxes import accesses_box
from tensorlang.schedule.explain.costs import (
    AccessCost,
    Explanation,
    LoopCost,
    StageCost,
    Traffic,
)
from tensorlang.schedule.explain.instances import instances_of
from tensorlang.schedule.primitives.base import enclosing_loops
from tensorlang.schedule.tree import Loop, Place, find_alloc, handle_of, loops_of, places_of
from tensorlang.targets.cpu import CpuTarget
from tensorlang.targets.roofline import roofline

Sizes = Mapping[Var, int]


def explain(program: Program, target: CpuTarget, sizes: Sizes) -> Explanation:
    """Return the costs of ``program``, with ``sizes`` put in where they are given."""
    explainer = _Explainer(program, target, {v: affine(n) for v, n in sizes.items()})
    return explainer.explanation()


@dataclass(frozen=True, slots=True)
class _Explainer:
    program: Program
    target: CpuTarget
    sizes: Mapping[Var, Affine]

    def explanation(self) -> Explanation:
        loops = tuple(self.loop(loop) for loop in loops_of(self.program.body))
        stages = tuple(self.stages())
        flops = _total(stage.flops for stage in stages)
        definition = self.program.definition
        outer = dict.fromkeys((*definition.inputs, *definition.outputs))
        moved = _total(self.bytes_of(tensor, tensor.shape) for tensor in outer)
        found = Explanation(definition.name, str(self.target), loops, stages, flops, moved)
        return self.bounded(found) if flops.is_constant and moved.is_constant else found

    def bounded(self, found: Explanation) -> Explanation:
        """Add what needs numbers: the traffic between levels, and the bound."""
        parallel = any(loop.kind == "parallel" for loop in found.loops)
        threads = self.target.cores if parallel else 1
        widest = max((t.dtype.bits for t in self.program.definition.outputs), default=32)
        limits = roofline(self.target, widest, threads)
        caches = (
            ("L1", self.target.l1_bytes), ("L2", self.target.l2_bytes), ("L3", self.target.l3_bytes)
        )  # fmt: skip
        traffic = tuple(Traffic(name, self.traffic_into(size)) for name, size in caches)
        arithmetic = found.flops.constant / (limits.gflops * 1e9)
        memory = max(traffic[-1].bytes, found.bytes.constant) / (limits.gigabytes * 1e9)
        return replace(
            found,
            traffic=traffic,
            seconds=max(arithmetic, memory),
            limit="arithmetic" if arithmetic >= memory else "memory",
            peak_gflops=limits.gflops,
            peak_gigabytes=limits.gigabytes,
        )

    # --- loops -------------------------------------------------------------------------------

    def loop(self, loop: Loop) -> LoopCost:
        handle = handle_of(loop)
        parts = self.footprint(loop)
        total = _total(size for _, size in parts)
        return LoopCost(
            resolve.shortest_path(self.program, handle),
            len(enclosing_loops(self.program.body, handle)),
            loop.kind,
            self.trips(loop),
            total,
            tuple((tensor.name, size) for tensor, size in parts),
            self.level(total),
            tuple(self.strides(loop)),
        )

    def trips(self, loop: Loop) -> Affine:
        """Return the iterations of a loop; the most, where they differ."""
        around = enclosing_loops(self.program.body, handle_of(loop))
        extents = self.extents(around)
        result = ONE
        for extent in self.extents((loop,)).values():
            result = result * self.most(extent, extents)
        if isinstance(loop, Fused) and loop.run is not None:
            return affine(loop.run.size)
        return result

    def extents(self, loops: Iterable[Loop]) -> dict[Var, Affine]:
        found: dict[Var, Affine] = {}
        for loop in loops:
            own = (loop.extent,) if isinstance(loop, For) else loop.extents
            found.update(zip(loop_variables(loop), map(self.sized, own), strict=True))
        return found

    def most(self, form: Affine, extents: Mapping[Var, Affine]) -> Affine:
        interval = bounds(form, extents) if depends_on(form, set(extents)) else None
        return form if interval is None else interval[1]

    def sized(self, form: Affine) -> Affine:
        return substitute(form, self.sizes)

    def footprint(self, loop: Loop) -> list[tuple[Tensor, Affine]]:
        """Return the bytes of each tensor that one iteration touches."""
        places = list(places_of(loop.body))
        return [
            (tensor, self.bytes_of(tensor, [extent for _, extent in accesses_box(places, tensor)]))
            for tensor in _touched(places)
        ]

    def bytes_of(self, tensor: Tensor, shape: Iterable[Affine]) -> Affine:
        size = affine(_bytes(tensor.dtype))
        for extent, whole in zip(shape, tensor.shape, strict=True):
            extent, whole = self.sized(extent), self.sized(whole)
            if extent.is_constant and whole.is_constant and whole.constant < extent.constant:
                extent = whole  # a tile that sticks out
            size = size * extent
        return size

    def level(self, size: Affine) -> str:
        if not size.is_constant:
            return ""
        target = self.target
        for name, room in (
            ("L1", target.l1_bytes),
            ("L2", target.l2_bytes),
            ("L3", target.l3_bytes),
        ):
            if size.constant <= room:
                return name
        return "memory"

    # --- accesses ----------------------------------------------------------------------------

    def strides(self, loop: Loop) -> list[AccessCost]:
        """Return how far one step of a loop moves each access below it; once for equal ones."""
        found: dict[AccessCost, None] = {}
        variable = loop_variables(loop)[-1]
        for place in places_of(loop.body):
            compute = place.compute
            mapping = dict(zip(compute.stage.variables, compute.binding, strict=False))
            accesses = [(compute.redirect(t), place.data_binding) for t in compute.stage.tensors]
            if compute.part != "init":
                accesses += [
                    (
                        compute.redirect(load.tensor),
                        tuple([substitute(index, mapping) for index in load.indices]),
                    )
                    for load in loads_of(*compute.stage.values)
                ]
            for tensor, indices in accesses:
                stride = self.stride(tensor, indices, variable)
                found[AccessCost(tensor.name, stride)] = None
        return list(found)

    def stride(self, tensor: Tensor, indices: tuple[Affine, ...], variable: Var) -> Affine | None:
        """Return the distance in memory, in elements, that a step of a loop makes."""
        alloc = find_alloc(self.program.body, tensor)
        shape = tensor.shape
        if alloc is not None:
            indices = tuple([i - o for i, o in zip(indices, alloc.origin, strict=True)])
            shape = alloc.shape
            if alloc.layout is not None:
                mapping = dict(zip(alloc.layout.variables, indices, strict=True))
                indices = tuple([substitute(form, mapping) for form in alloc.layout.indices])
                shape = alloc.layout.shape
        place, step = ZERO, ONE
        for index, extent in zip(reversed(indices), reversed(shape), strict=True):
            place = place + index * step
            step = step * self.sized(extent)
        start = substitute(place, {variable: ZERO})
        stride = substitute(place, {variable: ONE}) - start
        return stride if start + stride * variable == place else None

    # --- stages ------------------------------------------------------------------------------

    def stages(self) -> list[StageCost]:
        found: list[StageCost] = []
        labels = {id(stage): label for label, stage in resolve.stage_labels(self.program).items()}
        places = list(places_of(self.program.body))
        for stage in dict.fromkeys(place.compute.stage for place in places):
            mine = [p for p in places if p.compute.stage is stage and p.compute.part != "init"]
            instances = _total(instances_of(place, self.sizes) for place in mine)
            exprs = stage.values + (() if stage.combiner is None else stage.combiner.result)
            calls = [node for node in iterate(*exprs) if isinstance(node, Call)]
            each = sum(2 if call.function == "fma" else 1 for call in calls if _counts(call))
            domain = ONE
            for axis in stage.all_axes:
                domain = domain * self.sized(axis.extent)
            recompute = None
            if instances == domain:
                recompute = 1.0
            elif instances.is_constant and domain.is_constant and domain.constant > 0:
                recompute = instances.constant / domain.constant
            label = labels.get(id(stage), stage.name)
            found.append(StageCost(label, instances, instances * each, recompute))
        return found

    # --- traffic -----------------------------------------------------------------------------

    def traffic_into(self, room: int) -> int:
        """Return the bytes that come into a cache of ``room`` bytes, write-backs left out."""
        return self._traffic(self.program.body, (), room)

    def _traffic(self, stmt: Stmt, around: tuple[Loop, ...], room: int) -> int:
        if isinstance(stmt, For | Fused):
            parts = self.footprint(stmt)
            total = _total(size for _, size in parts)
            places = list(places_of(stmt.body))
            if total.is_constant and total.constant <= room:
                return sum(
                    size.constant * self._fetches(tensor, places, (*around, stmt))
                    for tensor, size in parts
                )
            around = (*around, stmt)
        if isinstance(stmt, Compute):
            return self._of_instance(stmt, around)
        return sum(self._traffic(child, around, room) for child in children_of(stmt))

    def _fetches(self, tensor: Tensor, places: list[Place], around: tuple[Loop, ...]) -> int:
        """Return how often a box is fetched: the loops right around that it does not move with."""
        origins = [origin for origin, _ in accesses_box(places, tensor)]
        alloc = find_alloc(self.program.body, tensor)
        if alloc is not None:  # one piece of memory serves all iterations around it
            inside = {id(loop) for loop in loops_of(alloc)}
            around = tuple(loop for loop in around if id(loop) in inside)
        count, moved = 1, False
        for loop in reversed(around):
            variables = set(loop_variables(loop))
            moved = moved or any(depends_on(origin, variables) for origin in origins)
            if moved:
                count *= max(0, self.trips(loop).constant)
        return count

    def _of_instance(self, stmt: Compute, around: tuple[Loop, ...]) -> int:
        """Return the traffic of a statement whose innermost loop does not fit: each access."""
        place = Place(stmt, around)
        count = instances_of(place, self.sizes).constant
        return count * sum(_bytes(tensor.dtype) for tensor in _touched([place]))


def _touched(places: list[Place]) -> list[Tensor]:
    found: dict[Tensor, None] = {}
    for place in places:
        compute = place.compute
        found.update(dict.fromkeys(map(compute.redirect, compute.stage.tensors)))
        if compute.part != "init":
            loads = loads_of(*compute.stage.values)
            found.update(dict.fromkeys(compute.redirect(load.tensor) for load in loads))
    return list(found)


def _counts(call: Call) -> bool:
    """Whether a call is arithmetic on numbers: comparisons and logic are not."""
    return call.dtype.kind != "bool"


def _bytes(dtype: DType) -> int:
    return max(1, dtype.bits // 8)


def _total(forms: Iterable[Affine]) -> Affine:
    total = ZERO
    for form in forms:
        total = total + form
    return total
