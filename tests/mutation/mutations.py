"""The mistakes: in primitives, in the placing of inits, in lowering, in code generation, at calls.

Each names the cases of ``cases.py`` that are run to notice it.
"""

from __future__ import annotations

from tests.mutation.mutate import Mutation

PRIMITIVES = "tensorlang.schedule.primitives"

SCHEDULING = (
    Mutation(
        "split drops its tail guard",
        f"{PRIMITIVES}.split:Split.apply",
        'if guard is not None and self.tail != "pad":',
        "if False:",
        ("tail",),
    ),
    Mutation(
        "the init comes after its update",
        "tensorlang.schedule.place_inits:_visit",
        "sequence(*here, stmt)",
        "sequence(stmt, *here)",
        ("tiled",),
    ),
    Mutation(
        "the init is inside the reduction",
        "tensorlang.schedule.place_inits:depth_of_place",
        "return depth\n    return len(path)",
        "return depth + 1\n    return len(path)",
        ("tiled",),
    ),
    Mutation(
        "cache_read copies one element too few",
        f"{PRIMITIVES}.cache_read:CacheRead.apply",
        "box = self._box(program)",
        "box = tuple((origin, extent - 1) for origin, extent in self._box(program))",
        ("copied",),
    ),
    Mutation(
        "copies are not clipped to the tensor",
        "tensorlang.schedule.boxes:clipping_guard",
        "return tuple(forms)",
        "return ()",
        ("copied",),
    ),
    Mutation(
        "compute_at computes one element too few",
        f"{PRIMITIVES}.compute_at:ComputeAt.apply",
        "box = self._box(moved)",
        "box = tuple((origin, extent - 1) for origin, extent in self._box(moved))",
        ("placed",),
    ),
    Mutation(
        "compute_at forgets a reader outside",
        f"{PRIMITIVES}.compute_at:ComputeAt.check",
        "if id(place.compute) not in inside:",
        "if False:",
        ("read twice",),
    ),
    Mutation(
        "parallel takes a reduction loop",
        f"{PRIMITIVES}.parallel:Parallel.check",
        "require_independent(",
        "(lambda *given: None)(",
        ("parallel reduction",),
    ),
    Mutation(
        "vectorize takes a loop that carries a scan",
        f"{PRIMITIVES}.vectorize:Vectorize.check",
        "require_independent(",
        "(lambda *given: None)(",
        ("vectorized scan",),
    ),
    Mutation(
        "reorder finds every order legal",
        f"{PRIMITIVES}.reorder:Reorder.check",
        "if not self._is_plainly_legal(chain):",
        "if False:",
        ("reordered scan",),
    ),
    Mutation(
        "cache_write does not copy out",
        f"{PRIMITIVES}.cache_write:CacheWrite._cached",
        "inner.append(self._copy_nest(back, box, guard))",
        "pass",
        ("accumulated",),
    ),
    Mutation(
        "cache_write does not copy in between blocks of a reduction",
        f"{PRIMITIVES}.cache_write:CacheWrite._cached",
        "if copies_in:",
        "if False:",
        ("accumulated",),
    ),
    Mutation(
        "redirection forgets the writes",
        f"{PRIMITIVES}.caching:redirect",
        "touched = [*stmt.stage.tensors, *(",
        "touched = [*(",
        ("accumulated",),
    ),
    Mutation(
        "rfactor drops the predicate of the partial results",
        f"{PRIMITIVES}.rfactor:Rfactor._partial_stage",
        "predicate=tuple(predicate),",
        "predicate=(),",
        ("factored",),
    ),
    Mutation(
        "compute_inline swaps indices",
        f"{PRIMITIVES}.compute_inline:_value_at",
        "zip(stage.axes, load.indices, strict=True)",
        "zip(stage.axes, reversed(load.indices), strict=True)",
        ("inlined",),
    ),
    Mutation(
        "fuse swaps quotient and remainder",
        f"{PRIMITIVES}.fuse:_fuse_fixed",
        "mapping[loop.variable] = position % size\n        position = position // size",
        "mapping[loop.variable] = position // size\n        position = position % size",
        ("fused",),
    ),
    Mutation(
        "the rest of peel starts one late",
        f"{PRIMITIVES}.peel:Peel.apply",
        "{loop.variable: count + rest_variable}",
        "{loop.variable: count + 1 + rest_variable}",
        ("peeled",),
    ),
    Mutation(
        "layout takes a map that is not one-to-one",
        f"{PRIMITIVES}.layout:SetLayout.check",
        "if not self._is_plainly_injective(alloc):",
        "if False:",
        ("colliding layout",),
    ),
    Mutation(
        "decompose_reduction takes any loop",
        f"{PRIMITIVES}.decompose_reduction:DecomposeReduction.check",
        "if depth > depth_of_place(place.ancestors, reduction_variables(place.compute)):",
        "if False:",
        ("decomposed late",),
    ),
)

