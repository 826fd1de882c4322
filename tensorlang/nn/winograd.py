"""Winograd's minimal filtering for 3x3 windows: conv2d of stride 1 with fewer multiplications.

Input:  ``x: [B, C, H, W]``, padded already; ``u = winograd_filters(w)`` for ``w: [O, C, 3, 3]``
Output: ``[B, O, H - 2, W - 2]``, what ``conv2d(x, w)`` computes, rounded differently

::

    image   -> rows -> columns      windows of (tile + 2)^2 pixels, transformed, channels last
    columns x u  -> products        (tile + 2)^2 matrix products, which are all the work
    products -> sums -> pixels      tile^2 pixels of each window, transformed back

Tiles of 4 multiply 4 times less than the definition of conv2d and tiles of 2 2.25 times less; their
results are off by about 3e-5 and 2e-6 of the spread of the output, in f32. The transforms are those
of A. Lavin and S. Gray, "Fast Algorithms for Convolutional Neural Networks" (2015), section 4.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import tensorlang as tl
from tensorlang.lang.mistakes import definition_error
from tensorlang.nn.agreement import require_equal

Matrix = tuple[tuple[float, ...], ...]

_FILTERS: dict[int, Matrix] = {
    2: ((1, 0, 0), (0.5, 0.5, 0.5), (0.5, -0.5, 0.5), (0, 0, 1)),
    4: (
        (1 / 4, 0, 0),
        (-1 / 6, -1 / 6, -1 / 6),
        (-1 / 6, 1 / 6, -1 / 6),
        (1 / 24, 1 / 12, 1 / 6),
        (1 / 24, -1 / 12, 1 / 6),
        (0, 0, 1),
    ),
}

_WINDOWS: dict[int, Matrix] = {
    2: ((1, 0, -1, 0), (0, 1, 1, 0), (0, -1, 1, 0), (0, 1, 0, -1)),
    4: (
        (4, 0, -5, 0, 1, 0),
        (0, -4, -4, 1, 1, 0),
        (0, 4, -4, -1, 1, 0),
        (0, -2, -1, 2, 1, 0),
        (0, 2, -1, -2, 1, 0),
        (0, 4, 0, -5, 0, 1),
    ),
}

_RESULTS: dict[int, Matrix] = {
    2: ((1, 1, 1, 0), (0, 1, -1, -1)),
    4: (
        (1, 1, 1, 1, 1, 0),
        (0, 1, -1, 2, -2, 0),
        (0, 1, 1, 4, 4, 0),
        (0, 1, -1, 8, -8, 1),
    ),
}

WINOGRAD_TILES = tuple(_FILTERS)
"""The heights of tiles, in pixels, for which there are transforms."""


@tl.compute
def winograd_filters(w: Any, *, tile: int = 4, panel: int = 32):
    """Return 3x3 filters in the form that ``winograd_conv2d`` multiplies with.

    ``w: [O, C, 3, 3]`` to ``[tile + 2, tile + 2, ceil(O / panel), C, panel]``, with zeros for
    outputs beyond the last. For constant filters this is done once.
    """
    matrix = _transform(_FILTERS, tile, "winograd_filters")
    if w.ndim != 4:
        raise definition_error("winograd_filters: w has shape [O, C, 3, 3]")
    outputs, channels, height, width = w.shape
    require_equal(height, 3, "winograd_filters: filters have 3 rows")
    require_equal(width, 3, "winograd_filters: filters have 3 columns")
    size = len(matrix)
    rows = tl.tensor(
        _row(matrix, r, [w[o, c, s, q] for s in range(3)])
        for r in tl.range(size)
        for o in outputs
        for c in channels
        for q in tl.range(3)
    )
    return tl.tensor(
        tl.where(
            p * panel + l < outputs,
            _row(matrix, s, [rows[r, p * panel + l, c, q] for q in range(3)]),
            0,
        )
        for r in tl.range(size)
        for s in tl.range(size)
        for p in tl.range((outputs + panel - 1) // panel)
        for c in channels
        for l in tl.range(panel)  # noqa: E741
    )


@tl.compute
def winograd_conv2d(x: Any, u: Any, *, outputs: int, tile: int = 4, panel: int = 32):
    """Return the cross-correlation of padded images with filters that were transformed before.

    ``x: [B, C, H, W]`` with the zeros around it; ``u`` of ``winograd_filters(w)`` with the same
    ``tile`` and ``panel``; ``outputs`` is the number of filters in ``w``.
    """
    if x.ndim != 4 or u.ndim != 5:
        raise definition_error("winograd_conv2d: x has shape [B, C, H, W], u that of its filters")
    batch, channels, height, width = x.shape
    down, up = _transform(_WINDOWS, tile, "winograd_conv2d"), _RESULTS[tile]
    rows_of_u, columns_of_u, panels, depth, width_of_panel = u.shape
    for extent in (rows_of_u, columns_of_u):
        require_equal(extent, tile + 2, "winograd_conv2d: u has tile + 2 elements each way")
    require_equal(width_of_panel, panel, "winograd_conv2d: u has panels of another width")
    require_equal(panels, -(-outputs // panel), "winograd_conv2d: u has another number of outputs")
    require_equal(channels, depth, "winograd_conv2d: x has the channels of u")
    across_height = (height - 2 + tile - 1) // tile
    across_width = (width - 2 + tile - 1) // tile
    image = tl.tensor(
        tl.where((y < height) & (z < width), x[b, c, y, z], 0)
        for b in batch
        for y in tl.range(across_height * tile + 2)
        for z in tl.range(across_width * tile + 2)
        for c in channels
    )
    rows = tl.tensor(
        _row(down, r, [image[b, v * tile + k, z, c] for k in range(tile + 2)])
        for b in batch
        for v in tl.range(across_height)
        for z in tl.range(across_width * tile + 2)
        for r in tl.range(tile + 2)
        for c in channels
    )
    columns = tl.tensor(
        _row(down, s, [rows[b, v, h * tile + k, r, c] for k in range(tile + 2)])
        for r in tl.range(tile + 2)
        for s in tl.range(tile + 2)
        for b in batch
        for v in tl.range(across_height)
        for h in tl.range(across_width)
        for c in channels
    )
    products = tl.tensor(
        tl.sum(columns[r, s, b, v, h, c] * u[r, s, p, c, l] for c in channels)
        for r in tl.range(tile + 2)
        for s in tl.range(tile + 2)
        for p in panels
        for b in batch
        for v in tl.range(across_height)
        for h in tl.range(across_width)
        for l in tl.range(panel)  # noqa: E741
    )
    sums = tl.tensor(
        _row(up, i, [products[k, s, p, b, v, h, l] for k in range(tile + 2)])
        for b in batch
        for v in tl.range(across_height)
        for i in tl.range(tile)
        for h in tl.range(across_width)
        for p in panels
        for s in tl.range(tile + 2)
        for l in tl.range(panel)  # noqa: E741
    )
    pixels = tl.tensor(
        _row(up, j, [sums[b, v, i, h, p, k, l] for k in range(tile + 2)])
        for b in batch
        for v in tl.range(across_height)
        for i in tl.range(tile)
        for h in tl.range(across_width)
        for j in tl.range(tile)
        for p in panels
        for l in tl.range(panel)  # noqa: E741
    )
    return tl.tensor(
        pixels[b, y // tile, y % tile, z // tile, z % tile, o // panel, o % panel]
        for b in batch
        for o in tl.range(outputs)
        for y in tl.range(height - 2)
        for z in tl.range(width - 2)
    )


def transformed_filters(w: np.ndarray[Any, Any], tile: int, panel: int) -> np.ndarray[Any, Any]:
    """Return what ``winograd_filters`` computes, with sums in f64 that are rounded once.

    For filters that are known when a graph is compiled. ``w: [O, C, 3, 3]``, of any float dtype,
    which the result has too.
    """
    matrix = np.array(_transform(_FILTERS, tile, "transformed_filters"), np.float64)
    outputs, channels, _, _ = w.shape
    panels = -(-outputs // panel)
    padded = np.zeros((panels * panel, channels, 3, 3), np.float64)
    padded[:outputs] = w
    spread = np.einsum("ar,ocrs,bs->aboc", matrix, padded, matrix, optimize=True)
    size = len(matrix)
    blocked = spread.reshape(size, size, panels, panel, channels).swapaxes(3, 4)
    return np.ascontiguousarray(blocked, w.dtype)


def _transform(matrices: dict[int, Matrix], tile: int, operator: str) -> Matrix:
    if tile not in matrices:
        raise definition_error(f"{operator}: tile must be 2 or 4, not {tile!r}")
    return matrices[tile]


def _row(matrix: Matrix, row: Any, values: list[Any]) -> Any:
    """Return one element of ``matrix @ values``: the sum for each row, the axis choosing one."""
    *others, chosen = [_weighted(weights, values) for weights in matrix]
    for number, value in reversed(list(enumerate(others))):
        chosen = tl.where(row == number, value, chosen)
    return chosen


def _weighted(weights: tuple[float, ...], values: list[Any]) -> Any:
    """Return the sum of ``values`` times their weights, without products by 0, 1 and -1."""
    total: Any = None
    for weight, value in zip(weights, values, strict=True):
        if not weight:
            continue
        term = value if abs(weight) == 1 else value * float(abs(weight))
        if total is None:
            total = term if weight > 0 else -term
        else:
            total = total + term if weight > 0 else total - term
    return total
