"""Pickled operators: by name where they can be imported, by their definitions elsewhere.

Input:  an operator made inside a function
Output: one with the same definitions, which can be called, scheduled and compiled, but not be
        traced for dtypes and attributes that it had not met when it was pickled
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tensorlang.ir.definition import Definition
from tensorlang.lang.mistakes import definition_error
from tensorlang.lang.parameters import Parameter
from tensorlang.source import SourceLocation

if TYPE_CHECKING:
    from tensorlang.lang.compute import Operator


def find_by_name(operator: Operator) -> object:
    """Return what importing the operator's module and looking up its name gives."""
    found: object = sys.modules.get(operator.__module__)
    for part in operator.function.__qualname__.split("."):
        found = getattr(found, part, None)
    return found


def restore(
    kind: type[Operator],
    name: str,
    parameters: tuple[Parameter, ...],
    location: SourceLocation,
    definitions: Mapping[Any, Definition],
) -> Operator:
    """Return an operator that has definitions, but no function."""

    def function(*_: object, **__: object) -> object:
        raise definition_error(
            f"{name} was pickled by its definitions, and is asked for another dtype, rank or "
            "attribute; use it so before pickling, or put it where it can be imported from",
            location,
        )

    function.__name__ = function.__qualname__ = name
    function.__doc__ = next(iter(definitions.values())).documentation if definitions else None
    operator = kind(function, parameters, location)
    operator.add_definitions(definitions)
    return operator
