"""Pictures in and out: the photograph that scikit-image ships, other files, and PNG.

Input:  a file with ``[row, column, channel]`` bytes.
Output: a planar f32 array ``[channel, row, column]`` in [0, 1], which the programs work on.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class Photograph:
    """A planar picture and where it comes from."""

    title: str
    pixels: NDArray[np.float32]

    @property
    def size(self) -> str:
        """Return ``1411 x 1411, 3 channels``."""
        channels, height, width = self.pixels.shape
        return f"{width} x {height}, {channels} channels"


def load_photograph(path: Path | None) -> Photograph:
    """Return the picture at ``path``, or the photograph of a retina from scikit-image's wheel."""
    if path is None:
        data: Any = import_module("skimage.data")
        return Photograph("scikit-image's photograph of a retina", _to_planar(data.retina()))
    image: Any = import_module("PIL.Image")
    if not path.is_file():
        raise FileNotFoundError(f"there is no picture at {path}")
    with image.open(path) as picture:
        return Photograph(str(path), _to_planar(np.asarray(picture.convert("RGB"))))


def save_photograph(pixels: NDArray[np.float32], path: Path) -> None:
    """Write a planar picture as PNG (or whatever the name of ``path`` asks for)."""
    image: Any = import_module("PIL.Image")
    levels = np.rint(pixels * np.float32(255)).astype(np.uint8)
    try:
        image.fromarray(np.ascontiguousarray(levels.transpose(1, 2, 0))).save(path)
    except ValueError as error:
        raise OSError(f"cannot write a picture to {path}: {error}") from error


def _to_planar(levels: NDArray[np.uint8]) -> NDArray[np.float32]:
    planes = levels.transpose(2, 0, 1).astype(np.float32) / np.float32(255)
    return np.ascontiguousarray(planes)
