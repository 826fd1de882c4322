"""An expression short enough to print.

Input:  ``e * e`` where e is ``d * d``, d is ``c * c``, and so on, forty times
Output: ``((... * ...) * (... * ...)) * ...``, some thousands of nodes

Expressions share nodes, and text does not: what forty lines define may take 2**40 characters to
write out. Beyond ``_MOST`` nodes, or ``_DEEPEST`` levels, operands are printed as ``...``.
"""

from __future__ import annotations

from collections.abc import Mapping

from tensorlang.ir.expr import (
    Bitcast,
    Call,
    Cast,
    Expr,
    Load,
    Placeholder,
    Select,
    children,
    index_values,
    iterate,
)
from tensorlang.ir.lowered import FlatLoad

_MOST = 5_000
_DEEPEST = 80

_Measures = Mapping[int, tuple[int, int]]
"""The nodes and the levels of the tree that an expression is printed as, by identity."""


def abridged(expr: Expr) -> Expr:
    """Return ``expr`` itself if it prints within the limits, else with parts left out."""
    measures: dict[int, tuple[int, int]] = {}
    for node in iterate(expr):
        parts = [measures[id(part)] for part in children(node) + index_values(node)]
        size = 1 + sum([part[0] for part in parts])
        height = 1 + max([part[1] for part in parts], default=0)
        measures[id(node)] = min(size, _MOST + 1), height
    return _shortened(expr, _MOST, _DEEPEST, measures)


def _shortened(expr: Expr, room: int, levels: int, measures: _Measures) -> Expr:
    """Return ``expr`` in at most ``room`` nodes and ``levels`` levels."""
    size, height = measures[id(expr)]
    if size <= room and height <= levels:
        return expr
    operands = children(expr)
    if not operands or room <= 1 or levels <= 1:
        return _left_out(expr)
    sizes = [measures[id(operand)][0] for operand in operands]
    rooms = [0] * len(operands)
    left = room - 1
    for done, place in enumerate(sorted(range(len(operands)), key=sizes.__getitem__)):
        rooms[place] = min(sizes[place], left // (len(operands) - done))
        left -= rooms[place]
    parts = [
        _shortened(operand, rooms[place], levels - 1, measures)
        for place, operand in enumerate(operands)
    ]
    return _with_operands(expr, parts)


def _with_operands(expr: Expr, operands: list[Expr]) -> Expr:
    match expr:
        case Call():
            return Call(expr.function, tuple(operands), expr.dtype)
        case Cast():
            return Cast(operands[0], expr.dtype)
        case Bitcast():
            return Bitcast(operands[0], expr.dtype)
        case Select():
            return Select(operands[0], operands[1], operands[2], expr.dtype)
        case _:
            return expr


def _left_out(expr: Expr) -> Expr:
    match expr:
        case Load():
            return Placeholder(f"{expr.tensor.name}[...]", expr.dtype)
        case FlatLoad():
            return Placeholder(f"{expr.buffer.name}[...]", expr.dtype)
        case _:
            return Placeholder("...", expr.dtype)
