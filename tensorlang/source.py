"""Where the user wrote something: file, line and the text of that line.

Every object that a user makes (stage, step of a schedule) remembers its place, and every error
names it. A frame is the user's when its code lies outside this package and NumPy, which calls back
(``np.sum(x)``).
"""

from __future__ import annotations

import linecache
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import numpy as np

_NOT_THE_USERS = tuple(f"{Path(file).parent}{os.sep}" for file in (__file__, np.__file__))


@dataclass(frozen=True, slots=True)
class SourceLocation:
    """A line of the user's program."""

    file: str
    line: int
    function: str = ""

    @property
    def text(self) -> str:
        """The line itself, stripped; empty when the source is not at hand."""
        return linecache.getline(self.file, self.line).strip()

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


UNKNOWN = SourceLocation("<unknown>", 0)


def location_of(frame: FrameType) -> SourceLocation:
    """Return the line at which ``frame`` stands."""
    return SourceLocation(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)


def user_frame(depth: int = 1) -> FrameType | None:
    """Return the user's innermost frame, starting ``depth`` frames up."""
    frame: FrameType | None = sys._getframe(depth)  # pyright: ignore[reportPrivateUsage]
    while frame is not None and frame.f_code.co_filename.startswith(_NOT_THE_USERS):
        frame = frame.f_back
    return frame


def user_location(depth: int = 1) -> SourceLocation:
    """Return the user's line that led to the present call."""
    frame = user_frame(depth + 1)
    return UNKNOWN if frame is None else location_of(frame)
