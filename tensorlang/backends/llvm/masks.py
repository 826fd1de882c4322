"""Conditions on index expressions as scalar truth values and lane masks.

Input:  ``N - 1 - 8*jo - ji >= 0``, ji the lane of 8
Output: ``iota <= splat(trunc(clamp(N - 1 - 8*jo, -1, 8)))``, an ``<8 x i1>``

A form that moves steadily from lane to lane needs one scalar bound, clamped so that it fits 32 bits
whatever the sizes are; only other forms are evaluated in every lane.
"""

from __future__ import annotations

from dataclasses import dataclass

from tensorlang.backends.llvm.context import Context, Mask
from tensorlang.backends.llvm.indices import (
    emit_index,
    floor_divide_by_constant,
    lane_stride,
    lane_zero,
    least,
)
from tensorlang.backends.llvm.types import I64, Value, constant, lane_constants
from tensorlang.ir.affine import Affine
from tensorlang.lower.data import depends_on_data


@dataclass(frozen=True, slots=True)
class Conditions:
    """Forms that must all be >= 0, split by whether they differ from lane to lane."""

    uniform: tuple[Affine, ...]
    varying: tuple[Affine, ...]


def split_conditions(context: Context, forms: tuple[Affine, ...]) -> Conditions:
    """Return ``forms`` apart: those that are one truth value for all lanes, and the others."""
    varying = tuple([form for form in forms if lane_stride(context, form) != 0])
    return Conditions(tuple([form for form in forms if form not in varying]), varying)


def emit_conjunction(context: Context, forms: tuple[Affine, ...]) -> Value | None:
    """Return whether all ``forms`` are >= 0: scalar, or a mask if one varies; None for no form."""
    result: Value | None = None
    for form in forms:
        value = emit_condition(context, form)
        result = value if result is None else context.builder.binary("and", result, value)
    return result


def emit_condition(context: Context, form: Affine) -> Value:
    """Return whether ``form`` >= 0: a scalar, or a mask where it differs from lane to lane."""
    key = ("nonnegative", form)
    known = context.indices.get(key)
    if known is None:
        known = _emit_condition(context, form)
        if not depends_on_data(form):
            context.indices.set(key, known)
    return known


def _emit_condition(context: Context, form: Affine) -> Value:
    builder = context.builder
    stride = lane_stride(context, form)
    if not stride:
        value = emit_index(context, form)
        return builder.compare("ge", value, builder.constant(0, value))
    start = emit_index(context, lane_zero(context, form))
    if stride < 0:  # lane <= floor(start / -stride)
        bound, predicate = floor_divide_by_constant(context, start, -stride), "le"
    else:  # lane >= ceil(-start / stride)
        bound, predicate = builder.negate(floor_divide_by_constant(context, start, stride)), "ge"
    bound = builder.intrinsic("smin", bound, constant(context.lanes, I64))
    bound = builder.intrinsic("smax", bound, constant(-1, I64))
    bound = builder.convert("trunc", bound, "i32")
    return builder.compare(predicate, lane_constants(range(context.lanes), "i32"), bound)


def is_nonempty(context: Context, varying: tuple[Affine, ...]) -> bool:
    """Whether some lane satisfies all the forms for certain: the first, or else the last."""
    strides = [lane_stride(context, form) for form in varying]
    starts = [lane_zero(context, form) for form in varying]
    pairs = list(zip(strides, starts, strict=True))
    if all(stride is not None and stride < 0 for stride in strides):
        return all(least(context, start) >= 0 for start in starts)
    if all(stride is not None and stride > 0 for stride in strides):
        last = context.lanes - 1
        return all(least(context, start + (stride or 0) * last) >= 0 for stride, start in pairs)
    return False


def narrowed(context: Context, condition: Value, nonempty: bool = False) -> Mask:
    """Return the present mask restricted to the lanes of ``condition``."""
    condition = context.builder.broadcast(condition, context.lanes)
    if context.mask is None:
        return Mask(condition, nonempty)
    value = context.builder.binary("and", context.mask.value, condition)
    return Mask(value, nonempty, context.mask)


def inverted(context: Context, condition: Value) -> Value:
    """Return where ``condition`` does not hold."""
    return context.builder.binary("xor", condition, context.builder.constant(True, condition))


def any_lane(context: Context, mask: Value) -> Value:
    """Return whether ``mask`` holds in some lane, computed once a block."""
    key = ("any", mask.ref)
    known = context.values.get(key)
    if known is None:
        known = context.builder.any(mask)
        context.values.set(key, known)
    return known
