"""The demo's operator and its hand-made schedule.

An unsharp mask adds to a picture what a blur takes away from it::

    sharp = clip(picture + amount * (picture - blur(picture)), 0, 1)

The blur is a Gaussian of nine taps in each direction, first along the rows, then down the columns.
Outside of the picture all is black. Pictures are planar: ``[channel, row, column]``, f32 in [0, 1].
"""

import tensorlang as tl
from tensorlang.cli.peers import RADIUS, TAPS

ROWS, COLUMNS, LANES = 64, 256, 16
"""The hand schedule's tile, whose blurred rows fit in a level-2 cache, and its vector length."""

C, H, W = tl.dims("C H W")


@tl.compute
def unsharp(picture: tl.f32[C, H, W], weights: tl.f32[TAPS], amount: tl.f32):
    """Sharpen a picture: what a separable blur takes away is added ``amount`` times."""
    padded = tl.pad(picture, {1: (RADIUS, RADIUS), 2: (RADIUS, RADIUS)})
    across = tl.tensor(
        tl.sum(weights[d] * padded[c, y, x + d] for d in tl.range(TAPS))
        for c in C
        for y in H + 2 * RADIUS
        for x in W
    )
    blurred = tl.tensor(
        tl.sum(weights[d] * across[c, y + d, x] for d in tl.range(TAPS))
        for c in C
        for y in H
        for x in W
    )
    return tl.tensor(
        tl.clip(picture[c, y, x] + amount * (picture[c, y, x] - blurred[c, y, x]), 0, 1)
        for c in C
        for y in H
        for x in W
    )


def schedule_by_hand() -> tl.Schedule:
    """Return the schedule of a person who knows caches and vectors, for pictures of any size.

    Strips of rows run in parallel. Inside one tile the padded and the half-blurred picture are made
    just before they are used, so that they stay in a cache; the second blur is never stored.
    """
    s = tl.schedule(unsharp)
    c, y, x = s.loops
    strip, tile, row, column = s.tile((y, x), (ROWS, COLUMNS))
    s.reorder(strip, c, tile, row, column)
    s.parallel(strip)
    vector, lane = s.split(column, LANES)

    s.compute_at("blurred", vector)
    s.compute_at("across", tile)
    s.compute_at("padded", tile)

    s.vectorize(lane)
    *_, lane, tap = s["blurred"].loops
    s.reorder(tap, lane)
    s.unroll(tap)
    s.vectorize(lane)

    *_, column, tap = s["across"].loops
    _, lane = s.split(column, LANES)
    s.reorder(tap, lane)
    s.unroll(tap)
    s.vectorize(lane)

    *_, column = s["padded"].loops
    _, lane = s.split(column, LANES)
    s.vectorize(lane)
    return s
