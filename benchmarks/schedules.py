"""The operators and schedules that are measured."""

import tensorlang as tl
from examples.matmul_by_hand import Blocks, choose_blocks, matmul, schedule_matmul
from tensorlang.targets.cpu import host_target

N = tl.dim("N")


@tl.compute
def polynomial(x: tl.f32[N]):
    """An elementwise operator of six operations."""
    return tl.tensor(((x[i] * 0.5 + 1.5) * x[i] - 0.25) * x[i] + 2.0 for i in N)


def tiled() -> tl.Schedule:
    """A matrix product with a register tile, and nothing packed."""
    s = tl.schedule(matmul)
    i, j, k = s.loops
    io, ii = s.split(i, 6)
    jo, ji = s.split(j, 16)
    s.reorder(io, jo, k, ii, ji)
    s.cache_write("matmul", at=jo)
    s.parallel(io)
    s.unroll(ii)
    s.vectorize(ji)
    return s


def tiled_packed_parallel() -> tl.Schedule:
    """A register tile, panels of B packed, rows in parallel."""
    s = tl.schedule(matmul)
    i, j, k = s.loops
    jo, ji = s.split(j, 16)
    io, ii = s.split(i, 6)
    s.reorder(jo, io, k, ii, ji)
    panel = s.cache_read("B", at=jo)
    s.layout(panel, lambda k, j: (k, j))
    s.cache_write("matmul", at=io)
    s.parallel(io)
    s.unroll(ii)
    s.vectorize(ji)
    return s


def five_levels() -> tl.Schedule:
    """Blocks of all three axes, both operands packed, sums copied in and out."""
    return schedule_matmul(Blocks(6, 16, 256, 72, 1024))


def by_hand() -> tl.Schedule:
    """The schedule of examples/matmul_by_hand.py, with this machine's blocks."""
    return schedule_matmul(choose_blocks(host_target()))
