"""Scheduled programs that are right, by name, with their inits placed."""

from __future__ import annotations

from collections.abc import Callable

from tensorlang.ir.program import Program
from tensorlang.schedule.place_inits import place_inits
from tests.poly import definitions as ops
from tests.poly.scheduling import (
    cache_read,
    cache_write,
    compute_at,
    fuse,
    naive,
    reorder,
    set_kind,
    split,
    split_fused,
)


def tiled() -> Program:
    program = naive(ops.matmul())
    program = split(split(program, "i", 6), "j", 16)
    program = reorder(program, "j.o", "i.o", "k", "i.i", "j.i")
    return cache_write(program, program.definition.outputs[0], "i.o")


def packed() -> Program:
    program = tiled()
    program = cache_read(program, program.definition.inputs[1], "j.o")
    program = set_kind(program, "j.o", "parallel")
    return place_inits(set_kind(program, "j.i", "vectorized"))


def blocked() -> Program:
    """Five levels, K blocked, both operands packed, accumulators copied in and out."""
    program = naive(ops.matmul())
    a, b = program.definition.inputs
    program = split(split(program, "j", 512), "j.i", 16)
    program = split(program, "k", 256)
    program = split(split(program, "i", 96), "i.i", 6)
    program = reorder(program, "j.o", "k.o", "i.o", "j.i.o", "i.i.o", "k.i", "i.i.i", "j.i.i")
    program = set_kind(program, "j.i.i", "vectorized")
    program = set_kind(program, "i.o", "parallel")
    program = cache_write(program, program.definition.outputs[0], "i.i.o", copy_in=True)
    return place_inits(cache_read(cache_read(program, b, "k.o"), a, "i.o"))


def blur_rows_at() -> Program:
    """The first stage of a stencil recomputed for every strip of the second."""
    program = split(naive(ops.blur()), "i", 32, number=1)
    program = compute_at(program, program.stages[0], "i.o")
    return set_kind(program, "i.o", "parallel")


def blur_tiles() -> Program:
    program = split(split(naive(ops.blur()), "i", 32, number=1), "j", 64, number=1)
    program = reorder(program, "i.o", "j.o", "i.i", "j.i")
    program = compute_at(program, program.stages[0], "j.o")
    return set_kind(set_kind(program, "i.o", "parallel"), "j.i", "vectorized")


def fused() -> Program:
    program = fuse(naive(ops.blur()), "i", "j")
    return split_fused(program, 128, "parallel")


def fused_matmul() -> Program:
    return place_inits(fuse(naive(ops.matmul()), "i", "j"))


def scan_rows() -> Program:
    return set_kind(split(naive(ops.cumulative_sum()), "i", 8), "i.o", "parallel")


def softmax_tiled() -> Program:
    program = naive(ops.softmax())
    for _ in range(4):
        program = split(program, "i", 4)
    return place_inits(program)


def triangular_split() -> Program:
    program = split(split(naive(ops.triangular()), "k", 8), "i", 4)
    return place_inits(program)


def triangular_blocked() -> Program:
    """Blocks above the diagonal add nothing: the value passes through any number of copies."""
    program = split(naive(ops.triangular()), "k", 8)
    program = cache_write(program, program.definition.outputs[0], "k.o", copy_in=True)
    return place_inits(program)


def argmax_private_index() -> Program:
    """One tensor of a tuple in a private box, the other in memory for the whole program."""
    program = naive(ops.argmax())
    return place_inits(cache_write(program, program.definition.outputs[0], "i"))


EXAMPLES: dict[str, Callable[[], Program]] = {
    "matmul": lambda: place_inits(naive(ops.matmul())),
    "matmul with fixed sizes": lambda: place_inits(naive(ops.matmul(7, 1, 0))),
    "softmax": lambda: place_inits(naive(ops.softmax())),
    "blur": lambda: naive(ops.blur()),
    "lazy halo": lambda: naive(ops.padded_stencil()),
    "scan": lambda: naive(ops.cumulative_sum()),
    "argmax": lambda: place_inits(naive(ops.argmax())),
    "triangular": lambda: place_inits(naive(ops.triangular())),
    "gather": lambda: naive(ops.gather()),
    "ordered": lambda: place_inits(naive(ops.ordered_sum())),
    "stencil chain": lambda: naive(ops.stencil_chain()),
    "flatten": lambda: naive(ops.flatten()),
    "flatten, split": lambda: split(naive(ops.flatten()), "i", 8, number=1),
    "unflatten": lambda: naive(ops.unflatten()),
    "unflatten, fused": lambda: fuse(naive(ops.unflatten()), "i", "j"),
    "tiled": lambda: place_inits(tiled()),
    "packed": packed,
    "blocked": blocked,
    "blur, rows at strips": blur_rows_at,
    "blur, rows at tiles": blur_tiles,
    "fused": fused,
    "fused matmul": fused_matmul,
    "scan, parallel rows": scan_rows,
    "softmax, split": softmax_tiled,
    "triangular, split": triangular_split,
    "triangular, blocked": triangular_blocked,
    "argmax, private index": argmax_private_index,
}
