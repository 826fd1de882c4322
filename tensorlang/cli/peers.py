"""The demo's unsharp mask as users of SciPy and of NumPy write it: the reference, the competition.

Input:  a planar picture ``[channel, row, column]``, f32 in [0, 1], and how much to sharpen.
Output: the sharpened picture.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

SIGMA = 2.0
RADIUS = 4
TAPS = 2 * RADIUS + 1

Picture = NDArray[np.float32]


def gaussian_weights() -> NDArray[np.float32]:
    """Return the nine taps, which sum to one."""
    distance = np.arange(-RADIUS, RADIUS + 1)
    weights = np.exp(-0.5 * (distance / SIGMA) ** 2)
    return (weights / weights.sum()).astype(np.float32)


def unsharp_with_scipy(picture: Picture, amount: float) -> Picture:
    """Return what SciPy's Gaussian filter makes of it: the reference, and the time to beat."""
    ndimage: Any = import_module("scipy.ndimage")
    sigmas = (0.0, SIGMA, SIGMA)
    blurred = ndimage.gaussian_filter(picture, sigmas, mode="constant", truncate=RADIUS / SIGMA)
    return np.clip(picture + np.float32(amount) * (picture - blurred), 0, 1)


def unsharp_with_numpy(picture: Picture, weights: Picture, amount: float) -> Picture:
    """Return the same through shifted slices."""
    _, height, width = picture.shape
    padded = np.pad(picture, ((0, 0), (RADIUS, RADIUS), (RADIUS, RADIUS)))
    across = weights[0] * padded[:, :, :width]
    for tap in range(1, TAPS):
        across += weights[tap] * padded[:, :, tap : tap + width]
    blurred = weights[0] * across[:, :height]
    for tap in range(1, TAPS):
        blurred += weights[tap] * across[:, tap : tap + height]
    return np.clip(picture + np.float32(amount) * (picture - blurred), 0, 1)