LOWERING = (
    Mutation(
        "the shifted block begins one late",
        f"{PRIMITIVES}.split:Split._shifted",
        "last = extent - size",
        "last = extent - size + 1",
        ("shifted block",),
    ),
    Mutation(
        "a loop shorter than the shifted block is not guarded",
        f"{PRIMITIVES}.split:Split._shifted",
        "body = add_guard(body, extent - 1 - inner, around)",
        "pass",
        ("shifted block",),
    ),
    Mutation(
        "a stage follows the first of its neighbours, not the last",
        f"{PRIMITIVES}.reverse_compute_at:ReverseComputeAt._offsets",
        "max(index.constant for index in d)",
        "min(index.constant for index in d)",
        ("sliding",),
    ),
    Mutation(
        "storage is folded to one place less",
        f"{PRIMITIVES}.storage_fold:StorageFold.apply",
        "indices[self.axis] % self.size",
        "indices[self.axis] % (self.size - 1)",
        ("folded",),
    ),
    Mutation(
        "storage_fold takes any size",
        f"{PRIMITIVES}.storage_fold:StorageFold.check",
        "require_proof(",
        "(lambda *_: None)(",
        ("folded too far",),
    ),
    Mutation(
        "pad_storage brings rows together",
        f"{PRIMITIVES}.pad_storage:PadStorage.apply",
        "shape[self.axis] + self.by",
        "shape[self.axis] - self.by",
        ("padded rows",),
    ),
    Mutation(
        "swizzle moves positions out of their block",
        f"{PRIMITIVES}.swizzle:Swizzle.apply",
        "column // size * size + (row + column) % size",
        "column // size * size + (row + column) % (size - 1)",
        ("swizzled",),
    ),
    Mutation(
        "reverse_compute_inline keeps the order of the axes",
        f"{PRIMITIVES}.reverse_compute_inline:ReverseComputeInline.apply",
        "for n in order]",
        "for n in range(len(order))]",
        ("inlined backwards",),
    ),
    Mutation(
        "a prefetch takes the place of the body of its loop",
        f"{PRIMITIVES}.prefetch:Prefetch.apply",
        "sequence(ask, old.body)",
        "ask",
        ("prefetched",),
    ),
    Mutation(
        "a bound from a guard is one too small",
        "tensorlang.lower.bound_loops:_end_early",
        "// -_slope(limit, loop.variable) + 1 for",
        "// -_slope(limit, loop.variable) for",
        ("tail",),
    ),
    Mutation(
        "tiles run without guards whether full or not",
        "tensorlang.lower.version_tiles:_version",
        "return If(conditions, unguarded, _visit_children(stmt, tests, met, depth + 1))",
        "return unguarded",
        ("vector tail",),
    ),
    Mutation(
        "peeled tails count one full tile too many",
        "tensorlang.lower.peel_tails:_full_tiles",
        "// -coefficient + 1",
        "// -coefficient + 2",
        ("peel tail",),
    ),
    Mutation(
        "the last piece of a fused loop runs too far",
        "tensorlang.lower.lower_fused:_lower_run",
        "extent = minimum(whole, left)",
        "extent = whole",
        ("fused pieces",),
    ),
    Mutation(
        "unroll drops the last copy",
        "tensorlang.lower.unroll:_Unroller.visit",
        "for n in range(stmt.extent.constant)",
        "for n in range(stmt.extent.constant - 1)",
        ("tiled",),
    ),
    Mutation(
        "flattening ignores the origin of a box",
        "tensorlang.lower.storage:physical_index",
        "[index - origin for index, origin",
        "[index for index, origin",
        ("copied",),
    ),
    Mutation(
        "a condition is lost when it is placed",
        "tensorlang.lower.place_conditions:_visit",
        "return replace(stmt, body=_under(inner, body)), outer",
        "return replace(stmt, body=body), outer",
        ("vector tail",),
    ),
    Mutation(
        "strides of the caller's arrays are ignored",
        "tensorlang.lower.buffers:caller_home",
        'if layout != "contiguous":\n        strides',
        "if False:\n        strides",
        ("strided",),
    ),
    Mutation(
        "indices from data are not checked",
        "tensorlang.lower.flatten:_Instance.load",
        "if depends_on_data(index):",
        "if False:",
        ("gather",),
    ),
)

