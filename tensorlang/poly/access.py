"""What each instance reads and writes: cells of storage, under the conditions of its branches.

Input:  ``where(j > 0, out[i, j - 1], 0)`` at ``i = l0, j = l1``
Output: a read of ``B1[l0, l1 - 1]`` where ``l1 >= 1``

Each access has a tag of its own, so that three reads of one tensor by one statement stay three
questions. A dimension that depends on data may be anything inside the tensor: its index is None.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

import islpy as isl

from tensorlang.ir.affine import (
    Affine,
    FloorDiv,
    Min,
    Product,
    SymbolicDiv,
    ValueAtom,
    affine,
    atom_variables,
    substitute,
)
from tensorlang.ir.branches import Branch, ways_to_nodes
from tensorlang.ir.definition import Stage, Tensor
from tensorlang.ir.expr import Expr, Load, loads_of
from tensorlang.ir.walk import substitute_in_expr
from tensorlang.poly.domain import Instance, Nest, Storage
from tensorlang.poly.isl_text import NotProvedError, condition_text, says_something


@dataclass(frozen=True, slots=True, eq=False)
class Access:
    """An instance touches a cell. ``tensor`` is the one that the definition names there."""

    instance: Instance
    tensor: Tensor
    storage: Storage
    indices: tuple[Affine | None, ...]
    tag: str
    branches: tuple[Branch, ...] = ((),)
    load: Load | None = None
    position: int = 0

    @property
    def places(self) -> tuple[Affine | None, ...]:
        """The indices; in folded storage, what remains of them along the folded axes."""
        alloc = self.storage.alloc
        if alloc is None or alloc.layout is None or not alloc.layout.folded:
            return self.indices
        return tuple(
            index
            if index is None or place == affine(variable)
            else substitute(place, {variable: index - origin})
            for index, origin, variable, place in zip(
                self.indices,
                alloc.origin,
                alloc.layout.variables,
                alloc.layout.indices,
                strict=True,
            )
        )

    @property
    def is_conditional(self) -> bool:
        """Whether a branch decides if the access happens."""
        return () not in self.branches


@dataclass(frozen=True, slots=True)
class StageRead:
    """A load in a stage's values, with the branches that lead to it."""

    load: Load
    branches: tuple[Branch, ...]


def reads_of_stage(stage: Stage) -> tuple[StageRead, ...]:
    """Return the loads that evaluating the values of ``stage`` makes, nested ones included."""
    return reads_of_values(stage.values)


def reads_of_values(values: tuple[Expr, ...]) -> tuple[StageRead, ...]:
    """Return the distinct loads below ``values`` with the branches that lead to each."""
    ways = ways_to_nodes(values, says_something)
    found: dict[Load, list[Branch]] = {}
    for load in loads_of(*values):
        known = found.setdefault(load, [])
        known.extend(branch for branch in ways[id(load)] if branch not in known)
    return tuple(
        StageRead(load, ((),) if () in branches else tuple(branches))
        for load, branches in found.items()
    )


def _values_in(index: Affine) -> Iterator[Expr]:
    """Yield the data-dependent values inside an index."""
    stack = [atom for atom, _ in index.terms]
    while stack:
        match stack.pop():
            case ValueAtom(expr=expr):
                yield expr
            case FloorDiv(operand=operand):
                stack.extend(atom for atom, _ in operand.terms)
            case SymbolicDiv(operand=operand, divisor=divisor):
                stack.extend(atom for form in (operand, divisor) for atom, _ in form.terms)
            case Product(factors=factors):
                stack.extend(factors)
            case Min(operands=operands):
                stack.extend(atom for form in operands for atom, _ in form.terms)
            case _:
                pass


def depends_on_data(index: Affine) -> bool:
    """Whether an index is taken from data."""
    return next(_values_in(index), None) is not None


def is_affine(index: Affine, nest: Nest) -> bool:
    """Whether isl can read ``index``."""
    for atom, _ in index.terms:
        match atom:
            case FloorDiv(operand=operand):
                if not is_affine(operand, nest):
                    return False
            case Min(operands=operands):
                if not all(is_affine(operand, nest) for operand in operands):
                    return False
            case Product() | SymbolicDiv():
                if not all(v in nest.parameters.atoms for v in atom_variables(atom)):
                    return False
            case ValueAtom():
                return False
            case _:
                pass
    return True


