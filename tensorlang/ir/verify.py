"""Verification of form: of scheduled programs before the proof, of lowered ones before a backend.

Input:  a program      Output: nothing, or VerificationError with the rule and the statement::

    variables are bound once: i is bound a second time
        for i in N:

The rules are in ``verify_rules``, ``verify_scheduled``, ``verify_lowered`` and ``verify_expr``.
That a program computes what its definition says is the business of ``poly``; that it does
so on given arrays, the interpreter's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tensorlang.errors import TensorlangError
from tensorlang.ir.affine import Var, variables_of
from tensorlang.ir.definition import Definition, Stage
from tensorlang.ir.expr import iterate
from tensorlang.ir.lowered import Allocate, FlatLoad, LoweredProgram, Store
from tensorlang.ir.printer import format_signature, format_stage, format_stmt
from tensorlang.ir.program import Alloc, Compute, For, Fused, Program, Stmt
from tensorlang.ir.verify_lowered import LOWERED
from tensorlang.ir.verify_rules import Rule, Scope, bound_variables, in_order
from tensorlang.ir.verify_scheduled import SCHEDULED, stage_faults
from tensorlang.ir.walk import children_of
from tensorlang.ir.walk import iterate as iterate_stmts


class VerificationError(TensorlangError):
    """A program that no step may produce: a fault of a schedule's step or of a lowering pass."""


def verify_definition(definition: Definition) -> None:
    """Raise VerificationError unless outputs are computed, and shapes known before the call.

    The stages are the business of :func:`verify_scheduled`.
    """
    sizes = frozenset(definition.sizes)
    made = {tensor for stage in definition.stages for tensor in stage.tensors}
    for output in definition.outputs:
        if output not in made:
            raise _error("outputs are computed", f"{output} is not", format_signature(definition))
    forms = [extent for t in (*definition.inputs, *made) for extent in t.shape]
    forms += [condition.form for condition in definition.conditions]
    for form in forms:
        for variable in in_order(variables_of(form) - sizes):
            detail = f"{variable} is no size, in {form}"
            raise _error(
                "shapes and conditions are over sizes", detail, format_signature(definition)
            )
    for size in definition.dims:
        if size not in sizes:
            raise _error(
                "sizes given by name are sizes", f"{size} is not", format_signature(definition)
            )


def verify_scheduled(program: Program) -> None:
    """Raise VerificationError unless ``program`` obeys every rule of the scheduled grammar."""
    definition = program.definition
    scope = Scope(
        variables=frozenset(definition.sizes),
        places=frozenset(definition.inputs + definition.outputs),
        read_only=frozenset(definition.inputs),
        scalars=frozenset(definition.scalars),
        sizes=frozenset(definition.sizes),
    )
    for stage in program.stages:
        for detail in stage_faults(stage, scope):
            raise _error("stages are well formed", detail, format_stage(stage))
    _verify_bound_once(program.body, scope.variables)
    _verify_stages_belong(program.body, program.stages)
    _verify_rules(SCHEDULED, program.body, scope)


def verify_lowered(lowered: LoweredProgram) -> None:
    """Raise VerificationError unless ``lowered`` obeys every rule of the lowered grammar."""
    scope = Scope(
        variables=frozenset(lowered.sizes),
        places=frozenset(lowered.inputs + lowered.outputs),
        read_only=frozenset(lowered.inputs),
        scalars=frozenset(lowered.scalars),
        sizes=frozenset(lowered.sizes),
    )
    for buffer in lowered.inputs + lowered.outputs:
        for variable in variables_of(buffer.size) - scope.sizes:
            text = f"{buffer} = {buffer.dtype.name}[{buffer.size}]"
            raise _error("sizes of the caller's buffers are passed", f"{variable} is not", text)
    _verify_bound_once(lowered.body, scope.variables)
    _verify_check_sites(lowered)
    _verify_rules(LOWERED, lowered.body, scope)


def _verify_rules(rules: tuple[Rule, ...], body: Stmt, scope: Scope) -> None:
    for stmt, around in _walk(body, scope):
        for rule in rules:
            for detail in rule(stmt, around):
                raise _violation(rule.__name__.replace("_", " "), detail, stmt)


def _walk(stmt: Stmt, scope: Scope) -> Iterator[tuple[Stmt, Scope]]:
    """Yield every statement with what surrounds it."""
    yield stmt, scope
    inner = replace(scope, parents=(*scope.parents, stmt))
    match stmt:
        case For() | Fused():
            inner = replace(inner, variables=scope.variables | set(bound_variables(stmt)))
        case Alloc():
            inner = replace(inner, places=scope.places | {stmt.tensor})
        case Allocate():
            inner = replace(inner, places=scope.places | {stmt.buffer})
        case _:
            pass
    for child in children_of(stmt):
        yield from _walk(child, inner)


def _verify_bound_once(body: Stmt, sizes: frozenset[Var]) -> None:
    """Raise if two loops bind one variable, even side by side: it is the handle of one loop."""
    seen = set(sizes)
    for stmt in iterate_stmts(body):
        if isinstance(stmt, For | Fused):
            handle = (stmt.handle,) if isinstance(stmt, Fused) else ()
            # The handle of a piece may be the run's offset: one loop, one variable.
            for variable in dict.fromkeys(bound_variables(stmt) + handle):
                if variable in seen:
                    detail = f"{variable} is bound a second time"
                    raise _violation("variables are bound once", detail, stmt)
                seen.add(variable)


def _verify_stages_belong(body: Stmt, stages: tuple[Stage, ...]) -> None:
    known = set(stages)
    for stmt in iterate_stmts(body):
        if isinstance(stmt, Compute) and stmt.stage not in known:
            detail = f"{stmt.stage.name} is not in the program's list of stages"
            raise _violation("instances are of listed stages", detail, stmt)


def _verify_check_sites(lowered: LoweredProgram) -> None:
    for stmt in iterate_stmts(lowered.body):
        values = stmt.values if isinstance(stmt, Store) else ()
        for node in iterate(*values):
            for check in node.checks if isinstance(node, FlatLoad) else ():
                if not 0 <= check.site < len(lowered.check_sites):
                    detail = f"there is no site {check.site}"
                    raise _violation("bounds checks have a listed site", detail, stmt)


def _violation(rule: str, detail: str, stmt: Stmt) -> VerificationError:
    return _error(rule, detail, next(format_stmt(stmt), ""))


def _error(rule: str, detail: str, text: str) -> VerificationError:
    return VerificationError(f"{rule}: {detail}\n    {text.strip()}")
