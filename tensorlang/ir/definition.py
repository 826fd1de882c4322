"""A definition: pure stages over tensors, and what the proof proves a schedule against.

Input (what tracing makes of)::

    tl.tensor(tl.sum(A[i, k] * B[k, j] for k in K) for i in M for j in N)

Output::

    Stage(tensors=(C,), axes=(i < M, j < N), reduction_axes=(k < K,),
          values=(A[i, k] * B[k, j],), combiner=sum)

A stage gives each element of its tensors exactly one value. Four forms exist, and no more:

- *map*: no combiner; ``values`` is what is stored.
- *reduction*: the values of all points of the reduction axes that satisfy ``predicate`` are
  combined, beginning with the combiner's identity.
- *recurrence*: a map whose values read the stage's own tensors at other indices, lazily
  (``where(j > 0, f(out[i, j - 1], x), ...)``): that is what a scan is.
- *routine*: an algorithm over whole tensors, ``Order`` or ``Scatter``. ``values`` are the loads of
  its operands, at any position along what it reads as a whole (see ``routines``).

A tuple-valued stage (argmax, Welford, an online softmax) has several tensors and as many values.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from tensorlang.dtypes import DType
from tensorlang.ir.affine import Affine, Var
from tensorlang.ir.expr import Expr, Placeholder, loads_of
from tensorlang.source import UNKNOWN, SourceLocation


@dataclass(frozen=True, slots=True, eq=False)
class Tensor:
    """A logical array; compared by identity. ``shape`` holds forms over the sizes."""

    name: str
    shape: tuple[Affine, ...]
    dtype: DType

    def __repr__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True, eq=False)
class Scalar:
    """A scalar parameter (``alpha: tl.f32``); compared by identity."""

    name: str
    dtype: DType


@dataclass(frozen=True, slots=True)
class Axis:
    """A variable that runs from 0 to ``extent`` - 1; extents depend on sizes alone."""

    variable: Var
    extent: Affine


@dataclass(frozen=True, slots=True, eq=False)
class Combiner:
    """How a reduction combines two states; ``result`` is written over ``left`` and ``right``.

    Built-in ones are named ``sum prod max min all any argmax argmin``; a user's is ``custom``.
    Associative and commutative, unless ``ordered``.
    """

    name: str
    left: tuple[Placeholder, ...]
    right: tuple[Placeholder, ...]
    result: tuple[Expr, ...]
    identity: tuple[Expr, ...]
    ordered: bool = False


@dataclass(frozen=True, slots=True)
class Order:
    """The positions (i64) that sort the operand along ``axis``: stable, NaN above all numbers."""

    axis: int
    descending: bool = False


@dataclass(frozen=True, slots=True)
class Scatter:
    """The first operand, updated: operands are the base, an index for each axis, the values.

    Updates happen in row-major order of the values; ``combine`` is a binary function of
    ``functions``, or None where the last update wins.
    """

    combine: str | None = None


Routine: TypeAlias = Order | Scatter


@dataclass(frozen=True, slots=True, eq=False)
class Stage:
    """One step of a definition; compared by identity. See the module for the four forms.

    ``predicate`` restricts a reduction to the points at which all its forms are >= 0.
    ``copies`` names the tensor of which this stage is a plain copy (cache_read, cache_write).
    """

    tensors: tuple[Tensor, ...]
    axes: tuple[Axis, ...]
    values: tuple[Expr, ...]
    reduction_axes: tuple[Axis, ...] = ()
    combiner: Combiner | None = None
    predicate: tuple[Affine, ...] = ()
    copies: Tensor | None = None
    location: SourceLocation = field(default=UNKNOWN)
    routine: Routine | None = None

    @property
    def tensor(self) -> Tensor:
        """The first tensor, after which the stage is named."""
        return self.tensors[0]

    @property
    def name(self) -> str:
        """The stage's name, perhaps with the operator it came from: ``softmax/e``."""
        return self.tensors[0].name

    @property
    def all_axes(self) -> tuple[Axis, ...]:
        """Data axes, then reduction axes: the order of a ``Compute``'s binding."""
        return self.axes + self.reduction_axes

    @property
    def variables(self) -> tuple[Var, ...]:
        """The variables of :attr:`all_axes`."""
        return tuple(axis.variable for axis in self.all_axes)

    @property
    def is_reduction(self) -> bool:
        """Whether the stage combines values (also over zero reduction axes)."""
        return self.combiner is not None

    @property
    def is_recurrence(self) -> bool:
        """Whether the stage reads its own tensors."""
        return any(load.tensor in self.tensors for load in loads_of(*self.values))

    @property
    def is_map(self) -> bool:
        """Whether each element is computed by the expression in ``values`` from other tensors."""
        return not (self.is_reduction or self.is_recurrence or self.routine is not None)

    def __repr__(self) -> str:
        return f"Stage({self.name})"


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on the sizes, checked at the call: ``form`` >= 0, or = 0 if ``equality``."""

    form: Affine
    message: str
    equality: bool = False


Attribute = int | float | bool | str | tuple[int, ...] | None


@dataclass(frozen=True, slots=True, eq=False)
class Definition:
    """An operator, traced for one combination of ranks, dtypes and attributes.

    ``sizes`` lists every free size in the order in which the parameters mention it; ``dims`` are
    those among them that no array fixes (``n: tl.Dim``). ``stages`` are in topological order;
    ``outputs`` are tensors of stages (or of inputs, for an operator that returns its argument:
    tracing copies those first, so that here they always belong to a stage).
    """

    name: str
    sizes: tuple[Var, ...]
    inputs: tuple[Tensor, ...]
    scalars: tuple[Scalar, ...]
    stages: tuple[Stage, ...]
    outputs: tuple[Tensor, ...]
    conditions: tuple[Condition, ...] = ()
    dims: tuple[Var, ...] = ()
    parameters: tuple[str, ...] = ()
    attributes: tuple[tuple[str, Attribute], ...] = ()
    location: SourceLocation = field(default=UNKNOWN)
    documentation: str = ""

    def __repr__(self) -> str:
        return f"Definition({self.name})"

    def __str__(self) -> str:
        from tensorlang.ir.printer import format_definition  # which knows definitions

        return format_definition(self)

    def stage_of(self, tensor: Tensor) -> Stage | None:
        """Return the stage that makes ``tensor``, None for an input."""
        return next((stage for stage in self.stages if tensor in stage.tensors), None)


ParameterKind = Literal["tensor", "scalar", "dim"]
