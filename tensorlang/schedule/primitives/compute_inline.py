"""compute_inline: a stage disappears into the stages that read it.

Before                              After ``compute_inline(e)``
::

    e[i] = exp(X[i])                    Y[i] = exp(X[i]) * 2
    Y[i] = e[i] * 2

Legal for a map that is no output and reads only what its readers may read. Each use computes the
value again, rounded once to the stage's dtype as before.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tensorlang.dtypes import bf16, f16
from tensorlang.ir.affine import Affine, Var
from tensorlang.ir.definition import Stage
from tensorlang.ir.derivation import Inlined
from tensorlang.ir.expr import Cast, Expr, Load, children, index_values, loads_of
from tensorlang.ir.program import Compute, Program, Stmt
from tensorlang.ir.routines import noun_of
from tensorlang.ir.walk import rewrite, rewrite_expr, substitute_in_expr
from tensorlang.schedule.legality import require_proof
from tensorlang.schedule.primitives.base import Outcome
from tensorlang.schedule.primitives.compute_at import (
    consumers_of,
    require_inner,
    require_visible,
)
from tensorlang.schedule.refusal import Refusal
from tensorlang.schedule.tree import nest_of, places_of, without_alloc, without_stmt


@dataclass(frozen=True, slots=True)
class ComputeInline:
    """Replace each load of ``stage`` by the value that it computes."""

    stage: Stage

    def check(self, program: Program) -> None:
        """Refuse reductions, recurrences, outputs, and stages read through a copy."""
        require_inner(program, self.stage, "compute_inline")
        if not self.stage.is_map:
            kind = "a reduction" if self.stage.is_reduction else "a scan"
            if self.stage.routine is not None:
                kind = noun_of(self.stage.routine)
            raise Refusal(
                f"{self.stage.name} is {kind}, and has no expression to put in its place",
                f's.compute_at("{self.stage.name}", ...) computes it inside a loop of its reader',
            )
        for place in places_of(program.body):
            if place.compute.stage is self.stage and place.compute.via:
                raise Refusal(
                    f"{self.stage.name} is computed through copies",
                    "inline before cache_read and cache_write",
                    compute=place.compute,
                )
        consumers = consumers_of(program, self.stage)
        for place in consumers:
            if reads_inside_index(place.compute.stage, self.stage):
                raise Refusal(
                    f"{place.compute.stage.name} uses {self.stage.name} as an index",
                    f's.compute_at("{self.stage.name}", ...), or leave it where it is',
                    compute=place.compute,
                )
            if reads_at_data(place.compute.stage, self.stage):
                raise Refusal(
                    f"{place.compute.stage.name} reads {self.stage.name} at an index taken from "
                    f"data, and whether that lies inside {self.stage.name} could not be checked",
                    f's.compute_at("{self.stage.name}", ...), or leave it where it is',
                    compute=place.compute,
                )
            if place.compute.stage.routine is not None:
                raise Refusal(
                    f"{place.compute.stage.name} is {noun_of(place.compute.stage.routine)}, which "
                    f"reads {self.stage.name} as a tensor",
                    f's.compute_at("{self.stage.name}", ...), or leave it where it is',
                    compute=place.compute,
                )
            if place.compute.stage.copies is not None:
                raise Refusal(
                    f"{place.compute.stage.name} copies {self.stage.name}",
                    "inline before cache_read",
                    compute=place.compute,
                )

            require_visible(program, self.stage, place.ancestors, "compute_inline")
        needed = {load.tensor for load in loads_of(*self.stage.values)}
        if any(source in needed for place in consumers for source, _ in place.compute.via):
            require_proof(
                self.apply(program).program,
                f"the copies that {self.stage.name}'s readers have do not hold all that it reads",
                "inline before cache_read",
            )

    def apply(self, program: Program) -> Outcome:
        """Return the program with the stage substituted into its readers."""
        nest = nest_of(program.body, self.stage)
        body = program.body if nest is None else without_stmt(program.body, nest)
        for tensor in self.stage.tensors:
            body = without_alloc(body, tensor)
        readers = {id(p.compute.stage): p.compute.stage for p in consumers_of(program, self.stage)}
        new = {key: inlined_into(reader, self.stage) for key, reader in readers.items()}

        def visit(stmt: Stmt) -> Stmt:
            if isinstance(stmt, Compute) and id(stmt.stage) in new:
                return replace(stmt, stage=new[id(stmt.stage)])
            return stmt

        records = tuple(Inlined(readers[key], new[key], self.stage) for key in readers)
        stages = tuple(
            new.get(id(stage), stage) for stage in program.stages if stage is not self.stage
        )
        return Outcome(
            replace(
                program,
                body=rewrite(body, visit),
                stages=stages,
                derivations=program.derivations + records,
            )
        )


def inlined_into(reader: Stage, stage: Stage) -> Stage:
    """Return ``reader`` with every load of ``stage``'s tensors replaced by its value."""

    def visit(node: Expr) -> Expr:
        if isinstance(node, Load) and node.tensor in stage.tensors:
            return _value_at(stage, node)
        return node

    values = tuple(rewrite_expr(value, visit) for value in reader.values)
    return replace(reader, values=values)


def _value_at(stage: Stage, load: Load) -> Expr:
    position = stage.tensors.index(load.tensor)
    mapping: dict[Var, Affine] = {
        axis.variable: index for axis, index in zip(stage.axes, load.indices, strict=True)
    }
    value = substitute_in_expr(stage.values[position], mapping)
    if value.dtype is not load.dtype or load.dtype in (f16, bf16):
        return Cast(value, load.dtype)
    return value


def reads_inside_index(reader: Stage, stage: Stage) -> bool:
    """Tell whether ``reader`` takes an index from ``stage``, where no expression can stand."""
    direct = {
        id(node) for value in reader.values for node in _nodes(value) if isinstance(node, Load)
    }
    return any(
        load.tensor in stage.tensors and id(load) not in direct for load in loads_of(*reader.values)
    )


def reads_at_data(reader: Stage, stage: Stage) -> bool:
    """Tell whether ``reader`` takes an element of ``stage`` at an index that is data."""
    return any(
        load.tensor in stage.tensors and index_values(load) for load in loads_of(*reader.values)
    )


def _nodes(expr: Expr) -> list[Expr]:
    """Return the nodes of an expression once each, index expressions left out."""
    found: dict[int, Expr] = {}
    stack = [expr]
    while stack:
        node = stack.pop()
        if id(node) not in found:
            found[id(node)] = node
            stack.extend(children(node))
    return list(found.values())
