"""swizzle: each row of a buffer is rotated, within blocks, by one more position than the last.

Before                              After ``swizzle("T", 1, 2)``
::

    T = shared f32[32, 32]              T = shared f32[32, 32] laid out
                                            (i, j) -> (i, 4 * (j // 4) + (i + j) % 4)

Always legal for a buffer that the program owns: a rotation of each block is one-to-one. The
elements of a column then lie in different banks, without the spare places of ``pad_storage``.
Rotation serves as the exclusive or of rows and columns does, and stays affine.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tensorlang.ir.affine import affine
from tensorlang.ir.definition import Tensor
from tensorlang.ir.program import Layout, Program
from tensorlang.schedule.primitives.base import Outcome
from tensorlang.schedule.primitives.layout import require_owned, require_still
from tensorlang.schedule.primitives.split import is_positive_integer
from tensorlang.schedule.primitives.storage_fold import identity_layout, require_axis
from tensorlang.schedule.refusal import Refusal
from tensorlang.schedule.tree import replace_stmt

_MOST_BITS = 10


@dataclass(frozen=True, slots=True)
class Swizzle:
    """Rotate blocks of ``2 ** bits`` positions along ``axis`` by the row, along the axis before."""

    tensor: Tensor
    axis: int
    bits: int

    def check(self, program: Program) -> None:
        """Refuse the caller's arrays, laid out buffers, and the first axis, which has no rows."""
        alloc = require_owned(program, self.tensor)
        require_still(program, self.tensor, alloc.shape)
        require_axis(self.tensor, self.axis, len(alloc.shape))
        if alloc.layout is not None:
            raise Refusal(f"{self.tensor} has a layout already", "s.undo() takes it back")
        if self.axis == 0:
            raise Refusal(
                f"no axis of {self.tensor} stands before axis 0", "an axis that others stand before"
            )
        if not is_positive_integer(self.bits) or self.bits > _MOST_BITS:
            raise Refusal(f"{self.bits!r} bits of a position", f"1 to {_MOST_BITS}")

    def apply(self, program: Program) -> Outcome:
        """Return the program with the storage laid out in rotated blocks."""
        alloc = require_owned(program, self.tensor)
        plain = identity_layout(alloc)
        size = 2**self.bits
        row, column = (affine(plain.variables[self.axis + n]) for n in (-1, 0))
        indices, shape = list(plain.indices), list(plain.shape)
        indices[self.axis] = column // size * size + (row + column) % size
        shape[self.axis] = (shape[self.axis] + (size - 1)) // size * size
        layout = Layout(plain.variables, tuple(indices), tuple(shape))
        new = replace(alloc, layout=layout)
        return Outcome(replace(program, body=replace_stmt(program.body, alloc, new)))
