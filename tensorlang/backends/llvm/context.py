"""What emission knows at a place of the program: variables, buffers, the lane, the mask.

One ``Context`` belongs to one LLVM function; a parallel loop's body is a function of its own, and
gets a context of its own. Values that may be used again are remembered in scopes that follow the
blocks: what a block computed is forgotten when it ends, for it does not dominate what comes after.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import inf
from typing import Any, Protocol

from tensorlang.backends.llvm.builder import Builder
from tensorlang.backends.llvm.types import I64, Value, constant
from tensorlang.backends.llvm.writer import FunctionWriter, ModuleWriter
from tensorlang.ir.affine import Affine, Var
from tensorlang.ir.definition import Scalar
from tensorlang.ir.expr import Expr
from tensorlang.ir.lowered import Buffer


class EmissionTarget(Protocol):
    """What emission asks about a machine, whatever its kind."""

    @property
    def is_x86(self) -> bool:
        """Whether minimum and maximum must be built from comparisons."""
        ...

    @property
    def vector_bits(self) -> int:
        """The bits of a vector register."""
        ...

    @property
    def fused_multiply_add(self) -> bool:
        """Whether there is an instruction that multiplies and adds with one rounding."""
        ...

    @property
    def native_rounding(self) -> bool:
        """Whether there are instructions for floor, ceil and their like."""
        ...

    @property
    def scales_by_powers(self) -> bool:
        """Whether an instruction multiplies vectors of 512 bits by powers of two."""
        ...

    @property
    def half_conversion(self) -> bool:
        """Whether there are instructions that convert f16."""
        ...


OWN_ALIGNMENT = 64
"""In bytes, of all storage that a program allocates."""


@dataclass(frozen=True, slots=True)
class Lane:
    """The variable of the vectorized loop being emitted, and how many values it takes."""

    variable: Var
    count: int


@dataclass(frozen=True, slots=True)
class Mask:
    """The lanes in which a statement runs; ``nonempty`` when there is one for certain.

    ``outer`` is the mask that this one restricts: what was loaded under it serves here too.
    """

    value: Value
    nonempty: bool
    outer: Mask | None = None


class Memo:
    """A dictionary with scopes: leaving one forgets what was added in it."""

    __slots__ = ("_added", "_values")

    def __init__(self) -> None:
        self._values: dict[Any, Any] = {}
        self._added: list[list[Any]] = [[]]

    def get(self, key: Any) -> Any:
        """Return what was remembered under ``key``, or None."""
        return self._values.get(key)

    def set(self, key: Any, value: Any) -> None:
        """Remember ``value`` until the present scope ends."""
        if key not in self._values:
            self._added[-1].append(key)
            self._values[key] = value

    @contextmanager
    def scope(self) -> Generator[None, None, None]:
        """Forget at the end what is added meanwhile."""
        self._added.append([])
        try:
            yield
        finally:
            for key in self._added.pop():
                del self._values[key]


@dataclass(slots=True)
class Options:
    """What holds for the whole module.

    ``alignment`` is a promise in bytes for every buffer of the caller, ``facts`` rewrites sizes
    (``N`` is ``4 * n``) where an alignment is sought. ``owned`` are the buffers that the program
    allocates, and so aligns. ``reading`` tells of expressions, by identity, whether they load,
    ``numbers`` puts operands before users, ``shared`` is what both branches of a choice need.
    ``allowance`` is how many nodes the store at hand may still emit.
    """

    name: str
    target: EmissionTarget
    fast_math: bool
    module: ModuleWriter
    inputs: frozenset[Buffer]
    uses_status: bool = False
    parallel_loops: int = 0
    alignment: int = 1
    facts: Mapping[Var, Affine] = field(default_factory=dict[Var, Affine])
    owned: set[Buffer] = field(default_factory=set[Buffer])
    reading: dict[int, tuple[Expr, bool]] = field(default_factory=dict[int, tuple[Expr, bool]])
    numbers: dict[int, tuple[Expr, int]] = field(default_factory=dict[int, tuple[Expr, int]])
    shared: dict[int, tuple[Expr, ...]] = field(default_factory=dict[int, tuple[Expr, ...]])
    allowance: float = inf

    @property
    def attributes(self) -> str:
        """The attributes of every function."""
        width = f' "prefer-vector-width"="{self.target.vector_bits}"'
        return "nounwind" + (width if self.target.is_x86 else "")

    @property
    def flags(self) -> str:
        """The fast-math flags of user arithmetic."""
        return "reassoc nsz arcp contract" if self.fast_math else "contract"


@dataclass(slots=True)
class Context:
    """See the module. ``private`` are the buffers on this function's stack.

    ``threads`` is None inside a parallel loop: loops nested in it run serially.
    """

    options: Options
    writer: FunctionWriter
    builder: Builder
    variables: dict[Var, Value] = field(default_factory=dict[Var, Value])
    depths: dict[Var, int] = field(default_factory=dict[Var, int])
    extents: dict[Var, Affine] = field(default_factory=dict[Var, Affine])
    scalars: dict[Scalar, Value] = field(default_factory=dict[Scalar, Value])
    pointers: dict[Buffer, Value] = field(default_factory=dict[Buffer, Value])
    private: set[Buffer] = field(default_factory=set[Buffer])
    lane: Lane | None = None
    mask: Mask | None = None
    indices: Memo = field(default_factory=Memo)
    sizes: Memo = field(default_factory=Memo)
    values: Memo = field(default_factory=Memo)
    status: Value | None = None
    threads: Value | None = None
    stack_bytes: int = 0

    @property
    def lanes(self) -> int:
        """How many lanes a varying value has here."""
        return 1 if self.lane is None else self.lane.count

    def bind(self, variable: Var, value: Value, extent: Affine | None = None) -> None:
        """Give ``variable`` a value; ``extent`` is that of its loop."""
        self.variables[variable] = value
        self.depths[variable] = len(self.variables)
        if extent is not None:
            self.extents[variable] = extent

    def unbind(self, variable: Var) -> None:
        """End the scope of ``variable``."""
        del self.variables[variable]
        self.extents.pop(variable, None)

    @contextmanager
    def masked(self, mask: Mask | None) -> Generator[None, None, None]:
        """Emit under ``mask`` for a while."""
        before, self.mask = self.mask, mask
        try:
            yield
        finally:
            self.mask = before

    @contextmanager
    def scope(self) -> Generator[None, None, None]:
        """Forget at the end the values computed meanwhile."""
        with self.indices.scope(), self.values.scope():
            yield

    @contextmanager
    def at_entry(self) -> Generator[None, None, None]:
        """Emit what depends on sizes alone where the function begins; it is known everywhere."""
        before, self.indices = self.indices, self.sizes
        try:
            with self.writer.at_entry():
                yield
        finally:
            self.indices = before

    @contextmanager
    def when(self, condition: Value, stem: str = "then") -> Generator[None, None, None]:
        """Emit a block that runs where the scalar ``condition`` holds."""
        writer = self.writer
        then, done = writer.label(stem), writer.label("done")
        writer.branch(condition, then, done)
        writer.place(then)
        with self.scope():
            yield
        writer.jump(done)
        writer.place(done)

    @contextmanager
    def count(self, first: Value, end: Value, stem: str) -> Generator[Value, None, None]:
        """Emit a loop whose body sees ``first``, ``first + 1``, ... below ``end``."""
        writer, builder = self.writer, self.builder
        body, done = writer.label(stem), writer.label("done")
        before = writer.block
        writer.branch(builder.compare("lt", first, end), body, done)
        writer.place(body)
        place = writer.reserve()
        position = Value(writer.name("i"), I64)
        with self.scope():
            yield position
        following = builder.binary("add nuw nsw", position, constant(1, I64))
        writer.lines[place] = (
            f"  {position.ref} = phi i64 [ {first.ref}, %{before} ], "
            f"[ {following.ref}, %{writer.block} ]"
        )
        writer.branch(builder.compare("lt", following, end), body, done)
        writer.place(done)

    def choose(
        self, condition: Value, make_then: Any, make_otherwise: Any, lanes: int = 1
    ) -> Value:
        """Return the value of one of two makers, only the chosen one of which runs."""
        writer = self.writer
        then, otherwise, done = (writer.label(stem) for stem in ("then", "else", "done"))
        writer.branch(condition, then, otherwise)
        arms: list[tuple[Value, str]] = []
        for label, make in ((then, make_then), (otherwise, make_otherwise)):
            writer.place(label)
            with self.scope():
                value = self.builder.broadcast(make(), lanes)
            arms.append((value, writer.block))
            writer.jump(done)
        writer.place(done)
        type = arms[0][0].type
        incoming = ", ".join([f"[ {value.ref}, %{block} ]" for value, block in arms])
        return writer.emit(f"phi {type.text} {incoming}", type)
