"""pad_storage: the rows of a buffer stand further apart than they are long.

Before                              After ``pad_storage("T", 1, 1)``
::

    T = shared f32[32, 32]              T = shared f32[32, 32] laid out (i, j) -> (i, j) of [32, 33]

Always legal for a buffer that the program owns: no element has the spare places. Columns whose
elements lay a power of two apart no longer meet in one set of a cache, or one bank.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tensorlang.ir.definition import Tensor
from tensorlang.ir.program import Program
from tensorlang.schedule.primitives.base import Outcome
from tensorlang.schedule.primitives.layout import require_owned, require_still
from tensorlang.schedule.primitives.split import is_positive_integer
from tensorlang.schedule.primitives.storage_fold import identity_layout, require_axis
from tensorlang.schedule.refusal import Refusal
from tensorlang.schedule.tree import replace_stmt


@dataclass(frozen=True, slots=True)
class PadStorage:
    """Add ``by`` places along ``axis`` of the storage of ``tensor``, as it lies in memory."""

    tensor: Tensor
    axis: int
    by: int

    def check(self, program: Program) -> None:
        """Refuse the caller's arrays, and axes and numbers that are not there."""
        alloc = require_owned(program, self.tensor)
        require_still(program, self.tensor, alloc.shape)
        require_axis(self.tensor, self.axis, len(identity_layout(alloc).shape))
        if not is_positive_integer(self.by):
            raise Refusal(f"{self.by!r} is no number of places", "an integer of 1 or more")

    def apply(self, program: Program) -> Outcome:
        """Return the program with the storage padded."""
        alloc = require_owned(program, self.tensor)
        layout = identity_layout(alloc)
        shape = list(layout.shape)
        shape[self.axis] = shape[self.axis] + self.by
        new = replace(alloc, layout=replace(layout, shape=tuple(shape)))
        return Outcome(replace(program, body=replace_stmt(program.body, alloc, new)))
