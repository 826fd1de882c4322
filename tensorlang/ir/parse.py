"""Text back to index expressions: what a saved schedule holds is read, never executed.

Input:  ``"(k + 15) // 16"`` and the variables by name       Output: the ``Affine``
"""

from __future__ import annotations

import ast
from collections.abc import Mapping

from tensorlang.ir.affine import Affine, Var, affine, minimum


class ParseError(ValueError):
    """Text that is no index expression over the known names."""


def parse_affine(text: str, names: Mapping[str, Var]) -> Affine:
    """Return the index expression that ``text`` spells with ``+ - * // %``, ``min`` and names.

    Raises ParseError for anything else, saying what was not understood.
    """
    try:
        tree = ast.parse(_without_dots(text, names).strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ParseError(f"{text!r} is no index expression") from None
    by_identifier = {_identifier(name): variable for name, variable in names.items()}
    return _convert(tree.body, by_identifier, text)


def _identifier(name: str) -> str:
    return name.replace(".", "__dot__").replace("/", "__slash__")


def _without_dots(text: str, names: Mapping[str, Var]) -> str:
    for name in sorted(names, key=len, reverse=True):
        if "." in name or "/" in name:
            text = text.replace(name, _identifier(name))
    return text


def _convert(node: ast.expr, names: Mapping[str, Var], text: str) -> Affine:
    match node:
        case ast.Constant(value=int(value)) if not isinstance(value, bool):
            return affine(value)
        case ast.Name(id=name) if name in names:
            return affine(names[name])
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_convert(operand, names, text)
        case ast.BinOp(left=left, op=operator, right=right):
            a, b = _convert(left, names, text), _convert(right, names, text)
            match operator:
                case ast.Add():
                    return a + b
                case ast.Sub():
                    return a - b
                case ast.Mult():
                    return a * b
                case ast.FloorDiv() if b != affine(0):
                    return a // b
                case ast.Mod() if b != affine(0):
                    return a % b
                case _:
                    pass
        case ast.Call(func=ast.Name(id="min"), args=args, keywords=[]) if args:
            return minimum(*[_convert(arg, names, text) for arg in args])
        case _:
            pass
    known = ", ".join(names) or "none"
    raise ParseError(
        f"{ast.unparse(node)!r} in {text!r} is not understood; names: {known}; "
        "operators: + - * // %"
    )
