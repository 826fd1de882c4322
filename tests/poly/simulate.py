"""Runs a scheduled program on hashes, at given sizes: the judge of what the proof says.

Each element of the definition has a value that depends on everything it is computed from; a right
program must give exactly these values to the outputs, without leaving its storage, reading what
nobody has written, or touching a cell from two iterations of a concurrent loop.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from tensorlang.ir.affine import Var, evaluate
from tensorlang.ir.definition import Definition, Stage, Tensor
from tensorlang.ir.expr import Call, Const, Expr, IndexValue, Load, Select, children
from tensorlang.ir.program import Alloc, Compute, For, Fused, Program, Seq, Stmt

Sizes = Mapping[Var, int]
_MODULUS = (1 << 61) - 1


class Fault(Exception):
    """The program does something wrong at these sizes."""


_POISON = object()

Path = tuple[tuple[int, int, bool], ...]
"""The loops around a statement, with the iteration and whether it runs beside others."""


@dataclass
class Memory:
    tensor: Tensor
    origin: tuple[int, ...]
    shape: tuple[int, ...]
    cells: dict[tuple[int, ...], object] = field(default_factory=dict)
    # cell -> the iterations that touched it; loops around the allocation do not count
    depth: int = 0
    writers: dict[tuple[int, ...], set[Path]] = field(default_factory=dict)
    users: dict[tuple[int, ...], set[Path]] = field(default_factory=dict)

    def check(self, index: tuple[int, ...]) -> None:
        for i, low, size in zip(index, self.origin, self.shape, strict=True):
            if not low <= i < low + size:
                raise Fault(f"{self.tensor}{list(index)} is outside its storage")


def holds(condition: Expr, values: Sizes) -> bool:
    match condition:
        case Call(function="and", args=args):
            return all(holds(arg, values) for arg in args)
        case Call(function="or", args=args):
            return any(holds(arg, values) for arg in args)
        case Call(function=function, args=(IndexValue(index=left), IndexValue(index=right))):
            a, b = evaluate(left, values), evaluate(right, values)
            table = {"lt": a < b, "le": a <= b, "gt": a > b, "ge": a >= b, "eq": a == b}
            return table[function]
        case _:
            raise AssertionError(condition)


def hashed(*parts: object) -> int:
    return hash(parts) % _MODULUS


def value_of(expr: Expr, values: Sizes, read: object) -> int:
    """The hash of an expression; ``read(tensor, index)`` gives those of its loads."""
    match expr:
        case Load(tensor=tensor, indices=indices):
            return read(tensor, tuple(evaluate(i, values) for i in indices))  # type: ignore[operator]
        case Select(condition=condition, then=then, otherwise=otherwise):
            return value_of(then if holds(condition, values) else otherwise, values, read)
        case IndexValue(index=index):
            return hashed("index", evaluate(index, values))
        case Const(value=value):
            return hashed("const", repr(value))
        case _:
            parts = [value_of(child, values, read) for child in children(expr)]
            return hashed(getattr(expr, "function", type(expr).__name__), *parts)


def combine(stage: Stage, state: int, value: int) -> int:
    assert stage.combiner is not None
    if stage.combiner.ordered:
        return (state * 31 + value) % _MODULUS
    return (state + value) % _MODULUS


def reference(definition: Definition, sizes: Sizes) -> dict[Tensor, dict[tuple[int, ...], int]]:
    """The value of every element, from the definition alone."""
    result: dict[Tensor, dict[tuple[int, ...], int]] = {}

    def read(tensor: Tensor, index: tuple[int, ...]) -> int:
        if tensor in definition.inputs:
            return hashed("input", tensor.name, index)
        return result[tensor][index]

    for stage in definition.stages:
        for tensor in stage.tensors:
            result[tensor] = {}
        data = [range(max(0, evaluate(axis.extent, sizes))) for axis in stage.axes]
        over = [range(max(0, evaluate(axis.extent, sizes))) for axis in stage.reduction_axes]
        for point in itertools.product(*data):
            states = [0] * len(stage.tensors)
            for inner in itertools.product(*over):
                values = {**sizes, **dict(zip(stage.variables, point + inner, strict=True))}
                if any(evaluate(form, values) < 0 for form in stage.predicate):
                    continue
                for number, expr in enumerate(stage.values):
                    found = value_of(expr, values, read)
                    states[number] = (
                        combine(stage, states[number], found) if stage.is_reduction else found
                    )
            for tensor, state in zip(stage.tensors, states, strict=True):
                result[tensor][point] = state
    return result


class Simulator:
    def __init__(self, program: Program, sizes: Sizes) -> None:
        self.program = program
        self.sizes = sizes
        definition = program.definition
        self.outer = {
            tensor: Memory(
                tensor,
                tuple(0 for _ in tensor.shape),
                tuple(evaluate(e, sizes) for e in tensor.shape),
            )
            for tensor in (*definition.inputs, *definition.outputs)
        }

    def run(self) -> None:
        expected = reference(self.program.definition, self.sizes)
        self.execute(self.program.body, dict(self.sizes), self.outer, ())
        for tensor in self.program.definition.outputs:
            memory = self.outer[tensor]
            for index, value in expected[tensor].items():
                if memory.cells.get(index, _POISON) != value:
                    raise Fault(f"{tensor}{list(index)} is wrong")

    def execute(
        self,
        stmt: Stmt,
        values: dict[Var, int],
        memories: dict[Tensor, Memory],
        path: Path,
    ) -> None:
        match stmt:
            case Seq():
                for child in stmt.stmts:
                    self.execute(child, values, memories, path)
            case For() | Fused():
                points = list(self.points(stmt, values))
                for number, point in enumerate(points):
                    beside = stmt.kind not in ("serial", "unrolled")
                    inner = (*path, (id(stmt), number, beside))
                    self.execute(stmt.body, {**values, **point}, memories, inner)
            case Alloc():
                memory = Memory(
                    stmt.tensor,
                    tuple(evaluate(o, values) for o in stmt.origin),
                    tuple(evaluate(s, values) for s in stmt.shape),
                    depth=len(path),
                )
                self.execute(stmt.body, values, {**memories, stmt.tensor: memory}, path)
            case Compute():
                if all(evaluate(form, values) >= 0 for form in stmt.guard):
                    self.compute(stmt, values, memories, path)
            case _:
                raise AssertionError(stmt)

    def points(self, loop: For | Fused, values: dict[Var, int]) -> Iterator[dict[Var, int]]:
        if isinstance(loop, For):
            for value in range(evaluate(loop.extent, values)):
                yield {loop.variable: value}
            return
        ranges = [range(max(0, evaluate(e, values))) for e in loop.extents]
        points = list(itertools.product(*ranges))
        if loop.run is not None:
            start = values[loop.run.chunk] * loop.run.size
            points = points[start : start + loop.run.size]
        for point in points:
            yield dict(zip(loop.variables, point, strict=True))

    def touch(
        self,
        memory: Memory,
        index: tuple[int, ...],
        path: Path,
        write: bool,
    ) -> None:
        memory.check(index)
        where = path[memory.depth :]
        users = memory.users.setdefault(index, set())
        writers = memory.writers.setdefault(index, set())
        users.add(where)
        if write:
            writers.add(where)
        for other in users if write else writers:
            # What orders the two is the outermost loop in which they differ.
            for (loop, mine, beside), (same, theirs, _) in zip(where, other, strict=False):
                if loop != same:
                    break
                if mine != theirs:
                    if beside:
                        raise Fault(f"{memory.tensor}{list(index)} is touched by two iterations")
                    break

    def compute(
        self,
        compute: Compute,
        values: dict[Var, int],
        memories: dict[Tensor, Memory],
        path: Path,
    ) -> None:
        stage = compute.stage
        point = tuple(evaluate(index, values) for index in compute.binding)
        index = point[: len(stage.axes)]
        # Padding: such an instance may see anything, and nobody may see what it writes.
        outside = any(
            not 0 <= i < evaluate(axis.extent, self.sizes)
            for i, axis in zip(index, stage.axes, strict=True)
        )
        targets = [memories[compute.redirect(tensor)] for tensor in stage.tensors]
        for target in targets:
            self.touch(target, index, path, write=True)
        if compute.part == "init":
            for target in targets:
                target.cells[index] = 0
            return

        def read(tensor: Tensor, at: tuple[int, ...]) -> object:
            memory = memories[compute.redirect(tensor)]
            self.touch(memory, at, path, write=False)
            if memory.tensor in self.program.definition.inputs:
                return hashed("input", memory.tensor.name, at)
            found = memory.cells.get(at, _POISON)
            if outside:
                return 0
            if found is _POISON and stage.copies is None:
                raise Fault(f"{memory.tensor}{list(at)} is read before it is written")
            return found

        mapping = dict(zip(stage.variables, point, strict=True))
        for target, expr in zip(targets, stage.values, strict=True):
            value = value_of(expr, {**self.sizes, **mapping}, read)
            if outside:
                target.cells[index] = _POISON
                continue
            if compute.part == "update":
                before = target.cells.get(index, _POISON)
                if before is _POISON:
                    raise Fault(f"{target.tensor}{list(index)} is updated without an init")
                assert isinstance(before, int)
                value = combine(stage, before, value)
            target.cells[index] = value


def find_fault(program: Program, sizes: Sizes) -> str | None:
    """Return what goes wrong at these sizes, None if nothing does."""
    try:
        Simulator(program, sizes).run()
    except Fault as fault:
        return str(fault)
    return None


__all__ = ["Fault", "find_fault"]
