"""A 3x3 box blur in two stages, of a picture of 3840 x 2160 in f32 and u16.

Halide's schedule by hand is strips of 32 rows, in which the first stage slides along; that of
tensorlang blocks of 8 rows and a vector, whose first stage stays in registers.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from benchmarks.libraries import torch_tensors, torch_with
from benchmarks.workload import Call, Programs, Workload

_WIDTH, _HEIGHT = 3840, 2160
_STRIP = 32
_ROWS = 8


def _programs(kind: type, threads: int) -> Programs:
    generator = np.random.default_rng(0)
    picture = (generator.random((_HEIGHT + 2, _WIDTH + 2)) * 1000).astype(kind)
    is_float = kind is np.float32
    third = np.float32(1 / 3)

    def new() -> np.ndarray:
        return np.zeros((_HEIGHT, _WIDTH), kind)

    def mean(total: np.ndarray) -> np.ndarray:
        return total * third if is_float else total // np.uint16(3)

    def numpy() -> np.ndarray:
        across = mean(picture[:, :-2] + picture[:, 1:-1] + picture[:, 2:])
        return mean(across[:-2] + across[1:-1] + across[2:])

    def ours(by_hand: bool) -> Call:
        import tensorlang as tl

        blur = _define_blur(tl.f32 if is_float else tl.u16)
        made = _in_registers(blur, 64 // picture.itemsize) if by_hand else blur
        return partial(tl.compile(made), picture, out=new())

    programs: Programs = {
        "numpy": lambda: numpy,
        "halide": lambda: _halide(picture, new()),
        "tensorlang, default": partial(ours, by_hand=False),
        "tensorlang, by hand": partial(ours, by_hand=True),
    }
    if is_float:
        programs["numba"] = lambda: _numba(picture, new())
        programs["torch"] = lambda: _torch(picture, threads)
        programs["scipy"] = lambda: _scipy(picture)
    return programs


def _define_blur(dtype: Any) -> Any:
    import tensorlang as tl

    H, W = tl.dims("H W")

    def mean(total: Any) -> Any:
        return total * (1 / 3) if dtype is tl.f32 else total // 3

    @tl.compute
    def blur(picture: dtype[H + 2, W + 2]):
        across = tl.tensor(
            mean(picture[y, x] + picture[y, x + 1] + picture[y, x + 2]) for y in H + 2 for x in W
        )
        return tl.tensor(
            mean(across[y, x] + across[y + 1, x] + across[y + 2, x]) for y in H for x in W
        )

    return blur


def _in_registers(blur: Any, lanes: int) -> Any:
    """Return a schedule whose first stage stays in registers: blocks of 8 rows and a vector."""
    import tensorlang as tl

    s = tl.schedule(blur)
    y, x = s.loops
    block, row = s.split(y, _ROWS)
    column, lane = s.split(x, lanes)
    s.reorder(block, column, row, lane)
    s.parallel(block)
    s.compute_at("across", column)
    across_row, across_lane = s["across"].loops
    s.unroll(row)
    s.unroll(across_row)
    s.vectorize(lane)
    s.vectorize(across_lane)
    return s


def _halide(picture: np.ndarray, out: np.ndarray) -> Call:
    import halide as hl

    is_float = picture.dtype == np.float32
    kind = hl.Float(32) if is_float else hl.UInt(16)
    source = hl.ImageParam(kind, 2, "source")
    x, y, row = hl.Var("x"), hl.Var("y"), hl.Var("row")
    across, result = hl.Func("across"), hl.Func("result")

    def mean(total: Any) -> Any:
        return total * hl.f32(1 / 3) if is_float else total / hl.u16(3)

    across[x, y] = mean(source[x, y] + source[x + 1, y] + source[x + 2, y])
    result[x, y] = mean(across[x, y] + across[x, y + 1] + across[x, y + 2])
    target = hl.get_host_target()
    lanes = target.natural_vector_size(kind)
    result.split(y, y, row, _STRIP).parallel(y).vectorize(x, lanes)
    across.store_at(result, y).compute_at(result, row).vectorize(x, lanes)
    compiled = result.compile_to_callable([source], target)
    buffers = hl.Buffer(picture), hl.Buffer(out)

    def call() -> np.ndarray:
        compiled(*buffers)
        return out

    return call


def _numba(picture: np.ndarray, out: np.ndarray) -> Call:
    import numba

    prange, third, strip = numba.prange, np.float32(1 / 3), _STRIP

    @numba.njit(parallel=True, fastmath=True)
    def blur(picture, out):
        height, width = out.shape
        for number in prange((height + strip - 1) // strip):
            top = number * strip
            bottom = min(height, top + strip)
            across = np.empty((strip + 2, width), np.float32)
            for y in range(top, bottom + 2):
                for x in range(width):
                    total = picture[y, x] + picture[y, x + 1] + picture[y, x + 2]
                    across[y - top, x] = total * third
            for y in range(bottom - top):
                for x in range(width):
                    total = across[y, x] + across[y + 1, x] + across[y + 2, x]
                    out[top + y, x] = total * third
        return out

    return partial(blur, picture, out)


def _torch(picture: np.ndarray, threads: int) -> Call:
    library = torch_with(threads)
    (given,) = torch_tensors(picture[None, None])
    return lambda: library.nn.functional.avg_pool2d(given, 3, stride=1)


def _scipy(picture: np.ndarray) -> Call:
    from scipy.ndimage import uniform_filter

    out = np.empty_like(picture)
    return lambda: uniform_filter(picture, 3, output=out)[1:-1, 1:-1]


WORKLOADS = [
    Workload(f"blur {kind.__name__}", partial(_programs, kind), bytes=2.0 * size * _WIDTH * _HEIGHT)
    for kind, size in ((np.float32, 4), (np.uint16, 2))
]
