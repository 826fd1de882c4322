"""What is known at one point of the program that is being turned into Python.

The loops around it, the storage in scope, the lanes that stand open. ``statements`` moves it
through the program; ``accesses``, ``expressions`` and ``leaves`` read it.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from tensorlang.dtypes import DType
from tensorlang.interpreter.writer import Writer
from tensorlang.ir.affine import Var
from tensorlang.ir.definition import Scalar, Tensor
from tensorlang.ir.lowered import Buffer, CheckSite
from tensorlang.ir.program import For, Fused

Place = Tensor | Buffer


@dataclass(frozen=True, slots=True, eq=False)
class Storage:
    """Storage in scope: source texts for its cells and its box.

    ``table`` names the list that takes a row-major position to a cell where a layout applies.
    ``level`` counts the frames around its allocation: it is shared between the iterations of
    those that come later.
    """

    name: str
    dtype: DType
    cells: str
    origin: tuple[str, ...]
    shape: tuple[str, ...]
    level: int
    table: str | None = None
    is_input: bool = False


@dataclass(frozen=True, slots=True)
class Frame:
    """A loop whose iterations may run in any order, and its logs of who touched what.

    ``logs`` holds, for each storage written inside, the names of two dicts: who wrote, who read.
    """

    iteration: str
    label: str
    logs: Mapping[Storage, tuple[str, str]]
    is_block: bool = False


@dataclass(frozen=True, slots=True)
class Block:
    """The threads of a block: who runs now, and who touched what since the last barrier.

    ``thread`` names a list: the number of the thread, then its place along x, y and z.
    ``registers`` are storage whose logs no barrier empties; those of ``nested``, which is allocated
    inside a loop of threads, begin anew with it.
    """

    thread: str
    logs: Mapping[Place, tuple[str, str]]
    registers: frozenset[Place]
    nested: frozenset[Place]


@dataclass(slots=True)
class Context:
    """The state of the translation."""

    writer: Writer
    names: dict[Var, str]
    sizes: Mapping[Var, int]
    scalars: Mapping[Scalar, object]
    detect_races: bool
    check_sites: tuple[CheckSite, ...] = ()
    storages: dict[Place, Storage] = field(default_factory=dict[Place, Storage])
    frames: list[Frame] = field(default_factory=list[Frame])
    lanes: list[For | Fused] = field(default_factory=list[For | Fused])
    masks: list[str] = field(default_factory=list[str])
    block: Block | None = None
    visible: list[Var] = field(default_factory=list[Var])
    pending: str | None = None

    def name(self, variable: Var) -> str:
        """Return the Python name of a variable, a new one at first."""
        known = self.names.get(variable)
        if known is None:
            known = self.names[variable] = self.writer.fresh("v")
        return known

    @contextmanager
    def storage(self, place: Place, storage: Storage) -> Generator[None, None, None]:
        """Let ``place`` live in ``storage`` during the ``with`` body."""
        before = self.storages.get(place)
        self.storages[place] = storage
        yield
        if before is None:
            del self.storages[place]
        else:
            self.storages[place] = before
