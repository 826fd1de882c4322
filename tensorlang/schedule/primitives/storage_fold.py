"""storage_fold: a buffer keeps a few positions of an axis, in a circle.

Before                              After ``storage_fold("rows", 0, 3)``
::

    rows = global f32[H + 2, W]         rows = global f32[H + 2, W] laid out (i, j) -> (i % 3, j), folded
    for i in H + 2:                     for i in H + 2:
        rows[i, ...] = ...                  rows[i, ...] = ...
        out[i - 2, ...] = ...               out[i - 2, ...] = ...

Legal where no element is read after another has taken its place, which the proof decides with
cells named by their places.
"""  # noqa: E501

from __future__ import annotations

from dataclasses import dataclass, replace

from tensorlang.ir.affine import Affine, Var, affine
from tensorlang.ir.definition import Tensor
from tensorlang.ir.program import Alloc, Layout, Program
from tensorlang.schedule.legality import require_proof
from tensorlang.schedule.primitives.base import Outcome
from tensorlang.schedule.primitives.caching import axis_name
from tensorlang.schedule.primitives.layout import require_owned, require_still
from tensorlang.schedule.primitives.split import is_positive_integer
from tensorlang.schedule.refusal import Refusal
from tensorlang.schedule.tree import replace_stmt


@dataclass(frozen=True, slots=True)
class StorageFold:
    """Keep ``size`` positions of ``axis`` of the storage of ``tensor``."""

    tensor: Tensor
    axis: int
    size: int

    def check(self, program: Program) -> None:
        """Refuse the caller's arrays, axes that are not there, and circles that are too small."""
        alloc = require_owned(program, self.tensor)
        require_still(program, self.tensor, alloc.shape)
        require_axis(self.tensor, self.axis, len(alloc.shape))
        if not is_positive_integer(self.size):
            raise Refusal(f"{self.size!r} is no number of positions", "an integer of 1 or more")
        if alloc.layout is not None:
            raise Refusal(
                f"{self.tensor} has a layout already", "fold first; s.undo() takes it back"
            )
        require_proof(
            self.apply(program).program,
            f"{self.size} positions of axis {self.axis} do not hold what is read of {self.tensor}",
            "a larger size, or compute the stage closer to its readers: reverse_compute_at",
        )

    def apply(self, program: Program) -> Outcome:
        """Return the program with the storage folded."""
        alloc = require_owned(program, self.tensor)
        variables = tuple([Var(axis_name(n)) for n in range(len(alloc.shape))])
        indices = [affine(variable) for variable in variables]
        shape = list(alloc.shape)
        indices[self.axis] = indices[self.axis] % self.size
        shape[self.axis] = affine(self.size)
        layout = Layout(variables, tuple(indices), tuple(shape), folded=True)
        new = replace(alloc, layout=layout)
        return Outcome(replace(program, body=replace_stmt(program.body, alloc, new)))


def require_axis(tensor: Tensor, axis: object, rank: int) -> None:
    """Refuse an axis that a buffer does not have."""
    if isinstance(axis, bool) or not isinstance(axis, int) or not 0 <= axis < rank:
        raise Refusal(
            f"{tensor} has no axis {axis!r}", f"one of {', '.join(map(str, range(rank)))}"
        )


def identity_layout(alloc: Alloc) -> Layout:
    """Return the layout of ``alloc``, row-major where none was chosen."""
    if alloc.layout is not None:
        return alloc.layout
    variables = tuple([Var(axis_name(n)) for n in range(len(alloc.shape))])
    indices: tuple[Affine, ...] = tuple([affine(variable) for variable in variables])
    return Layout(variables, indices, alloc.shape)
