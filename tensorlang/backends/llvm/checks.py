"""Run-time checks of indices that come from data.

Input:  ``X[table[i]]`` with the check ``0 <= table[i] < N``, site 2
Output: the load behind a comparison; a failure writes (2, the index, N) to the status block

The first failure is kept, whichever thread meets it; the program runs on with 0 in place of the
element, and the entry function returns 1.
"""

from __future__ import annotations

from tensorlang.backends.llvm.context import Context
from tensorlang.backends.llvm.indices import emit_index
from tensorlang.backends.llvm.masks import any_lane, inverted, narrowed
from tensorlang.backends.llvm.memory import emit_load
from tensorlang.backends.llvm.types import I64, Value, constant, register_type, vector
from tensorlang.ir.lowered import BoundsCheck, FlatLoad

FAILED_CHECK, OUT_OF_MEMORY = 1, 2

# The fourth word of the status block holds the result; whoever changes it from 0 fills the others.
_RECORD_FUNCTION = """\
define internal void @record_failure(
  ptr %status, i64 %site, i64 %index, i64 %extent
) cold noinline nounwind {
  %place = getelementptr i64, ptr %status, i64 3
  %pair = cmpxchg ptr %place, i64 0, i64 1 monotonic monotonic
  %first = extractvalue { i64, i1 } %pair, 1
  br i1 %first, label %record, label %done
record:
  store i64 %site, ptr %status
  %second = getelementptr i64, ptr %status, i64 1
  store i64 %index, ptr %second
  %third = getelementptr i64, ptr %status, i64 2
  store i64 %extent, ptr %third
  br label %done
done:
  ret void
}
"""


def emit_checked_load(context: Context, load: FlatLoad) -> Value:
    """Return the element, or 0 in lanes where a check fails."""
    indices = [emit_index(context, check.index) for check in load.checks]
    extents = [emit_index(context, check.extent) for check in load.checks]
    passed: Value | None = None
    for index, extent in zip(indices, extents, strict=True):
        # Unsigned, so that a negative index is a large one.
        inside = context.builder.compare("lt", index, extent, signed=False)
        passed = inside if passed is None else context.builder.binary("and", passed, inside)
    assert passed is not None
    if passed.type.lanes == 1:
        return _load_if_all_pass(context, load, passed, indices, extents)
    failed = narrowed(context, inverted(context, passed)).value
    with context.when(any_lane(context, failed), "out_of_bounds"):
        _record_lanes(context, load.checks, failed, indices, extents)
    with context.masked(narrowed(context, passed)):
        return emit_load(context, load.buffer, load.offset)


def _load_if_all_pass(
    context: Context, load: FlatLoad, passed: Value, indices: list[Value], extents: list[Value]
) -> Value:
    """Load behind a jump; the index is one for all lanes, though the address may not be."""
    mask = context.mask
    if mask is not None and not mask.nonempty:
        empty = inverted(context, any_lane(context, mask.value))
        failed = inverted(context, context.builder.binary("or", passed, empty))
    else:
        failed = inverted(context, passed)
    with context.when(failed, "out_of_bounds"):
        _record_first(context, load.checks, indices, extents)
    lanes = context.lanes if context.lane is not None else 1

    def make() -> Value:
        return emit_load(context, load.buffer, load.offset)

    from tensorlang.backends.llvm.indices import lane_stride

    if lane_stride(context, load.offset) == 0:
        lanes = 1
    return context.choose(
        passed, make, lambda: constant(0, register_type(load.dtype, lanes)), lanes
    )


def _record_first(
    context: Context, checks: tuple[BoundsCheck, ...], indices: list[Value], extents: list[Value]
) -> None:
    """Record the first of several scalar checks that fails."""
    builder = context.builder
    site, index, extent = constant(checks[-1].site, I64), indices[-1], extents[-1]
    for check, i, e in reversed(list(zip(checks[:-1], indices, extents, strict=False))):
        inside = builder.compare("lt", i, e, signed=False)
        site = builder.select(inside, site, constant(check.site, I64))
        index, extent = builder.select(inside, index, i), builder.select(inside, extent, e)
    _call_record(context, site, index, extent)


def _record_lanes(
    context: Context,
    checks: tuple[BoundsCheck, ...],
    failed: Value,
    indices: list[Value],
    extents: list[Value],
) -> None:
    """Record what the first failing lane has."""
    lanes, writer = context.lanes, context.writer
    bits = writer.emit(f"bitcast {failed.text} to i{lanes}", vector("i8", 1))
    writer.module.declare(f"i{lanes} @llvm.cttz.i{lanes}(i{lanes}, i1)")
    lane = writer.emit(f"call i{lanes} @llvm.cttz.i{lanes}(i{lanes} {bits.ref}, i1 true)", I64)

    def of_lane(value: Value) -> Value:
        if value.type.lanes == 1:
            return value
        return writer.emit(f"extractelement {value.text}, i{lanes} {lane.ref}", I64)

    _record_first(context, checks, list(map(of_lane, indices)), list(map(of_lane, extents)))


def _call_record(context: Context, site: Value, index: Value, extent: Value) -> None:
    assert context.status is not None
    context.options.uses_status = True
    context.writer.module.helper("@record_failure", _RECORD_FUNCTION)
    operands = f"{context.status.text}, {site.text}, {index.text}, {extent.text}"
    context.writer.line(f"call void @record_failure({operands})")


def emit_out_of_memory(context: Context) -> None:
    """Make the entry function return 2, unless a failed check was recorded before."""
    assert context.status is not None
    context.options.uses_status = True
    place = context.writer.emit(
        f"getelementptr i64, {context.status.text}, i64 3", context.status.type
    )
    context.writer.line(f"cmpxchg {place.text}, i64 0, i64 {OUT_OF_MEMORY} monotonic monotonic")
