"""The operators and schedules that are measured."""

import tensorlang as tl
from examples.gemm_by_hand import Blocks, choose_blocks, matmul, schedule_matmul
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
    """A register tile, 256 columns of B packed into panels, rows in parallel."""
    s = tl.schedule(matmul)
    i, j, k = s.loops
    block, j = s.split(j, 256)
    panel, j = s.split(j, 16)
    tile, i = s.split(i, 6)
    s.reorder(block, tile, panel, k, i, j)
    packed = s.cache_read("B", at=block)
    s.layout(packed, lambda k, j: (j // 16, k, j % 16))
    s.cache_write("matmul", at=panel)
    s.parallel(tile)
    s.unroll(i)
    s.vectorize(j)
    return s


def five_levels() -> tl.Schedule:
    """Blocks of all three axes, both operands packed, sums copied in and out."""
    return schedule_matmul(Blocks(6, 16, 256, 72, 1024))


def by_hand() -> tl.Schedule:
    """The schedule of examples/gemm_by_hand.py, with this machine's blocks."""
    return schedule_matmul(choose_blocks(host_target()))
