"""Pictures in and out."""

from pathlib import Path

import numpy as np
import pytest

from tensorlang.cli.photograph import load_photograph, save_photograph


def test_the_shipped_photograph_needs_no_download() -> None:
    photograph = load_photograph(None)
    assert photograph.pixels.shape == (3, 1411, 1411)
    assert photograph.pixels.dtype == np.float32
    assert photograph.pixels.flags.c_contiguous
    assert 0.5 < photograph.pixels.max() <= 1
    assert photograph.size == "1411 x 1411, 3 channels"


def test_a_written_picture_comes_back(tmp_path: Path) -> None:
    levels = np.random.default_rng(0).integers(0, 256, (3, 5, 7))
    pixels = levels.astype(np.float32) / np.float32(255)
    save_photograph(pixels, tmp_path / "picture.png")
    back = load_photograph(tmp_path / "picture.png")
    np.testing.assert_array_equal(back.pixels, pixels)
    assert back.title == str(tmp_path / "picture.png")


def test_a_missing_file_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=f"^there is no picture at {tmp_path / 'x.png'}$"):
        load_photograph(tmp_path / "x.png")


def test_an_unknown_format_is_said_so(tmp_path: Path) -> None:
    path = tmp_path / "picture.xyz"
    with pytest.raises(OSError, match=f"^cannot write a picture to {path}: unknown file extension"):
        save_photograph(np.zeros((3, 2, 2), np.float32), path)
