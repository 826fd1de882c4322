"""Lanes that need more than the others, on a path of their own.

Input:  what usual lanes need, which lanes are rare, and how theirs are computed
Output: both, chosen lane by lane; where no lane is rare, the price is one test and one branch

Zeros, subnormal numbers, infinities and NaN cost an elementary function as many instructions as
its polynomial. They hardly ever come, and most often not alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tensorlang.backends.llvm.builder import Builder
from tensorlang.backends.llvm.types import Value


def with_rare_lanes(
    builder: Builder,
    rare: Value,
    usual: Sequence[Value],
    compute: Callable[[], Sequence[Value]],
    name: str = "rare",
) -> list[Value]:
    """Return ``usual``, but what ``compute`` gives in the lanes that are ``rare``."""
    writer = builder.writer
    before = writer.block
    apart, done = writer.label(name), writer.label("done")
    writer.branch(builder.unlikely(builder.any(rare)), apart, done)
    writer.place(apart)
    chosen = [
        builder.select(rare, other, value) for other, value in zip(compute(), usual, strict=True)
    ]
    after = writer.block
    writer.jump(done)
    writer.place(done)
    return [
        writer.emit(
            f"phi {value.type.text} [ {value.ref}, %{before} ], [ {other.ref}, %{after} ]",
            value.type,
        )
        for value, other in zip(usual, chosen, strict=True)
    ]


def is_not_normal(builder: Builder, magnitude: Value) -> Value:
    """Tell which lanes are zero, subnormal, negative, infinite or NaN, by one comparison."""
    bits = builder.bits(magnitude)
    wide = magnitude.type.bits == 64
    least, infinite = (1 << 52, 0x7FF << 52) if wide else (1 << 23, 0xFF << 23)
    above = builder.subtract(bits, builder.constant(least, bits))
    return builder.compare("ge", above, builder.constant(infinite - least, bits), signed=False)