@dataclass(eq=False)
class Accesses:
    """Every access of a program, made once and shared by the claims.

    Cells are named by logical indices; with ``in_memory``, those of folded storage by their place.
    """

    nest: Nest
    in_memory: bool = False
    writes: list[Access] = field(default_factory=list[Access])
    own: list[Access] = field(default_factory=list[Access])
    reads: list[Access] = field(default_factory=list[Access])
    copies: list[Access] = field(default_factory=list[Access])
    """The reads that copies make; ``reads`` holds those of all other stages."""

    def __post_init__(self) -> None:
        loads: dict[Stage, tuple[StageRead, ...]] = {}
        for instance in self.nest.instances:
            compute, stage = instance.compute, instance.compute.stage
            for position, tensor in enumerate(stage.tensors):
                indices: tuple[Affine | None, ...] = instance.data_binding
                tag = f"W{instance.number}_{position}"
                storage = storage_of(instance, tensor)
                access = Access(instance, tensor, storage, indices, tag, position=position)
                self.writes.append(access)
                if compute.part == "update":
                    self.own.append(access)
            if compute.part == "init":
                continue
            if stage not in loads:
                loads[stage] = reads_of_stage(stage)
            mapping = dict(zip(stage.variables, compute.binding, strict=True))
            for position, read in enumerate(loads[stage]):
                load = read.load
                indices = tuple(substitute(index, mapping) for index in load.indices)
                branches = tuple(
                    tuple((substitute_in_expr(cond, mapping), taken) for cond, taken in branch)
                    for branch in read.branches
                )
                tag = f"R{instance.number}_{position}"
                if instance.is_copy:
                    tag = f"W{instance.number}_0"
                access = Access(
                    instance,
                    load.tensor,
                    storage_of(instance, load.tensor),
                    tuple(index if is_affine(index, self.nest) else None for index in indices),
                    tag,
                    branches,
                    load,
                    position,
                )
                (self.copies if instance.is_copy else self.reads).append(access)

    @cached_property
    def written(self) -> frozenset[Storage]:
        """The storage that the program writes."""
        return frozenset(access.storage for access in self.writes)

    def cell_text(self, access: Access, names: str = "q") -> str:
        """Return ``B2[l0, 6*l1 + l2]``: the loops around the storage, then the logical index."""
        parts = [access.instance.names[variable] for variable in access.storage.prefix]
        for dimension, index in enumerate(access.places if self.in_memory else access.indices):
            if index is None:
                if self.in_memory and access.storage.is_folded:
                    raise NotProvedError(
                        f"{access.tensor.name} is folded, and read at an index taken from data"
                    )
                parts.append(f"{names}{dimension}")
            else:
                parts.append(self.nest.form(access.instance, index))
        return f"{access.storage.name}[{', '.join(parts)}]"

    def range_text(self, access: Access, names: str = "q") -> str | None:
        """Return the range of the indices that depend on data: anything inside the tensor."""
        parts: list[str] = []
        for dimension, index in enumerate(access.indices):
            if index is None:
                extent = self.nest.form(access.instance, access.tensor.shape[dimension])
                parts.append(f"0 <= {names}{dimension} < {extent}")
        return " and ".join(parts) or None

    def branch_text(self, access: Access) -> str | None:
        """Return where the branches lead to the access; None: wherever the instance runs."""
        if not access.is_conditional:
            return None
        names, parameters = access.instance.names, self.nest.parameters
        ways: list[str] = []
        for branch in access.branches:
            parts = [condition_text(cond, taken, names, parameters) for cond, taken in branch]
            known = [part for part in parts if part is not None]
            if not known:
                return None
            ways.append(" and ".join(known))
        return f"({' or '.join(ways)})"

    def points(self, access: Access, sound: bool = False) -> isl.Set:
        """Return the instances that make the access; ``sound``: those that compute something."""
        instance = access.instance
        points = self.nest.sound_points(instance) if sound else self.nest.points(instance)
        branch = self.branch_text(access)
        if branch is not None:
            tag = instance.tuple_text(f"S{instance.number}")
            points = points.intersect(self.nest.parameters.set(f"{tag} : {branch}"))
        return points

    def relation(self, access: Access, sound: bool = False) -> isl.Map:
        """Return ``tag[l0, l1] -> cell``."""
        points = self.points(access, sound)
        target = self.cell_text(access)
        inside = self.range_text(access)
        if inside is not None:
            target = f"{target} : {inside}"
        return self.nest.relation(access.instance, access.tag, target, points)


def storage_of(instance: Instance, tensor: Tensor) -> Storage:
    """Return where ``instance`` finds ``tensor``; raises NotProvedError if it is nowhere."""
    actual = instance.compute.redirect(tensor)
    storage = instance.storages.get(actual)
    if storage is None:
        raise NotProvedError(f"{actual.name} has no storage where {instance.compute.stage} uses it")
    return storage
