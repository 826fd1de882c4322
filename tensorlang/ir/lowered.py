"""The lowered program: loops over stores to flat buffers, ready for a backend.

Input (scheduled)::

    C[i, j] += A[i, k] * B[k, j]                  if i < M

Output (lowered)::

    if M - 1 - i >= 0:
        C[N*i + j] = C[N*i + j] + A[K*i + k] * B[N*k + j]

``For``, ``Seq`` and ``If`` are those of ``program``; ``Compute``, ``Fused`` and ``Alloc`` are gone.
Unrolled loops are gone too. A vectorized ``For`` has a constant extent (its lanes); inside it there
are only ``Seq``, ``If`` and ``Store``: an ``If`` whose condition depends on the lane is a mask, and
an address whose lane coefficient is 1 is a contiguous vector.
"""

from __future__ import annotations

from dataclasses import dataclass

from tensorlang.dtypes import DType
from tensorlang.ir.affine import Affine, Var
from tensorlang.ir.definition import Condition, Scalar
from tensorlang.ir.expr import Expr
from tensorlang.ir.program import Scope, Stmt


@dataclass(frozen=True, slots=True, eq=False)
class Buffer:
    """Flat storage of ``size`` elements; compared by identity.

    ``scope`` "global" is memory (of the caller, or a temporary); "local" is private to one
    iteration of the loops around its allocation, of constant size, meant for registers.
    ``alignment`` is a promise in bytes. Vectors stored to a ``streamed`` buffer go past the caches.
    A buffer with ``gaps`` has places that no element has, between its rows.
    """

    name: str
    dtype: DType
    size: Affine
    scope: Scope = "global"
    alignment: int = 1
    streamed: bool = False
    gaps: bool = False

    def __repr__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class BoundsCheck:
    """A data-dependent index that must lie in ``0 <= index < extent`` when the load happens.

    ``site`` numbers the check in ``LoweredProgram.check_sites``, for the message.
    """

    index: Affine
    extent: Affine
    site: int


@dataclass(frozen=True, slots=True)
class FlatLoad:
    """One element of a flat buffer. A failed check is recorded, and element 0 read or skipped."""

    buffer: Buffer
    offset: Affine
    checks: tuple[BoundsCheck, ...] = ()

    @property
    def dtype(self) -> DType:
        """The dtype of the buffer's elements."""
        return self.buffer.dtype


@dataclass(frozen=True, slots=True, eq=False)
class Store:
    """Evaluate all ``values``, then store each at its place (several for a tuple-valued stage).

    ``exact``: each operation is rounded by itself; no product is fused into a sum.
    """

    targets: tuple[tuple[Buffer, Affine], ...]
    values: tuple[Expr, ...]
    exact: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Allocate:
    """Storage for ``buffer`` during ``body``; in a parallel loop, each iteration has its own."""

    buffer: Buffer
    body: Stmt
    zeroed: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class PrefetchLine:
    """Ask the caches for the line that holds an element, which may lie outside the buffer."""

    buffer: Buffer
    offset: Affine
    locality: int = 3


@dataclass(frozen=True, slots=True)
class CheckSite:
    """What a failed bounds check reports: the tensor, which of its axes, and the user's line."""

    tensor: str
    axis: int
    location: str


@dataclass(frozen=True, slots=True, eq=False)
class LoweredProgram:
    """What a backend compiles.

    ``inputs`` and ``outputs`` are the caller's buffers. ``sizes`` are passed as i64, in order:
    the definition's sizes, then the strides of buffers that are not contiguous (in elements).
    """

    name: str
    sizes: tuple[Var, ...]
    scalars: tuple[Scalar, ...]
    inputs: tuple[Buffer, ...]
    outputs: tuple[Buffer, ...]
    body: Stmt
    conditions: tuple[Condition, ...] = ()
    check_sites: tuple[CheckSite, ...] = ()
