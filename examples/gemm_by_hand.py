"""A matrix product by hand: from three naive loops to the speed of a BLAS library, step by step.

Each step adds one idea to the schedule, and the script prints the speed after it, beside NumPy's.
Every step is checked when it is taken, the whole proved when it is compiled; the definition at the
top never changes.

Run it as ``python examples/gemm_by_hand.py [SIZE]``. ``--plot FILE`` also draws the figures, which
needs matplotlib; set OMP_NUM_THREADS and OPENBLAS_NUM_THREADS to choose the number of threads.
"""

import argparse
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

import tensorlang as tl
from tensorlang.cli.measure import interleave
from tensorlang.targets.cpu import CpuTarget, host_target

M, N, K = tl.dims("M N K")

STEPS = ("naive", "tile", "vectorize", "registers", "pack", "depth", "prefetch", "parallel")


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
    """Return blocks for a machine: its registers give the tile, its caches the rest.

    The tile is 6 x 16 on AVX2 (12 of 16 registers hold sums), 14 x 32 on AVX-512 (28 of 32).
    """
    tile_rows = 14 if target.vector_registers >= 32 else 6
    tile_columns = 2 * target.lanes(32)
    depth = max(64, min(512, target.l1_bytes // (4 * tile_columns) // 64 * 64))
    # A quarter of level 2 at most; and few rows, that all threads have work to the end.
    tiles = max(1, min(96, target.l2_bytes // 4 // (4 * depth)) // tile_rows)
    return Blocks(tile_rows, tile_columns, depth, tiles * tile_rows, 1024)


def schedule_matmul(blocks: Blocks, last: str = STEPS[-1]) -> tl.Schedule:
    """Return the schedule with all steps up to ``last``, for any sizes."""
    done = STEPS[: STEPS.index(last) + 1]
    height, width = blocks.tile_rows, blocks.tile_columns
    s = tl.schedule(matmul)
    i, j, k = s.loops

    # Tile: what is loaded once is used for a whole tile of the result.
    if "tile" in done:
        panel, j = s.split(j, width)
        tile, i = s.split(i, height)
        s.reorder(panel, tile, k, i, j)

    # Blocks for the caches, outside the tiles.
    if "pack" in done:
        column_block, panel = s.split(panel, blocks.columns // width)
        row_block, tile = s.split(tile, blocks.rows // height)
        s.reorder(column_block, row_block, panel, tile)
        copied_at = column_block
    if "depth" in done:
        depth_block, k = s.split(k, blocks.depth)
        s.reorder(column_block, depth_block, row_block, panel, tile, k)
        copied_at = depth_block

    # Pack: the innermost loops read both operands from one end to the other.
    if "pack" in done:
        packed_b = s.cache_read("B", at=copied_at)
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

    # Registers: the sums of a tile stay there while k runs.
    if "registers" in done:
        s.cache_write("matmul", at=tile)

    if "vectorize" in done:
        s.unroll(i)
        s.vectorize(j)

    # Prefetch: the next panel of B comes nearer while this one is used.
    if "prefetch" in done:
        s.prefetch(packed_b, at=k, along=panel, locality=2)

    # Parallel: threads share the rows, and the packing of B.
    if "parallel" in done:
        s.parallel(row_block)
        s.parallel(copy_panel)
    return s


def measure(size: int, blocks: Blocks) -> dict[str, float]:
    """Return GFLOP/s after each step, the default schedule's and NumPy's; results are compared."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((size, size), dtype=np.float32)
    B = rng.standard_normal((size, size), dtype=np.float32)
    ours, theirs = np.empty_like(A), A @ B
    functions = {step: tl.compile(schedule_matmul(blocks, step)) for step in STEPS}
    functions["no schedule"] = tl.compile(matmul)
    for step, function in functions.items():
        function(A, B, out=ours)
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4 * size**0.5, err_msg=step)

    programs: dict[str, Callable[[], object]] = {
        step: lambda function=function: function(A, B, out=ours)
        for step, function in functions.items()
    }
    programs["NumPy"] = lambda: np.matmul(A, B, out=theirs)
    slow = {step: programs.pop(step) for step in STEPS[: STEPS.index("registers")]}
    timings = interleave(slow, rounds=1) | interleave(programs, rounds=25 if size > 256 else 3)
    for name, timing in timings.items():
        speed = 2 * size**3 / timing.median / 1e9
        print(f"{name:12} {timing.median * 1e3:9.2f} ms {speed:8.1f} GFLOP/s")
    return {name: 2 * size**3 / timing.median / 1e9 for name, timing in timings.items()}


def plot(speeds: Mapping[str, float], title: str, path: str) -> None:
    """Draw the speeds as bars, and NumPy's as a line, into an SVG or PNG file."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "tensorlang"  # the same file from the same figures
    from matplotlib import pyplot

    bars = [name for name in speeds if name != "NumPy"]
    figure, axes = pyplot.subplots(figsize=(7.2, 3.8), layout="constrained")
    colours = ["#8aa4c8" if name == "no schedule" else "#2f5d9b" for name in bars]
    drawn = axes.barh(bars, [speeds[name] for name in bars], color=colours)
    axes.axvline(speeds["NumPy"], color="#b5482a", linestyle="--")
    box = {"facecolor": "white", "edgecolor": "none", "pad": 1}
    axes.bar_label(drawn, fmt="%.3g", padding=4, bbox=box)
    axes.text(speeds["NumPy"], -0.5, f" NumPy {speeds['NumPy']:.0f}", color="#b5482a", va="bottom")
    axes.invert_yaxis()
    axes.set_xlim(0, 1.2 * max(speeds.values()))
    axes.set_xlabel("GFLOP/s")
    axes.set_title(title, fontsize="medium")
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, metadata={"Date": None} if path.endswith(".svg") else None)


def main() -> None:
    """Print the schedule and the speed after each step."""
    parser = argparse.ArgumentParser(description="A matrix product scheduled by hand, in steps.")
    parser.add_argument("size", nargs="?", type=int, default=1024)
    parser.add_argument("--plot", metavar="FILE", help="an SVG or PNG file to draw into")
    options = parser.parse_args()
    target = host_target()
    blocks = choose_blocks(target)
    print(f"{target.cpu}: {blocks}\n")
    print(schedule_matmul(blocks), end="\n\n")
    speeds = measure(options.size, blocks)
    if options.plot:
        threads = os.environ.get("OMP_NUM_THREADS", "all")
        title = f"f32, {options.size} x {options.size} x {options.size}, threads: {threads}"
        plot(speeds, title, options.plot)


if __name__ == "__main__":
    main()
