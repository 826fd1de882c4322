"""The name under which compiled code is kept: a hash of everything that the code depends on.

Input:  a definition, how it is scheduled, layouts, options, target      Output: 64 hex digits

That is the definition, without the lines that it stands on; the steps of a schedule, or that rules
choose them; the options; the processor; the versions of tensorlang, llvmlite and LLVM. Of
tensorlang the version number is not enough while somebody works on it: the names, sizes and times
of its files stand for what is in them.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tensorlang.ir.definition import Definition
from tensorlang.ir.serialize import definition_to_json
from tensorlang.schedule.trace import Step


@dataclass(frozen=True, slots=True)
class Origin:
    """What determines a scheduled program.

    ``steps`` is None where the rules choose; then ``text`` says which version of theirs. Else it is
    the program as printed, which adds nothing to the steps, unless somebody changed what a step
    does in the running process.
    """

    definition: Definition
    steps: tuple[Step, ...] | None
    text: str = ""


def key_of(kind: str, origin: Origin, *parts: Any) -> str | None:
    """Return the key of what ``kind`` and ``parts`` (JSON values) say is made from ``origin``.

    None if the definition holds something that has no text: then it is not kept.
    """
    try:
        definition = _without_lines(definition_to_json(origin.definition))
        steps = None if origin.steps is None else [step.to_json() for step in origin.steps]
        document = [kind, package_fingerprint(), definition, steps, origin.text, parts]
        text = json.dumps(document, separators=(",", ":"), sort_keys=True)
    except (TypeError, ValueError):
        return None
    return hashlib.sha256(text.encode()).hexdigest()


def locations_of(definition: Definition) -> list[str]:
    """Return the user's lines that code may refer to; the code keeps their places in this list."""
    return list(dict.fromkeys(str(stage.location) for stage in definition.stages))


def _without_lines(definition: dict[str, Any]) -> dict[str, Any]:
    """Return what the definition means: the same operator on another line has the same code."""
    places: dict[str, int] = {}
    stages: list[Mapping[str, Any]] = []
    for stage in definition["stages"]:
        # which stages share a line decides how a failed check is told
        line = json.dumps(stage["location"][:2])
        stages.append({**stage, "location": places.setdefault(line, len(places))})
    return {**definition, "stages": stages, "location": None, "documentation": ""}


@cache
def package_fingerprint() -> str:
    """Return a text that changes when tensorlang's own files do."""
    root = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for name, size, modified in sorted(_python_files(str(root), "")):
        digest.update(f"{name}\0{size}\0{modified}\n".encode())
    return digest.hexdigest()


def _python_files(folder: str, prefix: str) -> Iterator[tuple[str, int, int]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                if entry.name != "__pycache__":
                    yield from _python_files(entry.path, f"{prefix}{entry.name}/")
            elif entry.name.endswith(".py"):
                status = entry.stat()
                yield prefix + entry.name, status.st_size, status.st_mtime_ns


@cache
def package_version(name: str) -> str:
    """Return the version of an installed package."""
    return version(name)
