"""Write out unrolled loops.

Input::                         Output::

    unrolled for i in 2:            C[0] = A[0]
        C[i] = A[i]                 C[1] = A[1]

Storage inside the loop is private to an iteration, so each copy gets a buffer of its own. Where a
loop has been copied, here or by an earlier pass (versions of a tile), the copies get variables of
their own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from tensorlang.errors import CompileError
from tensorlang.ir.affine import (
    Affine,
    AffineLike,
    ValueAtom,
    Var,
    affine,
    atom_variables,
    substitute,
)
from tensorlang.ir.expr import Expr
from tensorlang.ir.lowered import (
    Allocate,
    Buffer,
    LoweredProgram,
    PrefetchLine,
    Store,
)
from tensorlang.ir.program import Barrier, For, If, Seq, Stmt
from tensorlang.ir.walk import Done, Substitution, rewrite_expr, sequence, with_indices
from tensorlang.lower.replace_buffer import MovedAccesses


def unroll(program: LoweredProgram) -> LoweredProgram:
    """Return ``program`` without unrolled loops; CompileError if one has no constant extent."""
    return replace(program, body=_Unroller().visit(program.body, {}, {}))


class _Unroller:
    """Copies statements; knows the variables and buffers that the result has already."""

    def __init__(self) -> None:
        self.seen: set[Var | Buffer] = set()
        self.at = _Substitution()

    def visit(
        self, stmt: Stmt, values: Mapping[Var, Affine], buffers: Mapping[Buffer, Buffer]
    ) -> Stmt:
        """Return ``stmt`` with loops around it at ``values``, and buffers replaced."""
        match stmt:
            case For(kind="unrolled"):
                if not stmt.extent.is_constant:
                    raise CompileError(
                        f"the loop {stmt.variable} cannot be unrolled: its extent {stmt.extent} is "
                        "not known when compiling; split it by a constant and unroll the inner loop"
                    )
                copies = [
                    self.visit(stmt.body, {**values, stmt.variable: affine(n)}, buffers)
                    for n in range(stmt.extent.constant)
                ]
                return sequence(*copies)
            case For():
                return self.visit_loop(stmt, values, buffers)
            case Seq():
                return sequence(*[self.visit(child, values, buffers) for child in stmt.stmts])
            case If():
                condition = tuple(
                    [self.visit_index(form, values, buffers) for form in stmt.condition]
                )
                then = self.visit(stmt.then, values, buffers)
                if stmt.otherwise is None:
                    return If(condition, then)
                return If(condition, then, self.visit(stmt.otherwise, values, buffers))
            case Allocate():
                return self.visit_storage(stmt, values, buffers)
            case Barrier():
                return Barrier()
            case PrefetchLine():
                buffer = buffers.get(stmt.buffer, stmt.buffer)
                offset = self.visit_index(stmt.offset, values, buffers)
                return replace(stmt, buffer=buffer, offset=offset)
            case Store():
                return self.visit_store(stmt, values, buffers) if values or buffers else stmt
            case _:
                raise TypeError(f"{type(stmt).__name__} is not a statement of a lowered program")

    def visit_loop(
        self, loop: For, values: Mapping[Var, Affine], buffers: Mapping[Buffer, Buffer]
    ) -> For:
        variable = loop.variable
        if variable in self.seen:
            variable = Var(variable.name)
            values = {**values, loop.variable: affine(variable)}
        self.seen.add(variable)
        extent = substitute(loop.extent, values)
        body = self.visit(loop.body, values, buffers)
        return replace(loop, variable=variable, extent=extent, body=body)

    def visit_storage(
        self, stmt: Allocate, values: Mapping[Var, Affine], buffers: Mapping[Buffer, Buffer]
    ) -> Allocate:
        buffer = stmt.buffer
        size = substitute(buffer.size, values)
        if buffer in self.seen or size != buffer.size:
            buffer = replace(buffer, size=size)
            buffers = {**buffers, stmt.buffer: buffer}
        self.seen.add(buffer)
        return Allocate(buffer, self.visit(stmt.body, values, buffers), stmt.zeroed)

    def visit_store(
        self, store: Store, values: Mapping[Var, Affine], buffers: Mapping[Buffer, Buffer]
    ) -> Store:

        copy = _Copy(self.at, values, buffers)
        targets = [(buffers.get(b, b), copy.index(offset)) for b, offset in store.targets]
        results = tuple([copy.expr(value) for value in store.values])
        return replace(store, targets=tuple(targets), values=results)

    def visit_index(
        self, index: Affine, values: Mapping[Var, Affine], buffers: Mapping[Buffer, Buffer]
    ) -> Affine:
        """Return an index at ``values``; what it takes from data may lie in a buffer replaced."""
        return _Copy(self.at, values, buffers).index(index)


class _Copy:
    """The expressions of one copy of a statement; what they share is copied once."""

    def __init__(
        self,
        at: _Substitution,
        values: Mapping[Var, Affine],
        buffers: Mapping[Buffer, Buffer],
    ) -> None:
        self.at = at
        self.values = values
        self.substitution = Substitution(values)
        self.moved = MovedAccesses(lambda b, offset: (buffers.get(b, b), offset))
        self.replaces = bool(buffers)
        self.done: Done = {}

    def expr(self, expr: Expr) -> Expr:
        """Return a value expression at the values, with buffers replaced."""
        copied = rewrite_expr(expr, lambda node: with_indices(node, self._at), self.done)
        return self.moved.expr(copied) if self.replaces else copied

    def index(self, index: Affine) -> Affine:
        """Return an index expression at the values, with buffers replaced."""
        copied = self._at(index)
        return self.moved.index(copied) if self.replaces else copied

    def _at(self, index: Affine) -> Affine:
        return self.at.apply(index, self.values, self.substitution.value)


class _Substitution:
    """Substitutes variables in forms that come up again and again with other values.

    The terms that hold none of the variables are split off once: an address may have dozens.
    """

    def __init__(self) -> None:
        self.parts: dict[int, _Parts] = {}

    def apply(
        self,
        form: Affine,
        values: Mapping[Var, Affine],
        value: Callable[[ValueAtom], AffineLike],
    ) -> Affine:
        """Return ``form`` with variables replaced by ``values``."""
        if not values or not form.terms:
            return form
        parts = self.parts.get(id(form))
        if parts is None or parts.variables != frozenset(values):
            parts = self.parts[id(form)] = _split(form, frozenset(values))
        if not parts.moving.terms:
            return form
        return substitute(parts.moving, values, value) + parts.fixed


@dataclass(frozen=True, slots=True)
class _Parts:
    """A form, kept alive so that its id stays its own, as a sum of what moves and what does not."""

    form: Affine
    variables: frozenset[Var]
    moving: Affine
    fixed: Affine


def _split(form: Affine, variables: frozenset[Var]) -> _Parts:
    moving = tuple(
        [term for term in form.terms if not variables.isdisjoint(atom_variables(term[0]))]
    )
    fixed = tuple([term for term in form.terms if term not in moving])
    return _Parts(form, variables, Affine(0, moving), Affine(form.constant, fixed))
