"""From loops bound to a GPU's axes to the one program that every thread runs.

Input::                                         Output::

    block.x for i in M:                             grid (M, 1, 1), block (64, 1, 1)
        S = shared f32[64]
        thread.x for j in 64:                       S[thread.x] = X[64*block.x + thread.x]
            S[j] = X[64*i + j]
        barrier                                     barrier
        thread.x for j in 32:                       if 31 - thread.x >= 0:
            Y[32*i + j] = S[j] + S[j + 32]              Y[32*block.x + thread.x] = ...

Loops of threads that hold fewer iterations than the block has threads become conditions, and what
is bound to no thread axis is run by the first thread along it. Memory of a block is shared; storage
of constant size inside a nest of threads belongs to one thread.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from tensorlang.errors import CompileError
from tensorlang.ir.affine import ONE, ZERO, Affine, Var, affine, variables_of
from tensorlang.ir.definition import Condition, Scalar
from tensorlang.ir.lowered import Allocate, Buffer, CheckSite, LoweredProgram, PrefetchLine, Store
from tensorlang.ir.program import (
    BLOCK_AXES,
    EMPTY,
    THREAD_AXES,
    Barrier,
    For,
    If,
    Seq,
    Stmt,
)
from tensorlang.ir.walk import children_of, iterate, map_children, sequence, substitute_in_stmt
from tensorlang.lower.replace_buffer import replace_buffers

_ADVICE = (
    'Bind the outermost loops to "block.x", ... and loops inside them to "thread.x", ...: '
    's.bind(loop, "block.x"). There are no rules yet that do so by themselves.'
)


@dataclass(frozen=True, slots=True, eq=False)
class Kernel:
    """A program for each thread of a grid.

    ``blocks`` and ``threads`` are the variables that hold the thread's place along x, y, z;
    ``grid`` and ``block`` how many there are. ``shared`` is the memory of a block, allocated for
    the whole kernel; storage allocated in ``body`` belongs to a thread, but for ``registers``,
    which the nests of a block use together until ``own_registers`` divides them.
    """

    name: str
    sizes: tuple[Var, ...]
    scalars: tuple[Scalar, ...]
    inputs: tuple[Buffer, ...]
    outputs: tuple[Buffer, ...]
    grid: tuple[Affine, Affine, Affine]
    block: tuple[int, int, int]
    blocks: tuple[Var, Var, Var]
    threads: tuple[Var, Var, Var]
    shared: tuple[Buffer, ...]
    registers: tuple[Buffer, ...]
    body: Stmt
    conditions: tuple[Condition, ...] = ()
    check_sites: tuple[CheckSite, ...] = ()

    @property
    def extents(self) -> dict[Var, Affine]:
        """The ranges of the variables of blocks and threads."""
        return dict(zip(self.blocks, self.grid, strict=True)) | {
            variable: affine(count)
            for variable, count in zip(self.threads, self.block, strict=True)
        }


def to_kernel(program: LoweredProgram) -> Kernel:
    """Return the kernel of a program whose outermost loops are bound to blocks and threads.

    Raises CompileError for what is no single kernel, and for storage that no memory can hold.
    """
    is_bound = any(isinstance(s, For) and s.kind in _AXES for s in iterate(program.body))
    if not is_bound and any(isinstance(s, Store) for s in iterate(program.body)):
        raise CompileError(f"{program.name} has no loop that runs on a GPU.\n{_ADVICE}")
    blocks = (Var("block.x"), Var("block.y"), Var("block.z"))
    threads = (Var("thread.x"), Var("thread.y"), Var("thread.z"))
    body, grid = _without_blocks(program, blocks)
    block = _block_size(body)
    spreader = _Spreader(program.name, threads, block)
    body = spreader.block(body)
    return Kernel(
        program.name,
        program.sizes,
        program.scalars,
        program.inputs,
        program.outputs,
        grid,
        block,
        blocks,
        threads,
        tuple(spreader.shared),
        tuple(spreader.registers),
        body,
        program.conditions,
        program.check_sites,
    )


_AXES = (*BLOCK_AXES, *THREAD_AXES)


def _without_blocks(
    program: LoweredProgram, variables: tuple[Var, Var, Var]
) -> tuple[Stmt, tuple[Affine, Affine, Affine]]:
    """Return what one block runs, and the extents of the grid."""
    stmt, conditions = program.body, list[Affine]()
    grid = [ONE, ONE, ONE]
    while True:
        match stmt:
            case For() if stmt.kind in BLOCK_AXES:
                axis = BLOCK_AXES.index(stmt.kind)
                if not variables_of(stmt.extent) <= set(program.sizes):
                    raise CompileError(
                        f"the loop {stmt.variable} is bound to {stmt.kind}, and its extent "
                        f"{stmt.extent} differs from block to block"
                    )
                grid[axis] = stmt.extent
                stmt = substitute_in_stmt(stmt.body, {stmt.variable: variables[axis]})
            case If(otherwise=None) if _has_blocks(stmt.then):
                conditions.extend(stmt.condition)
                stmt = stmt.then
            case _:
                break
    if _has_blocks(stmt):
        raise CompileError(
            f"{program.name} is more than one kernel: a statement stands beside or around a loop "
            "that is bound to blocks.\nMake one nest of it with compute_at or compute_inline."
        )
    body = If(tuple(conditions), stmt) if conditions else stmt
    return body, (grid[0], grid[1], grid[2])


def _has_blocks(stmt: Stmt) -> bool:
    return any(isinstance(child, For) and child.kind in BLOCK_AXES for child in iterate(stmt))


def _block_size(body: Stmt) -> tuple[int, int, int]:
    sizes = [1, 1, 1]
    for stmt in iterate(body):
        if isinstance(stmt, For) and stmt.kind in THREAD_AXES:
            if not stmt.extent.is_constant:
                raise CompileError(
                    f"the loop {stmt.variable} is bound to {stmt.kind}, and its number of "
                    f"iterations {stmt.extent} is not known when compiling"
                )
            axis = THREAD_AXES.index(stmt.kind)
            sizes[axis] = max(sizes[axis], stmt.extent.constant)
    return sizes[0], sizes[1], sizes[2]


@dataclass(slots=True)
class _Spreader:
    """Replaces loops of threads by the thread that runs each iteration."""

    name: str
    threads: tuple[Var, Var, Var]
    size: tuple[int, int, int]
    shared: list[Buffer] = field(default_factory=list[Buffer])
    registers: list[Buffer] = field(default_factory=list[Buffer])

    def block(self, stmt: Stmt) -> Stmt:
        """Return what all threads run for a statement outside the nests of threads."""
        match stmt:
            case Barrier():
                return stmt
            case Allocate():
                return self._block_storage(stmt)
            case For() if stmt.kind in THREAD_AXES or not _is_collective(stmt):
                return self._nest(stmt)
            case Store():
                return self._nest(stmt)
            case PrefetchLine():
                return EMPTY  # a GPU hides latency by its other threads
            case For() if stmt.kind == "parallel":
                raise CompileError(
                    f"the loop {stmt.variable} of {self.name} is parallel, which is for CPUs: "
                    "bind it to an axis instead"
                )
            case Seq():
                return sequence(*self._together(stmt.stmts))
            case _:
                return map_children(stmt, self.block)

    def _together(self, stmts: tuple[Stmt, ...]) -> list[Stmt]:
        """Return the statements of a sequence; neighbours of the first thread stay together."""
        result: list[Stmt] = []
        alone: list[Stmt] = []
        for stmt in stmts:
            if isinstance(stmt, Barrier) or _is_collective(stmt):
                if alone:
                    result.append(self._nest(sequence(*alone)))
                    alone = []
                result.append(self.block(stmt))
            else:
                alone.append(stmt)
        if alone:
            result.append(self._nest(sequence(*alone)))
        return result

    def _block_storage(self, stmt: Allocate) -> Stmt:
        buffer = stmt.buffer
        if buffer.scope == "local":
            self.registers.append(buffer)
            return replace(stmt, body=self.block(stmt.body))
        if stmt.zeroed:
            raise CompileError(
                f"{buffer} has places that no element has, which are to be zero, and shared memory "
                "begins undefined: take a layout without gaps in rows that are read"
            )
        shared = replace(buffer, scope="shared")
        self.shared.append(shared)
        return self.block(replace_buffers(stmt.body, {buffer: shared}))

    def _nest(self, stmt: Stmt) -> Stmt:
        """Return a nest of threads; axes that it does not have belong to the first thread."""
        used = _axes_in(stmt)
        missing = [axis for axis in range(3) if axis not in used]
        return self._guarded(missing, self._inside(stmt, used))

    def _inside(self, stmt: Stmt, used: frozenset[int]) -> Stmt:
        """Return a part of a nest; ``used`` are the axes whose loops stand at it or below."""
        if isinstance(stmt, For) and stmt.kind in THREAD_AXES:
            axis = THREAD_AXES.index(stmt.kind)
            count = stmt.extent.constant
            body = substitute_in_stmt(stmt.body, {stmt.variable: self.threads[axis]})
            body = self._inside(body, used - {axis})
            if count < self.size[axis]:
                return If((affine(count - 1) - self.threads[axis],), body)
            return body
        below = _axes_in(stmt)
        gone = [axis for axis in used if axis not in below]
        match stmt:
            case Allocate():
                if not stmt.buffer.size.is_constant:
                    raise CompileError(
                        f"{stmt.buffer} of {self.name} belongs to one thread, and its size "
                        f"{stmt.buffer.size} is not known when compiling: place it outside the "
                        "loops of threads, where it is shared, or split the loops"
                    )
                local = replace(stmt.buffer, scope="local")
                body = replace_buffers(stmt.body, {stmt.buffer: local})
                inner: Stmt = Allocate(local, self._inside(body, below), stmt.zeroed)
            case For() if stmt.kind == "parallel":
                raise CompileError(
                    f"the loop {stmt.variable} of {self.name} is parallel, which is for CPUs: "
                    "bind it to an axis instead"
                )
            case _:
                inner = map_children(stmt, lambda child: self._inside(child, below))
        return self._guarded(gone, inner)

    def _guarded(self, axes: list[int], stmt: Stmt) -> Stmt:
        forms = tuple([ZERO - self.threads[axis] for axis in axes if self.size[axis] > 1])
        return If(forms, stmt) if forms and stmt is not EMPTY else stmt


def _axes_in(stmt: Stmt) -> frozenset[int]:
    return frozenset(
        THREAD_AXES.index(child.kind)
        for child in iterate(stmt)
        if isinstance(child, For) and child.kind in THREAD_AXES
    )


def _is_collective(stmt: Stmt) -> bool:
    """Whether something below concerns more than the first thread."""
    if isinstance(stmt, Barrier) or (isinstance(stmt, For) and stmt.kind in THREAD_AXES):
        return True
    return any(_is_collective(child) for child in children_of(stmt))
