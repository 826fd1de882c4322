"""Errors of definitions: what was written, at which of the user's lines, and what to write instead.

Input:  a message, and the place it is about (by default the user's innermost line)
Output: ``DefinitionError("X has 2 axes, but 1 index is given ... at f.py:7: return X[i]")``
"""

from __future__ import annotations

import dis
import re
from types import FrameType

from tensorlang.errors import DefinitionError
from tensorlang.source import UNKNOWN, SourceLocation, location_of, user_frame, user_location

_BUILTINS = (
    "sum", "max", "min", "any", "all", "sorted", "list", "tuple", "set", "dict", "range",
)  # fmt: skip
_WITH_TWIN = ("sum", "max", "min", "any", "all")
_OF_TWO = {"max": "maximum", "min": "minimum"}


def definition_error(message: str, location: SourceLocation | None = None) -> DefinitionError:
    """Return the error, to be raised by the caller, with the user's line below the message."""
    place = user_location() if location is None else location
    if place is UNKNOWN:
        return DefinitionError(message)
    return DefinitionError(f"{message}\n  at {place}: {place.text}")


def no_truth_value() -> DefinitionError:
    """Return the error of ``if``, ``and``, ``or``, ``not``, ``any`` and the like on expressions."""
    frame = user_frame(2)
    used, instead = _describe_truth_test(frame)
    return definition_error(
        f"{used}, but an expression stands for every element at once and has no truth value; "
        f"{instead}",
        None if frame is None else location_of(frame),
    )


def no_integer(what: str) -> DefinitionError:
    """Return the error of ``range(N)``, of ``[1, 2][i]`` and the like."""
    frame = user_frame(2)
    if frame is not None and builtin_at(frame) == "range":
        return definition_error(
            f"the builtin range needs the value of {what}, which is not known while the operator "
            f"is traced; write `for i in {what}`, or tl.range",
            location_of(frame),
        )
    return definition_error(
        f"{what} is used where Python needs an integer (range, a list index, a slice), but its "
        "value is not known while the operator is traced; for a loop write tl.range, for an "
        "element index a tensor parameter"
    )


_WHERE = "write tl.where(condition, a, b)"
_BITWISE = "write & for `and`, | for `or`, ~ for `not`, with parentheses around each comparison"


def _describe_truth_test(frame: FrameType | None) -> tuple[str, str]:
    general = (
        "an expression is used as a condition",
        f"for `if` {_WHERE}; {_BITWISE}; for the builtins any and all, tl.any and tl.all",
    )
    if frame is None or frame.f_lasti < 0:
        return general
    name = _instruction_at(frame)
    if name == "UNARY_NOT":
        return "`not` is applied to an expression", _BITWISE
    if name in ("JUMP_IF_FALSE_OR_POP", "JUMP_IF_TRUE_OR_POP"):
        word = "and" if "FALSE" in name else "or"
        return f"`{word}` (or a chained comparison) is applied to an expression", _BITWISE
    if name.startswith(("CALL", "PRECALL")):
        builtin = builtin_at(frame)
        if builtin in _OF_TWO:
            return (
                f"the builtin {builtin} is applied to an expression",
                f"write tl.{_OF_TWO[builtin]}(a, b), or tl.{builtin}(x[i] for i in N)",
            )
        if builtin in _WITH_TWIN:
            return f"the builtin {builtin} is applied to an expression", f"write tl.{builtin}"
        return general
    if name.startswith("POP_JUMP") and frame.f_code.co_name == "<genexpr>":
        return (
            "`if` in a comprehension tests an expression",
            f"{_WHERE} in its body (or & for `and`, | for `or`)",
        )
    if name.startswith("POP_JUMP"):
        return "`if` (or `and`, `or`) tests an expression", f"{_WHERE}, or {_BITWISE}"
    return general


def _instruction_at(frame: FrameType) -> str:
    """Return the instruction that needs the truth value, by its name in Python 3.11.

    From 3.12 on `and` and `or` are a copy and a jump; from 3.13 on a comparison, or an instruction
    of its own, takes the truth value before the jump or `not` that it is for.
    """
    instructions = list(dis.get_instructions(frame.f_code))
    offsets = [instruction.offset for instruction in instructions]
    if frame.f_lasti not in offsets:
        return ""
    place = offsets.index(frame.f_lasti)
    names = ["", *[instruction.opname for instruction in instructions], ""]
    before, name, after = names[place : place + 3]
    if name in ("TO_BOOL", "COMPARE_OP"):
        name = after
    if name.startswith("POP_JUMP") and before == "COPY":
        return "JUMP_IF_FALSE_OR_POP" if "FALSE" in name else "JUMP_IF_TRUE_OR_POP"
    return name


def builtin_at(frame: FrameType) -> str | None:
    """Return the Python builtin that the line of ``frame`` calls, if the text shows just one."""
    text = location_of(frame).text
    found = {name for name in _BUILTINS if re.search(rf"(?<![\w.]){name}\(", text)}
    return found.pop() if len(found) == 1 else None


def python_iteration(what: str, frame: FrameType | None) -> DefinitionError:
    """Return the error of a builtin (``sum``, ``max``, ``list``) or a loop that iterates a size."""
    builtin = None if frame is None else builtin_at(frame)
    where = None if frame is None else location_of(frame)
    if builtin in _WITH_TWIN:
        return definition_error(
            f"the builtin {builtin} iterates over {what}, whose value is not known while the "
            f"operator is traced; write tl.{builtin}",
            where,
        )
    return definition_error(
        f"Python itself iterates over {what} ({builtin or 'a builtin, or a `for` statement'}), "
        "whose value is not known while the operator is traced; write a comprehension inside "
        "tl.tensor, tl.sum, tl.max, tl.min, tl.any, tl.all or tl.reduce",
        where,
    )