CODE = (
    Mutation(
        "stores past the caches ask for no alignment",
        "tensorlang.backends.llvm.streaming:store_past_caches",
        "if alignment >= needed:",
        "if True:",
        ("streamed",),
    ),
    Mutation(
        "what is not aligned is not stored",
        "tensorlang.backends.llvm.streaming:store_past_caches",
        "(other, plain)):",
        "(other, '')):",
        ("streamed",),
    ),
    Mutation(
        "a mask ends one lane early",
        "tensorlang.backends.llvm.masks:_emit_condition",
        'floor_divide_by_constant(context, start, -stride), "le"',
        'floor_divide_by_constant(context, start, -stride), "lt"',
        ("masked",),
    ),
    Mutation(
        "masked loads read every lane",
        "tensorlang.backends.llvm.memory:_load_vector",
        "if mask is None:",
        "if True:",
        ("masked",),
    ),
    Mutation(
        "masked stores write every lane",
        "tensorlang.backends.llvm.memory:_store_vector",
        "if mask is None:",
        "if True:",
        ("masked",),
    ),
    Mutation(
        "a coefficient is taken for a stride",
        "tensorlang.backends.llvm.indices:lane_stride",
        "linear_coefficient(index, context.lane.variable)",
        "index.coefficient(context.lane.variable)",
        ("halves",),
    ),
    Mutation(
        "floor division truncates",
        "tensorlang.backends.llvm.arithmetic:_floor_divide",
        "quotient = builder.add(quotient, builder.convert(",
        "quotient = (lambda *given: quotient)(quotient, builder.convert(",
        ("division",),
    ),
    Mutation(
        "max ignores NaN",
        "tensorlang.backends.llvm.arithmetic:_extremum",
        "return builder.select(builder.is_nan(left), left, result)",
        "return result",
        ("largest",),
    ),
    Mutation(
        "a parallel loop loses its last task",
        "tensorlang.backends.llvm.parallel:_emit_body_function",
        'builder.compare("lt", first, extent)',
        'builder.compare("lt", builder.add(first, chunk), extent)',
        ("parallel",),
    ),
    Mutation(
        "both branches of where load",
        "tensorlang.backends.llvm.expressions:_strict_operands",
        "if not isinstance(expr, Select):",
        "if True:",
        ("lazy",),
    ),
)

CALLS = (
    Mutation(
        "a derived size is solved wrongly",
        "tensorlang.lang.binding:_solution",
        "divmod(entry.found - rest, factor)",
        "divmod(entry.found, factor)",
        ("derived size",),
    ),
    Mutation(
        "a condition that a schedule promised is not checked",
        "tensorlang.runtime.sizes:_check_conditions",
        "for condition in conditions:",
        "for condition in ():",
        ("exact",),
    ),
)

MUTATIONS = SCHEDULING + LOWERING + CODE + CALLS
