"""The record of a schedule: steps that name everything by text, so that they can be taken again.

Input:  ``s.split(i, 6)``, taken on a handle      Output: ``Step("split", ("i", 6), {})``

A trace replays on the same operator, on other sizes, or on another operator with loops of the same
names; it is Python source to start from, and JSON to keep. JSON is read, never executed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from tensorlang.source import UNKNOWN, SourceLocation

JSON_VERSION = 1


@dataclass(frozen=True, slots=True)
class LayoutText:
    """A layout map as text: ``lambda k, n: (n // 16, k, n % 16)``."""

    variables: tuple[str, ...]
    indices: tuple[str, ...]

    def __str__(self) -> str:
        parameters = "".join(f" {', '.join(self.variables)}" if self.variables else "")
        return f"lambda{parameters}: ({''.join(f'{index}, ' for index in self.indices).rstrip()})"


@dataclass(frozen=True, slots=True, repr=False)
class Step:
    """One call of a primitive: loops by path, stages and tensors by name."""

    name: str
    arguments: tuple[Any, ...]
    keywords: Mapping[str, Any] = field(default_factory=dict[str, Any])
    results: tuple[str, ...] = ()
    location: SourceLocation = UNKNOWN
    by_rule: bool = False

    def __str__(self) -> str:
        given = [_python(argument) for argument in self.arguments]
        given += [f"{key}={_python(value)}" for key, value in self.keywords.items()]
        return f"{self.name}({', '.join(given)})"

    def __repr__(self) -> str:
        made = f" -> {', '.join(self.results)}" if self.results else ""
        return f"<{self}{made}>"

    def to_json(self) -> dict[str, Any]:
        """Return the step as plain lists, strings and numbers."""
        return {
            "name": self.name,
            "arguments": [_to_json(argument) for argument in self.arguments],
            "keywords": {key: _to_json(value) for key, value in self.keywords.items()},
        }


def _python(value: Any) -> str:
    if isinstance(value, LayoutText):
        return str(value)
    if value is ...:
        return "..."
    if isinstance(value, tuple | list):
        return f"[{', '.join(_python(item) for item in cast('list[Any]', value))}]"
    return repr(value)


def _to_json(value: Any) -> Any:
    if isinstance(value, LayoutText):
        return {"layout": {"variables": list(value.variables), "indices": list(value.indices)}}
    if isinstance(value, tuple | list):
        return [_to_json(item) for item in cast("list[Any]", value)]
    return value


def step_from_json(data: Any) -> Step:
    """Return the step that :meth:`Step.to_json` wrote; raises ValueError for anything else."""
    record = cast("dict[str, Any]", data) if isinstance(data, dict) else {}
    name, arguments = record.get("name"), record.get("arguments")
    keywords = record.get("keywords", {})
    if not (isinstance(name, str) and isinstance(arguments, list) and isinstance(keywords, dict)):
        raise ValueError(f"a step needs a name, a list of arguments and keywords: {data!r}")
    return Step(
        name,
        tuple(_from_json(argument) for argument in cast("list[Any]", arguments)),
        {key: _from_json(item) for key, item in cast("dict[str, Any]", keywords).items()},
    )


def _from_json(value: Any) -> Any:
    if isinstance(value, dict):
        record = cast("dict[str, Any]", value)
        layout = record.get("layout")
        if not isinstance(layout, dict):
            raise ValueError(f"{record!r} is no argument of a step")
        parts = cast("dict[str, list[Any]]", layout)
        return LayoutText(tuple(map(str, parts["variables"])), tuple(map(str, parts["indices"])))
    if isinstance(value, list):
        return tuple(_from_json(item) for item in cast("list[Any]", value))
    if value is None or isinstance(value, str | int | float | bool):
        return value
    raise ValueError(f"{value!r} is no argument of a step")


def to_python(operator: str, fixed: Mapping[str, Any], steps: tuple[Step, ...]) -> str:
    """Return source that rebuilds a schedule: one line a step, with everything named by text."""
    sizes = "".join(f", {key}={value!r}" for key, value in fixed.items())
    return "\n".join([f"s = tl.schedule({operator}{sizes})", *(f"s.{step}" for step in steps)])
