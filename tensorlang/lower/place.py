"""What surrounds a statement: the ranges of loops, the storage, the kinds of loops.

Input:  the ``For`` and ``Alloc`` statements on the way down
Output: ``place.known`` (what can be proved there), ``place.storage`` (where tensors live)
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from tensorlang.ir.affine import Var
from tensorlang.ir.definition import Tensor
from tensorlang.ir.program import Alloc, For, Fused, Stmt
from tensorlang.lower.known import Known
from tensorlang.lower.storage import Storage


@dataclass(frozen=True, slots=True)
class Place:
    """What surrounds a statement: ranges, allocations, and the kinds of the loops."""

    known: Known
    storage: Storage = field(default_factory=dict[Tensor, Alloc])
    loops: tuple[For | Fused, ...] = ()

    def inside(self, stmt: Stmt) -> Place:
        """Return what surrounds the children of ``stmt``."""
        match stmt:
            case For() | Fused():
                return Place(self.known.inside(stmt), self.storage, (*self.loops, stmt))
            case Alloc():
                return replace(self, storage={**self.storage, stmt.tensor: stmt})
            case _:
                return self

    def variables(self, *kinds: str) -> set[Var]:
        """Return the variables of the surrounding loops of these kinds."""
        return {
            loop.variable for loop in self.loops if isinstance(loop, For) and loop.kind in kinds
        }
