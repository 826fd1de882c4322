"""Operators and schedules of a user's file, for the commands that show them.

Input:  ``"blur.py:blur"``, ``["M=64"]``      Output: ``[("blur", <Schedule of blur>)]``

The file runs as a module would: what stands under ``if __name__ == "__main__"`` does not.
"""

from __future__ import annotations

import runpy
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tensorlang.errors import TensorlangError
from tensorlang.lang.compute import Operator
from tensorlang.schedule.entry import schedule
from tensorlang.schedule.schedule import Schedule


class NotShown(TensorlangError, ValueError):  # noqa: N818 - it says why
    """A file, a name or a size that a command cannot show, and what to write instead."""


def load_program(
    text: str, sizes: Sequence[str], default: bool = True
) -> list[tuple[str, Schedule]]:
    """Return the named operator or schedule of a file, or all that it has, as schedules.

    ``sizes`` are ``"M=64"``, for sizes and attributes of operators. An operator gets the schedule
    that the rules choose. Raises NotShown for what is not there.
    """
    path, name = _split(text)
    if not path.is_file():
        raise NotShown(f"there is no file {path}")
    sys.path.insert(0, str(path.parent.resolve()))
    try:
        names = runpy.run_path(str(path), run_name=path.stem)
    finally:
        sys.path.pop(0)
    found = {
        key: value for key, value in names.items()
        if isinstance(value, Operator | Schedule) and not key.startswith("_")
    }  # fmt: skip
    if name:
        if name not in found:
            known = ", ".join(found) or "none"
            raise NotShown(f"{path} has no operator or schedule called {name}; it has {known}")
        found = {name: found[name]}
    if not found:
        raise NotShown(f"{path} has no operator (@tl.compute) and no schedule at its top level")
    fixed = dict(_size(item) for item in sizes)
    return [
        (key, _as_schedule(key, value, fixed))
        for key, value in found.items()
        if name or not (isinstance(value, Operator) and value.is_generic)
    ]


def _split(text: str) -> tuple[Path, str]:
    path, colon, name = text.rpartition(":")
    if colon and not Path(text).exists():
        return Path(path), name
    return Path(text), ""


def _size(item: str) -> tuple[str, int]:
    name, equals, value = item.partition("=")
    if not equals or not name.strip().isidentifier() or not value.strip().lstrip("-").isdecimal():
        raise NotShown(f"--size takes NAME=NUMBER, such as M=64, found {item!r}")
    return name.strip(), int(value)


def _as_schedule(name: str, value: Operator | Schedule, fixed: dict[str, int]) -> Schedule:
    if isinstance(value, Schedule):
        if fixed:
            raise NotShown(f"{name} is a schedule, whose sizes are fixed where it is made")
        return value
    if value.is_generic:
        raise NotShown(
            f"{name} has no annotations: show a schedule of it, such as "
            f"tl.schedule({name}, tl.f32[M, N]).default()"
        )
    made: Any = schedule(value, **fixed)
    return made.default()
