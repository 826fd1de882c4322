"""A matrix product scheduled by hand, beside NumPy's.

The schedule is the one of the best BLAS libraries: both operands are packed into panels, the
reduction is cut into blocks that fit in the caches, and a tile of the result stays in registers.
The tile is chosen for the machine: 6 x 16 on AVX2 (12 of its 16 registers hold sums), 14 x 32 on
AVX-512 (28 of 32). Every step is checked when it is taken, the whole proved when it is compiled.

Run it as ``python examples/matmul_by_hand.py [SIZE]``; set OMP_NUM_THREADS and
OPENBLAS_NUM_THREADS to compare with a given number of threads.
"""

import sys
from dataclasses import dataclass

import numpy as np

import tensorlang as tl
from tensorlang.cli.measure import interleave
from tensorlang.targets.cpu import CpuTarget, host_target

M, N, K = tl.dims("M N K")


@tl.compute
def matmul(A: tl.f32[M, K], B: tl.f32[K, N]):
    """C[i, j] = sum over k of A[i, k] * B[k, j]."""
    return tl.tensor(tl.sum(A[i, k] * B[k, j] for k in K) for i in M for j in N)


@dataclass(frozen=True)
class Blocks:
    """Sizes of the blocks, from the registers outwards.

    A tile of ``tile_rows`` x ``tile_columns`` sums lives in registers. ``depth`` steps of the
    reduction read one panel of B, which stays in the level-1 cache, and ``rows`` rows of A, which
    stay in level 2. ``columns`` columns of B stay in level 3.
    """

    tile_rows: int
    tile_columns: int
    depth: int
    rows: int
    columns: int


def choose_blocks(target: CpuTarget) -> Blocks:
    """Return blocks for a machine: its registers give the tile, its caches the rest."""
    tile_rows = 14 if target.vector_registers >= 32 else 6
    tile_columns = 2 * target.lanes(32)
    depth = max(64, min(512, target.l1_bytes // (4 * tile_columns) // 64 * 64))
    tiles = max(1, min(64, target.l2_bytes // 4 // (4 * depth)) // tile_rows)
    return Blocks(tile_rows, tile_columns, depth, tiles * tile_rows, 1024)


def schedule_matmul(blocks: Blocks) -> tl.Schedule:
    """Return the schedule, for any sizes."""
    height, width = blocks.tile_rows, blocks.tile_columns
    s = tl.schedule(matmul)
    i, j, k = s.loops

    # Blocks for the caches, then tiles for the registers.
    column_block, j = s.split(j, blocks.columns)
    depth_block, k = s.split(k, blocks.depth)
    row_block, i = s.split(i, blocks.rows)
    panel, j = s.split(j, width)
    tile, i = s.split(i, height)
    s.reorder(column_block, depth_block, row_block, panel, tile, k, i, j)

    # Both operands are packed, so that the innermost loops read them from one end to the other.
    packed_b = s.cache_read("B", at=depth_block)
    s.layout(packed_b, lambda k, j: (j // width, k, j % width))
    copy_k, copy_j = packed_b.loops
    copy_panel, copy_j = s.split(copy_j, width)
    s.reorder(copy_panel, copy_k, copy_j)
    s.vectorize(copy_j)
    packed_a = s.cache_read("A", at=row_block)
    s.layout(packed_a, lambda i, k: (i // height, k, i % height))
    copy_i, copy_k = packed_a.loops
    copy_tile, copy_i = s.split(copy_i, height)
    s.reorder(copy_tile, copy_k, copy_i)
    s.unroll(copy_i)

    # Sums stay in registers while k runs; between blocks of k they are copied in and out.
    s.cache_write("matmul", at=tile)
    s.parallel(row_block)
    s.unroll(i)
    s.vectorize(j)
    return s


def main(size: int = 1024) -> None:
    """Compile, check, and print both programs' speed."""
    target = host_target()
    blocks = choose_blocks(target)
    schedule = schedule_matmul(blocks)
    print(f"{target.cpu}: {blocks}\n")
    print(schedule, end="\n\n")
    by_hand = tl.compile(schedule)

    rng = np.random.default_rng(0)
    A = rng.standard_normal((size, size), dtype=np.float32)
    B = rng.standard_normal((size, size), dtype=np.float32)
    ours, theirs = np.empty_like(A), np.empty_like(A)
    by_hand(A, B, out=ours)
    np.matmul(A, B, out=theirs)
    np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4 * size**0.5)

    programs = {
        "NumPy": lambda: np.matmul(A, B, out=theirs),
        "tensorlang by hand": lambda: by_hand(A, B, out=ours),
    }
    timings = interleave(programs, rounds=15 if size > 256 else 3)
    for name, timing in timings.items():
        speed = 2 * size**3 / timing.median / 1e9
        print(f"{name:20} {timing.median * 1e3:8.2f} ms {speed:8.1f} GFLOP/s")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
