"""What evaluating an expression needs: memory, and operands that no branch can do without.

Input:  ``where(i > 2, X[i] * e, e + 1)``, e a choice that loads
Output: ``(e,)``: computed before the choice, once, instead of in each branch

Without it a chain of choices, each of which uses the one before it in both branches, would become
code for every path through the chain.
"""

from __future__ import annotations

from heapq import heappop, heappush

from tensorlang.backends.llvm.context import Context
from tensorlang.ir.expr import Expr, Select, children, index_values, iterate
from tensorlang.ir.lowered import FlatLoad

_THEN, _OTHERWISE = 1, 2


def reads_memory(context: Context, expr: Expr) -> bool:
    """Whether evaluating ``expr`` loads something; remembered for every node below it."""
    reading = context.options.reading
    if id(expr) not in reading:
        for node in iterate(expr):
            operands = children(node) + index_values(node)
            reads = isinstance(node, FlatLoad) or any(
                [reading[id(operand)][1] for operand in operands]
            )
            reading[id(node)] = (node, reads)
    return reading[id(expr)][1]


def shared_operands(context: Context, choice: Select) -> tuple[Expr, ...]:
    """Return what loads and is needed by both branches of ``choice``, the topmost such nodes."""
    shared = context.options.shared
    if id(choice) not in shared:
        numbers = context.options.numbers
        for node in iterate(choice):  # operands before users: their numbers are lower
            if id(node) not in numbers:
                numbers[id(node)] = (node, len(numbers))
            if isinstance(node, Select) and id(node) not in shared:
                shared[id(node)] = _needed_by_both(context, node)
    return shared[id(choice)]


def _needed_by_both(context: Context, choice: Select) -> tuple[Expr, ...]:
    """Walk down from both branches at once, highest number first; stop where they have met."""
    numbers, found = context.options.numbers, list[Expr]()
    sides: dict[int, int] = {}
    waiting: list[tuple[int, int]] = []
    nodes: dict[int, Expr] = {}
    one_sided = [0, 0, 0]  # how many waiting nodes were reached from which side alone

    def reach(node: Expr, side: int) -> None:
        if not reads_memory(context, node):
            return
        before = sides.get(id(node), 0)
        sides[id(node)] = before | side
        if not before:
            nodes[id(node)] = node
            heappush(waiting, (-numbers[id(node)][1], id(node)))
            one_sided[side] += 1
        elif before not in (side, _THEN | _OTHERWISE):
            one_sided[before] -= 1

    reach(choice.then, _THEN)
    reach(choice.otherwise, _OTHERWISE)
    while len(waiting) > max(one_sided):  # else all that is left was reached from one side
        _, number = heappop(waiting)
        node, side = nodes[number], sides[number]
        if side == _THEN | _OTHERWISE:
            found.append(node)
            continue
        one_sided[side] -= 1
        for operand in _needed_operands(context, node):
            reach(operand, side)
    return tuple(found)


def _needed_operands(context: Context, node: Expr) -> tuple[Expr, ...]:
    if isinstance(node, Select):
        return (node.condition, *context.options.shared[id(node)])
    return children(node) + index_values(node)
