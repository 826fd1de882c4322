"""A box blur of a picture, scheduled three ways: what locality is worth.

The blur has two stages: along the rows, then down the columns. Made one after the other, the
picture goes through memory twice; fused into one expression, nine reads are made for each pixel; in
tiles, the rows that a tile needs are made just before it, and stay in a cache.

Run it as ``python examples/blur.py [HEIGHT WIDTH]``.
"""

import sys

import numpy as np

import tensorlang as tl
from tensorlang.cli.measure import interleave

H, W = tl.dims("H W")


@tl.compute
def blur(picture: tl.f32[H + 2, W + 2]):
    """Return the mean of each pixel's 3 x 3 neighbourhood."""
    across = tl.tensor(
        (picture[y, x] + picture[y, x + 1] + picture[y, x + 2]) / 3 for y in H + 2 for x in W
    )
    return tl.tensor((across[y, x] + across[y + 1, x] + across[y + 2, x]) / 3 for y in H for x in W)


def in_two_passes() -> tl.Schedule:
    """Return a schedule that stores the half-blurred picture."""
    s = tl.schedule(blur)
    for y, x in (s["across"].loops, s.loops):
        _, lane = s.split(x, 16)
        s.vectorize(lane)
        block, _ = s.split(y, 32)
        s.parallel(block)
    return s


def in_one_expression() -> tl.Schedule:
    """Return a schedule that stores nothing and reads nine pixels for each one."""
    s = tl.schedule(blur)
    s.compute_inline("across")
    y, x = s.loops
    _, lane = s.split(x, 16)
    s.vectorize(lane)
    block, _ = s.split(y, 32)
    s.parallel(block)
    return s


def in_strips() -> tl.Schedule:
    """Return a schedule that makes the rows of a strip just before they are used."""
    s = tl.schedule(blur)
    y, x = s.loops
    strip, _ = s.split(y, 32)
    s.parallel(strip)
    s.compute_at("across", strip)
    for column in (x, s["across"].loops[-1]):
        _, lane = s.split(column, 16)
        s.vectorize(lane)
    return s


def main(height: int = 2160, width: int = 3840) -> None:
    """Check the schedules against NumPy and print their times."""
    picture = np.random.default_rng(0).random((height + 2, width + 2), dtype=np.float32)

    def with_numpy() -> np.ndarray:
        across = (picture[:, :-2] + picture[:, 1:-1] + picture[:, 2:]) / np.float32(3)
        return (across[:-2] + across[1:-1] + across[2:]) / np.float32(3)

    expected = with_numpy()
    out = np.empty_like(expected)
    programs = {"NumPy": with_numpy}
    for schedule in (in_two_passes, in_one_expression, in_strips):
        compiled = tl.compile(schedule())
        np.testing.assert_allclose(compiled(picture), expected, rtol=1e-5, atol=1e-6)
        programs[schedule.__name__] = lambda compiled=compiled: compiled(picture, out=out)
    print(in_strips(), end="\n\n")
    for name, timing in interleave(programs, rounds=11).items():
        print(f"{name:20} {timing.median * 1e3:8.2f} ms")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]))
