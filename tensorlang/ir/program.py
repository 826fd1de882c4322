"""The scheduled program: a tree of loops around instances of stages.

Input (a naive matmul)            Output (after split, reorder, cache_write)::

    for i in M:                       for i.o in (M + 5) // 6:
        for j in N:                       C.local = local[6, N] at [6 * i.o, 0]
            for k in K:                   for k in K:
                C[i, j] += ...                for i.i in 6: ...

Invariants, checked by ``verify_scheduled``:

- Loops run from 0 to an extent that depends on sizes and outer loops.
- Tails are guards on ``Compute`` (forms >= 0), never ``min`` bounds: one loop stays one handle.
- A ``Compute`` is named by its stage and its binding, before and after any schedule; ``via``
  redirects tensors to their copies, for reads and for the write, so that caching never changes
  a stage's body.
- A reduction is one ``Compute`` with part "whole" and an implied init; ``place_inits`` replaces it
  by an "init" and an "update".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias, Union

from tensorlang.ir.affine import Affine, Var
from tensorlang.ir.definition import Condition, Definition, Stage, Tensor
from tensorlang.ir.derivation import Derivation

if TYPE_CHECKING:
    from tensorlang.ir.lowered import Allocate, PrefetchLine, Store

LoopKind: TypeAlias = Literal[
    "serial", "parallel", "vectorized", "unrolled",
    "block.x", "block.y", "block.z", "thread.x", "thread.y", "thread.z",
]  # fmt: skip
BLOCK_AXES: tuple[LoopKind, ...] = ("block.x", "block.y", "block.z")
"""The kinds of loops whose iterations are blocks of a grid, which run in any order."""

THREAD_AXES: tuple[LoopKind, ...] = ("thread.x", "thread.y", "thread.z")
"""The kinds of loops whose iterations are threads of a block, ordered only by barriers."""

Tail: TypeAlias = Literal["auto", "guard", "peel", "mask", "shift", "pad", "exact"]
Scope: TypeAlias = Literal["global", "shared", "local"]
Part: TypeAlias = Literal["whole", "init", "update"]
Hint: TypeAlias = tuple[str, "str | int | bool | float"]


@dataclass(frozen=True, slots=True, eq=False)
class For:
    """A loop; ``variable`` compares by identity and doubles as the loop's handle.

    ``tail`` says how lowering treats the guards that the split which made this (inner) loop left.
    ``owner`` names the stage for whose nest the loop was made (a path may name it).
    """

    variable: Var
    extent: Affine
    kind: LoopKind
    body: Stmt
    tail: Tail = "auto"
    hints: tuple[Hint, ...] = ()
    owner: str = ""


@dataclass(frozen=True, slots=True)
class Run:
    """A piece of a fused loop: positions ``chunk * size + offset`` for ``offset`` < ``size``."""

    chunk: Var
    offset: Var
    size: int


@dataclass(frozen=True, slots=True, eq=False)
class Fused:
    """One loop over several variables in lexicographic order, the last fastest.

    Never ``i * N + j``, which is not affine for a symbolic N. Splitting it gives a loop over
    positions (``For(run.chunk)``) around a ``run`` of this one, with nothing between the two.
    ``handle`` is the loop's handle.
    """

    handle: Var
    variables: tuple[Var, ...]
    extents: tuple[Affine, ...]
    kind: LoopKind
    body: Stmt
    run: Run | None = None
    tail: Tail = "auto"
    hints: tuple[Hint, ...] = ()
    owner: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Seq:
    """Statements one after the other."""

    stmts: tuple[Stmt, ...]


@dataclass(frozen=True, slots=True)
class Layout:
    """How an owned buffer lies in memory: logical position -> physical position.

    ``variables`` stand for the position inside the box of the ``Alloc``; ``indices`` and ``shape``
    say where it lies: ``lambda k, n: (n // 16, k, n % 16)`` packs panels. In a ``folded`` one,
    elements ``size`` apart along an axis follow one another in one place: ``(i % 3, j)``.
    """

    variables: tuple[Var, ...]
    indices: tuple[Affine, ...]
    shape: tuple[Affine, ...]
    folded: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Alloc:
    """Storage for the box ``origin <= index < origin + shape`` of ``tensor``, alive in ``body``."""

    tensor: Tensor
    origin: tuple[Affine, ...]
    shape: tuple[Affine, ...]
    scope: Scope
    body: Stmt
    layout: Layout | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Compute:
    """An instance of a stage, executed where every form of ``guard`` is >= 0.

    ``binding`` gives each variable of the stage (data axes, then reduction axes) as a form over
    the loops. An "init" binds the data axes only.
    """

    stage: Stage
    binding: tuple[Affine, ...]
    guard: tuple[Affine, ...] = ()
    via: tuple[tuple[Tensor, Tensor], ...] = ()
    part: Part = "whole"

    def redirect(self, tensor: Tensor) -> Tensor:
        """Return where accesses to ``tensor`` go in this instance."""
        for source, target in self.via:
            if source is tensor:
                return target
        return tensor


@dataclass(frozen=True, slots=True, eq=False)
class If:
    """``then`` where every form of ``condition`` is >= 0, else ``otherwise``. Made by lowering."""

    condition: tuple[Affine, ...]
    then: Stmt
    otherwise: Stmt | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Barrier:
    """All threads of a block arrive before any goes on; what they did is seen by all."""


@dataclass(frozen=True, slots=True, eq=False)
class Prefetch:
    """Ask the caches for the box ``origin <= index < origin + shape`` of ``tensor``.

    It has no effect on any value, and the box may lie outside the tensor. ``locality`` says how
    near the data is to be kept: 3 in every cache, 2 from the second on, 1 from the third on, and 0
    for data that is used once.
    """

    tensor: Tensor
    origin: tuple[Affine, ...]
    shape: tuple[Affine, ...]
    locality: int = 3


Stmt: TypeAlias = Union[
    For, Fused, Seq, Alloc, Compute, If, Barrier, Prefetch, "Store", "Allocate", "PrefetchLine"
]
"""Statements of both grammars; ``verify_scheduled`` and ``verify_lowered`` tell them apart."""


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """A scheduled program and the definition that it must compute.

    ``stages`` are the definition's stages plus those that primitives made (copies, rfactor), each
    with its tensors; ``conditions`` are facts assumed by steps and checked at the call.
    ``derivations`` say, in the order of the steps, how a stage follows from the definition's when
    it is neither one of them nor a copy. Vectors stored to ``streamed`` tensors go past the caches.
    """

    definition: Definition
    stages: tuple[Stage, ...]
    body: Stmt
    conditions: tuple[Condition, ...] = ()
    derivations: tuple[Derivation, ...] = ()
    streamed: tuple[Tensor, ...] = ()

    def __str__(self) -> str:
        from tensorlang.ir.printer import format_program  # which imports this module

        return format_program(self)


EMPTY = Seq(())


def is_outer_storage(program: Program, tensor: Tensor) -> bool:
    """Whether the caller owns the storage of ``tensor`` (an input or an output)."""
    definition = program.definition
    return tensor in definition.inputs or tensor in definition.outputs
