"""What a user holds of a schedule: loops and stages, as names that follow the program."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tensorlang.ir.affine import Var
from tensorlang.ir.program import For
from tensorlang.schedule import resolve
from tensorlang.schedule.tree import find_loop

if TYPE_CHECKING:
    from tensorlang.schedule.session import Session


@dataclass(frozen=True, slots=True, eq=False)
class Loop:
    """A loop of a schedule; it stays valid until a step replaces the loop."""

    schedule: Session
    variable: Var

    @property
    def name(self) -> str:
        """The loop's name: ``i``, ``i.o``."""
        return self.variable.name

    @property
    def extent(self) -> str:
        """The number of iterations, as text; of a fused loop, its extents."""
        loop = find_loop(self.schedule.program.body, self.variable)
        if loop is None:
            return "gone"
        return str(loop.extent) if isinstance(loop, For) else ", ".join(map(str, loop.extents))

    @property
    def kind(self) -> str:
        """How the loop runs: serial, parallel, vectorized, unrolled."""
        loop = find_loop(self.schedule.program.body, self.variable)
        return "gone" if loop is None else loop.kind

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Loop) and other.variable is self.variable

    def __hash__(self) -> int:
        return hash(self.variable)

    def __repr__(self) -> str:
        return f"Loop({self.name}: {self.extent})"


@dataclass(frozen=True, slots=True)
class StageHandle:
    """A stage of a schedule, by name; with part "init", the init of a reduction."""

    schedule: Session
    label: str
    part: str = ""

    @property
    def name(self) -> str:
        """The stage's name: ``C``, ``softmax/e``, ``B.local``, ``C.write``, ``C.init``."""
        return f"{self.label}.{self.part}" if self.part else self.label

    @property
    def loops(self) -> tuple[Loop, ...]:
        """The loops made for the stage, outermost first, wherever they stand now."""
        program = self.schedule.program
        stage = resolve.resolve_stage(program, self.label)
        found = resolve.own_loops(program, stage, self.part or None)
        return tuple(Loop(self.schedule, variable) for variable in found)

    def __repr__(self) -> str:
        return f"Stage({self.name})"
