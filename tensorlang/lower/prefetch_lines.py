"""Prefetch a box of a tensor: one instruction for each 64-byte line.

Input:  ``prefetch B.local[0 : + K, 16 * j.o + 16 : + 16]``, f32, packed in panels of 16 columns
Output: ``for line in K: prefetch B.local[16 * K * j.o + 16 * K + 16 * line]``

The axis along which the elements lie closest together is stepped through by whole lines; axes
that continue it in memory are joined to it first. A box may lie outside the tensor, as the last
iterations of a loop prefetch what no iteration will read: prefetching never faults.
"""

from __future__ import annotations

from tensorlang.ir.affine import (
    ONE,
    ZERO,
    Affine,
    FloorDiv,
    Var,
    affine,
    depends_on,
    substitute,
    variables_of,
)
from tensorlang.ir.lowered import PrefetchLine
from tensorlang.ir.program import For, Prefetch, Stmt
from tensorlang.ir.simplify import simplify_index
from tensorlang.lower.buffers import Home

LINE_BYTES = 64
_MOST_WRITTEN_OUT = 16


def prefetch_lines(stmt: Prefetch, home: Home) -> Stmt:
    """Return loops over the lines of the box of ``stmt``, whose tensor lies at ``home``."""
    variables = [Var("line") for _ in stmt.shape]
    extents = dict(zip(variables, stmt.shape, strict=True))
    position = tuple([o + v for o, v in zip(stmt.origin, variables, strict=True)])
    offset, extents = _split(simplify_index(home.offset(position), extents), extents)
    steps = {variable: _step(offset, variable) for variable in extents}
    offset, extents = _join(offset, extents, steps)
    nearest = min(
        (v for v in extents if _distance(steps[v]) is not None),
        key=lambda v: _distance(steps[v]) or 0,
        default=None,
    )
    if nearest is not None:
        apart = (_distance(steps[nearest]) or 1) * (stmt.tensor.dtype.bits // 8)
        elements = max(1, LINE_BYTES // apart)
        offset = substitute(offset, {nearest: affine(nearest) * elements})
        extents[nearest] = (extents[nearest] + (elements - 1)) // elements
    body: Stmt = PrefetchLine(home.buffer, offset, stmt.locality)
    for variable, extent in reversed(extents.items()):
        short = extent.is_constant and extent.constant <= _MOST_WRITTEN_OUT
        body = For(variable, extent, "unrolled" if short else "serial", body)
    return body


def _split(offset: Affine, extents: dict[Var, Affine]) -> tuple[Affine, dict[Var, Affine]]:
    """Make two axes of one that a layout cuts into blocks, which are lines of their own."""
    whole: dict[Var, Affine] = {}
    for variable, extent in extents.items():
        size = _block(offset, variable)
        if size is None or not extent.is_constant or extent.constant % size:
            whole[variable] = extent
            continue
        block, inside = Var("block"), Var(variable.name)
        whole |= {block: extent // size, inside: affine(size)}
        offset = substitute(offset, {variable: affine(block) * size + inside})
        offset = simplify_index(offset, {**extents, **whole})
    return offset, whole


def _block(offset: Affine, variable: Var) -> int | None:
    """Return by which number a layout divides the position along an axis."""
    divisors = {
        atom.divisor
        for atom, _ in offset.terms
        if isinstance(atom, FloorDiv) and variable in variables_of(atom.operand)
    }
    return divisors.pop() if len(divisors) == 1 else None


def _step(offset: Affine, variable: Var) -> Affine | None:
    """Return how far apart neighbours along an axis lie; None where that changes."""
    first = substitute(offset, {variable: ZERO})
    step = substitute(offset, {variable: ONE}) - first
    return step if first + step * variable == offset else None


def _distance(step: Affine | None) -> int | None:
    return abs(step.constant) if step is not None and step.is_constant else None


def _join(
    offset: Affine, extents: dict[Var, Affine], steps: dict[Var, Affine | None]
) -> tuple[Affine, dict[Var, Affine]]:
    """Join the axes that continue one another in memory, ``steps[outer] == steps[inner] * n``."""
    left = dict(extents)
    for inner in reversed(extents):
        step = steps[inner]
        while step is not None and inner in left:
            following = [v for v in left if v is not inner and steps[v] == step * left[inner]]
            if not following or depends_on(step * left[inner], set(left)):
                break
            offset = substitute(offset, {following[0]: ZERO})
            left[inner] = left[inner] * left.pop(following[0])
    return offset, left
